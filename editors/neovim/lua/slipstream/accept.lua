--- Inserts a suggestion, or a part of it, as one undo step, and notifies the server.

local current_suggestion = require('slipstream.current_suggestion')
local cursors = require('slipstream.cursor')
local suggestions = require('slipstream.suggestion')

local M = {}

---@alias slipstream.Part 'all'|'word'|'line'

---@param view slipstream.View
---@param head string
local function insert(view, head)
  local cursor = view.cursor
  local to = cursor.col + suggestions.num_consumed(view, head)
  local lines = vim.split(head, '\n', { plain = true })
  vim.api.nvim_buf_set_text(cursor.buf, cursor.row, cursor.col, cursor.row, to, lines)
  local col = (#lines == 1 and cursor.col or 0) + #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { cursor.row + #lines, col })
end

---@param view slipstream.View
---@param head string
local function notify_accepted(view, head)
  local client = vim.lsp.get_client_by_id(view.suggestion.client_id)
  if not client then
    return
  end
  local item = view.suggestion.item
  if head ~= view.text then
    local length = suggestions.accepted_units(view, head)
    client:notify('textDocument/didPartiallyAcceptCompletion', { item = item, acceptedLength = length })
  elseif item.command then
    client:exec_cmd(item.command, { bufnr = view.cursor.buf })
  end
end

--- Inserts a part of the visible suggestion. Called between two breaks of the undo sequence.
---@param part slipstream.Part
function M.write(part)
  local view = current_suggestion.visible()
  if not view then
    return
  end
  local head = suggestions.head(view.text, part)
  insert(view, head)
  notify_accepted(view, head)
  if head == view.text then
    current_suggestion.clear()
    return
  end
  -- The rest stays visible without a new request.
  local now = cursors.here()
  if current_suggestion.follow(now) then
    current_suggestion.observe(now)
  end
end

--- Accepts the visible suggestion, or returns false without one.
---@param part slipstream.Part
---@return boolean
function M.accept(part)
  if not current_suggestion.visible() then
    return false
  end
  local write = ("<C-g>u<Cmd>lua require('slipstream.accept').write('%s')<CR><C-g>u"):format(part)
  vim.api.nvim_feedkeys(vim.keycode(write), 'in', false)
  return true
end

return M
