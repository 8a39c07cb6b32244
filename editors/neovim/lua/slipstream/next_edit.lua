--- The next edit: asks for one when you pause, shows where it belongs, jumps there and applies it.
---
--- Holds one proposal. A change of its buffer discards it, and cancels the request that is on its way.

local clients = require('slipstream.client')
local cursors = require('slipstream.cursor')
local drawing = require('slipstream.edit_drawing')
local switches = require('slipstream.switches')

local M = {}

local METHOD = 'textDocument/copilotInlineEdit'
local INVOKED, AUTOMATIC = 1, 2
local PAUSE_MS = 100

---@class slipstream.Edit
---@field client vim.lsp.Client
---@field buf integer
---@field tick integer? the changedtick of the buffer that it was made for; nil if its file is not open
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer
---@field lines string[] the new text
---@field num_places integer? the places of its kind in its file
---@field command lsp.Command?

---@type slipstream.Edit?
local current
---@type { client: vim.lsp.Client, request_id: integer? }?
local pending
---@type integer? the buffer of a file that was opened for an edit, until the server reads it
local opened
local timer = assert(vim.uv.new_timer())
local group = vim.api.nvim_create_augroup('slipstream.next_edit', {})

--- Converts an edit of the answer, or returns nil if its document changed. An edit of a file that is not open
--- has no version; the file is opened at its place, and the server asked again.
---@param item table
---@param client vim.lsp.Client
---@return slipstream.Edit?
local function from_item(item, client)
  local buf = vim.uri_to_bufnr(item.textDocument.uri)
  local is_loaded = vim.api.nvim_buf_is_loaded(buf)
  local version = item.textDocument.version
  if version == nil or version == vim.NIL then -- Neovim 0.11 and 0.12
    local row, end_row = item.range.start.line, item.range['end'].line
    local edit = { client = client, buf = buf, row = row, col = 0, end_row = end_row, end_col = 0 }
    edit.lines, edit.command = { '' }, item.command
    return not is_loaded and edit or nil
  end
  if not is_loaded or vim.lsp.util.buf_versions[buf] ~= version then
    return nil
  end
  local row, col = cursors.byte_position(buf, item.range.start, client.offset_encoding)
  local end_row, end_col = cursors.byte_position(buf, item.range['end'], client.offset_encoding)
  if not (row and end_row) then
    return nil
  end
  return {
    client = client,
    buf = buf,
    tick = vim.api.nvim_buf_get_changedtick(buf),
    row = row,
    col = col,
    end_row = end_row,
    end_col = end_col,
    lines = vim.split(item.text:gsub('\r\n', '\n'), '\n', { plain = true }),
    num_places = item.numPlaces,
    command = item.command,
  }
end

local function is_insert_mode()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
end

--- The proposal, if its buffer is as it was.
---@return slipstream.Edit?
local function valid()
  local edit = current
  if not edit then
    return nil
  end
  local is_loaded = vim.api.nvim_buf_is_loaded(edit.buf)
  local tick = is_loaded and vim.api.nvim_buf_get_changedtick(edit.buf) or nil
  return tick == edit.tick and edit or nil
end

--- The proposal on the screen. A suggestion at the cursor and the completion menu come before it.
---@return slipstream.Edit?
function M.visible()
  local edit = valid()
  if not edit or vim.fn.pumvisible() == 1 then
    return nil
  end
  return not (is_insert_mode() and require('slipstream.actions').is_visible()) and edit or nil
end

---@param edit slipstream.Edit
---@return boolean
local function is_at_cursor(edit)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  return vim.api.nvim_get_current_buf() == edit.buf and edit.row <= row and row <= edit.end_row
end

--- Draws the proposal as it belongs to the cursor, or hides it.
function M.redraw()
  local edit = M.visible()
  drawing.clear()
  require('slipstream.keymaps').set_edit_keys(edit and vim.api.nvim_get_current_buf() or nil)
  if edit then
    drawing.draw(edit, is_at_cursor(edit))
  end
end

--- Cancels the request that is on its way.
function M.cancel()
  timer:stop()
  clients.cancel(pending)
  pending = nil
end

--- Discards the proposal and hides it.
function M.clear()
  M.cancel()
  current = nil
  M.redraw()
end

--- Whether the current window may show an edit now.
---@return boolean
local function can_propose()
  local is_in_macro = vim.fn.reg_recording() ~= '' or vim.fn.reg_executing() ~= ''
  return not is_in_macro and switches.reason_off(vim.api.nvim_get_current_buf()) == nil
