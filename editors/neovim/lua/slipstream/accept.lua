--- Writes a suggestion, or a part of it, into the buffer and tells the server. Each time is one undo step.

local session = require('slipstream.session')
local places = require('slipstream.place')
local suggestions = require('slipstream.suggestion')

local M = {}

---@alias slipstream.Part 'all'|'word'|'line'

---@param view slipstream.View
---@param head string
local function insert(view, head)
  local place = view.place
  local to = place.col + suggestions.num_consumed(view, head)
  local lines = vim.split(head, '\n', { plain = true })
  vim.api.nvim_buf_set_text(place.buf, place.row, place.col, place.row, to, lines)
  local col = (#lines == 1 and place.col or 0) + #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { place.row + #lines, col })
end

---@param view slipstream.View
---@param head string
local function tell(view, head)
  local client = vim.lsp.get_client_by_id(view.suggestion.client_id)
  if not client then
    return
  end
  local item = view.suggestion.item
  if head ~= view.text then
    local length = suggestions.accepted_units(view, head)
    client:notify('textDocument/didPartiallyAcceptCompletion', { item = item, acceptedLength = length })
  elseif item.command then
    client:exec_cmd(item.command, { bufnr = view.place.buf })
  end
end

--- Writes the part that fits at this moment. Called between two breaks of the undo sequence.
---@param part slipstream.Part
function M.write(part)
  local view = session.visible()
  if not view then
    return
  end
  local head = suggestions.head(view.text, part)
  insert(view, head)
  tell(view, head)
  if head == view.text then
    session.clear()
    return
  end
  -- What is left goes on being shown; there is no need to ask for it again.
  local now = places.here()
  if session.follow(now) then
    session.observe(now)
  end
end

--- Accepts what is shown. Returns false when nothing is.
---@param part slipstream.Part
---@return boolean
function M.accept(part)
  if not session.visible() then
    return false
  end
  local write = ("<C-g>u<Cmd>lua require('slipstream.accept').write('%s')<CR><C-g>u"):format(part)
  vim.api.nvim_feedkeys(vim.keycode(write), 'in', false)
  return true
end

return M
