--- Draws the rest of a suggestion as ghost text, with extmarks.

local suggestions = require('slipstream.suggestion')

local M = {}

M.namespace = vim.api.nvim_create_namespace('slipstream.ghost')

---@class slipstream.Drawn
---@field buf integer
---@field num_marks integer

---@type slipstream.Drawn?
local drawn

--- Replaces tabs by blanks, because virtual text has no tab stops.
---@param text string
---@param column integer the screen column where the text begins
---@param width integer the buffer's 'tabstop'
---@return string
local function expand(text, column, width)
  if not text:find('\t', 1, true) then
    return text
  end
  local parts = {}
  for part, tab in text:gmatch('([^\t]*)(\t?)') do
    column = column + vim.fn.strdisplaywidth(part)
    local num_blanks = tab ~= '' and width - column % width or 0
    column = column + num_blanks
    parts[#parts + 1] = part .. (' '):rep(num_blanks)
  end
  return table.concat(parts)
end

---@class slipstream.Mark
---@field col integer
---@field opts vim.api.keyset.set_extmark

---@param view slipstream.View
---@param first_line string
---@return slipstream.Mark[]
local function inline_marks(view, first_line)
  local cursor = view.cursor
  local replaced = cursor.right:sub(1, view.num_replaced)
  local segments = suggestions.align(first_line, replaced)
  local width = vim.bo[cursor.buf].tabstop
  local column = vim.fn.strdisplaywidth(cursor.before)
  local marks = {} ---@type slipstream.Mark[]
  if not segments then
    segments = { { text = first_line, is_kept = false } }
    local opts = { end_row = cursor.row, end_col = cursor.col + #replaced, hl_group = 'SlipstreamReplaced' }
    marks[1] = { col = cursor.col, opts = opts }
  end
  local col = cursor.col
  for _, segment in ipairs(segments) do
    local shown = expand(segment.text, column, width)
    column = column + vim.fn.strdisplaywidth(shown)
    if segment.is_kept then
      col = col + #segment.text
    else
      local text = { { shown, 'SlipstreamGhost' } }
      local opts = { virt_text = text, virt_text_pos = 'inline', hl_mode = 'combine' }
      marks[#marks + 1] = { col = col, opts = opts }
    end
  end
  return marks
end

---@param lines string[]
---@param width integer
---@return [string, string][][]
local function virtual_lines(lines, width)
  return vim.iter(lines)
    :map(function(line)
      return { { expand(line, 0, width), 'SlipstreamGhost' } }
    end)
    :totable()
end

--- Draws the view in place of the previous one, in one redraw.
---@param view slipstream.View
---@param hint string? drawn after the text, for example the number of the candidate
function M.draw(view, hint)
  local cursor = view.cursor
  if drawn and drawn.buf ~= cursor.buf then
    M.clear()
  end
  local lines = vim.split(view.text, '\n', { plain = true })
  local first_line = table.remove(lines, 1)
  local marks = inline_marks(view, first_line)
  if #lines > 0 then
    local below = virtual_lines(lines, vim.bo[cursor.buf].tabstop)
    marks[#marks + 1] = { col = cursor.col, opts = { virt_lines = below } }
  end
  if hint then
    local opts = { virt_text = { { hint, 'SlipstreamHint' } }, virt_text_pos = 'eol' }
    marks[#marks + 1] = { col = cursor.col, opts = opts }
  end
  for id, mark in ipairs(marks) do
    mark.opts.id = id
    vim.api.nvim_buf_set_extmark(cursor.buf, M.namespace, cursor.row, mark.col, mark.opts)
  end
  for id = #marks + 1, drawn and drawn.num_marks or 0 do
    vim.api.nvim_buf_del_extmark(cursor.buf, M.namespace, id)
  end
  drawn = { buf = cursor.buf, num_marks = #marks }
end

--- Removes the ghost text.
function M.clear()
  if not drawn then
    return
  end
  if vim.api.nvim_buf_is_valid(drawn.buf) then
    vim.api.nvim_buf_clear_namespace(drawn.buf, M.namespace, 0, -1)
  end
  drawn = nil
end

return M