end

---@param kind integer
local function ask(kind)
  M.cancel()
  local cursor = cursors.here()
  local client = clients.of(cursor.buf)
  if not client or not can_propose() then
    return
  end
  local asked = { client = client }
  pending = asked
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(cursor.buf), version = vim.lsp.util.buf_versions[cursor.buf] },
    position = cursors.position(cursor, client.offset_encoding),
    context = { triggerKind = kind, otherDocuments = true, otherFiles = true },
  }
  local is_sent, request_id = client:request(METHOD, params, function(err, result)
    if pending ~= asked then
      return
    end
    pending = nil
    local item = not err and result and result.edits and result.edits[1]
    current = item and from_item(item, client) or nil
    M.redraw()
    if kind == INVOKED and not current then
      vim.notify(require('slipstream.all_edits').none(result), vim.log.levels.INFO)
    end
  end, cursor.buf)
  asked.request_id = is_sent and request_id or nil
end

--- Asks for an edit when the text has rested.
---@param kind integer
local function ask_soon(kind)
  M.cancel()
  timer:start(PAUSE_MS, 0, vim.schedule_wrap(function()
    ask(kind)
  end))
end

---@param edit slipstream.Edit
local function jump(edit)
  vim.cmd("normal! m'")
  if not edit.tick then
    opened = edit.buf
    vim.bo[edit.buf].buflisted = true
    M.clear()
  end
  if vim.api.nvim_get_current_buf() ~= edit.buf then
    vim.api.nvim_win_set_buf(0, edit.buf)
  end
  local row = math.min(edit.row + 1, vim.api.nvim_buf_line_count(edit.buf))
  vim.api.nvim_win_set_cursor(0, { row, edit.col })
  M.redraw()
end

--- Applies the proposal as one step of undo, and notifies the server.
function M.apply()
  local edit = valid()
  if not edit or not edit.tick then
    return
  end
  M.clear()
  vim.api.nvim_buf_set_text(edit.buf, edit.row, edit.col, edit.end_row, edit.end_col, edit.lines)
  local col = (#edit.lines == 1 and edit.col or 0) + #edit.lines[#edit.lines]
  vim.api.nvim_win_set_cursor(0, { edit.row + #edit.lines, col })
  if edit.command then
    edit.client:exec_cmd(edit.command, { bufnr = edit.buf })
  end
end

--- Jumps to the proposal, or applies it where the cursor is there. Returns false without one.
---@return boolean
function M.step()
  local edit = M.visible()
  if not edit then
    return false
  end
  if not is_at_cursor(edit) then
    jump(edit)
  elseif is_insert_mode() then
    local keys = "<C-g>u<Cmd>lua require('slipstream.next_edit').apply()<CR><C-g>u"
    vim.api.nvim_feedkeys(vim.keycode(keys), 'in', false)
  else
    M.apply()
  end
  return true
end

--- Dismisses the proposal for good. Returns false without one.
---@return boolean
function M.dismiss()
  local edit = M.visible()
  if not edit then
    return false
  end
  M.clear()
  local id = edit.command and edit.command.arguments and edit.command.arguments[1]
  edit.client:request('workspace/executeCommand', { command = 'slipstream.rejectedEdit', arguments = { id } })
  return true
end

--- Asks for the next edit on the user's behalf, or steps to the one that is shown.
function M.invoke()
  if not M.step() then
    ask(INVOKED)
  end
end

--- Follows the changes of a buffer that the client attached to.
---@param buf integer
function M.attach(buf)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  local function on(names, callback)
    vim.api.nvim_create_autocmd(names, { group = group, buffer = buf, callback = callback })
  end
  on({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, function()
    M.clear()
    ask_soon(AUTOMATIC)
  end)
  on({ 'InsertLeave' }, function()
    if current then
      M.redraw()
    else
      ask_soon(AUTOMATIC)
    end
  end)
  on({ 'CursorMoved', 'CursorMovedI', 'CompleteDone', 'InsertEnter', 'BufEnter' }, function()
    if current then
      M.redraw()
    end
  end)
  on({ 'BufLeave' }, M.cancel)
  if opened == buf then
    opened = nil
    ask_soon(INVOKED)
  end
end

---@param buf integer
function M.detach(buf)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  if current and current.buf == buf then
    M.clear()
  end
end

vim.api.nvim_create_autocmd('WinScrolled', {
  group = group,
  callback = function()
    if current then
      M.redraw()
    end
  end,
})

return M
