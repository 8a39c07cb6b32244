--- Draws a proposed edit with extmarks: the old text struck through, the new text, and a hint of its place.

local M = {}

M.namespace = vim.api.nvim_create_namespace('slipstream.next_edit')

---@type table<integer, true> the buffers with marks
local drawn = {}

---@param buf integer
---@param row integer
---@param col integer
---@param opts vim.api.keyset.set_extmark
local function mark(buf, row, col, opts)
  drawn[buf] = true
  vim.api.nvim_buf_set_extmark(buf, M.namespace, row, col, opts)
end

--- The lines of the edit as they will be, from the beginning of the first to the end of the last.
---@param edit slipstream.Edit
---@return string[]
local function new_lines(edit)
  local first = vim.api.nvim_buf_get_lines(edit.buf, edit.row, edit.row + 1, false)[1]
  local last = vim.api.nvim_buf_get_lines(edit.buf, edit.end_row, edit.end_row + 1, false)[1]
  local lines = vim.deepcopy(edit.lines)
  lines[1] = first:sub(1, edit.col) .. lines[1]
  lines[#lines] = lines[#lines] .. last:sub(edit.end_col + 1)
  return lines
end

---@param edit slipstream.Edit
local function draw_change(edit)
  local is_removing = edit.row ~= edit.end_row or edit.col ~= edit.end_col
  if is_removing then
    local opts = { end_row = edit.end_row, end_col = edit.end_col, hl_group = 'SlipstreamReplaced' }
    mark(edit.buf, edit.row, edit.col, opts)
  end
  if edit.row == edit.end_row and #edit.lines == 1 then
    if edit.lines[1] ~= '' then
      local text = { { edit.lines[1], 'SlipstreamAdded' } }
      mark(edit.buf, edit.end_row, edit.end_col, { virt_text = text, virt_text_pos = 'inline' })
    end
    return
  end
  local width = vim.bo[edit.buf].tabstop
  local below = vim.iter(new_lines(edit)):map(function(line)
    return { { (line:gsub('\t', (' '):rep(width))), 'SlipstreamAdded' } }
  end)
  mark(edit.buf, edit.end_row, 0, { virt_lines = below:totable() })
end

--- The place of an edit that the window does not show, in words.
---@param edit slipstream.Edit
---@return string?
local function direction(edit)
  if vim.api.nvim_get_current_buf() ~= edit.buf then
    return ('→ %s:%d'):format(vim.fs.basename(vim.api.nvim_buf_get_name(edit.buf)), edit.row + 1)
  elseif edit.row + 1 < vim.fn.line('w0') then
    return ('↑ line %d'):format(edit.row + 1)
  elseif edit.row + 1 > vim.fn.line('w$') then
    return ('↓ line %d'):format(edit.row + 1)
  end
end

---@param edit slipstream.Edit
---@param is_at_cursor boolean
function M.draw(edit, is_at_cursor)
  if edit.tick then
    draw_change(edit)
  end
  local key = require('slipstream.keymaps').edit_key()
  local place = direction(edit)
  local buf, row = edit.buf, edit.row
  local words = is_at_cursor and '%s apply' or '%s jump'
  local hint = words:format(key)
  if place then
    buf, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
    hint = ('%s edit  %s'):format(place, key)
  end
  if (edit.num_places or 1) > 1 then
    hint = hint .. '  (all places: :Slipstream edit all)'
  end
  local text = { { '  ' .. hint, 'SlipstreamHint' } }
  mark(buf, row, 0, { virt_text = text, virt_text_pos = 'eol', number_hl_group = 'SlipstreamHint' })
end

function M.clear()
  for buf in pairs(drawn) do
    if vim.api.nvim_buf_is_valid(buf) then
      vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
    end
  end
  drawn = {}
end

return M
