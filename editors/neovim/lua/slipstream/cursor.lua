--- The position of the cursor and the text around it, in bytes and in the protocol's units.

local M = {}

---@class slipstream.Cursor
---@field buf integer
---@field tick integer the buffer's changedtick
---@field row integer 0-based line
---@field col integer byte column
---@field before string the line left of the cursor
---@field right string the line right of the cursor
---@field num_lines integer

--- The cursor of the current window.
---@return slipstream.Cursor
function M.here()
  local buf = vim.api.nvim_get_current_buf()
  local cursor = vim.api.nvim_win_get_cursor(0)
  local row, col = cursor[1] - 1, cursor[2]
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  return {
    buf = buf,
    tick = vim.api.nvim_buf_get_changedtick(buf),
    row = row,
    col = col,
    before = line:sub(1, col),
    right = line:sub(col + 1),
    num_lines = vim.api.nvim_buf_line_count(buf),
  }
end

--- Whether neither the text nor the position changed from one to the other.
---@param a slipstream.Cursor?
---@param b slipstream.Cursor?
---@return boolean
function M.is_same(a, b)
  return a ~= nil and b ~= nil and a.buf == b.buf and a.tick == b.tick and a.row == b.row and a.col == b.col
end

---@param cursor slipstream.Cursor
---@param encoding string 'utf-8', 'utf-16' or 'utf-32'
---@return lsp.Position
function M.position(cursor, encoding)
  return { line = cursor.row, character = vim.str_utfindex(cursor.before, encoding) }
end

--- The byte position in a loaded buffer, or nil if the buffer has no such line.
---@param buf integer
---@param position lsp.Position
---@param encoding string
---@return integer? row, integer? col
function M.byte_position(buf, position, encoding)
  local line = vim.api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1]
  if line then
    return position.line, vim.str_byteindex(line, encoding, position.character, false)
  end
end

return M
