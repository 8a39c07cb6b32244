--- A floating window with coloured lines and links to files.

local M = {}

local namespace = vim.api.nvim_create_namespace('slipstream.window')

---@class slipstream.Link
---@field file string
---@field line integer 0-based

---@class slipstream.Page
---@field lines string[]
---@field marks {row: integer, from: integer, to: integer, group: string}[]
---@field links {row: integer, from: integer, to: integer, link: slipstream.Link}[]
local Page = {}
Page.__index = Page

---@return slipstream.Page
function M.page()
  return setmetatable({ lines = { '' }, marks = {}, links = {} }, Page)
end

--- Adds text at the end; it may have several lines.
---@param text string
---@param group string?
---@param link slipstream.Link?
---@return slipstream.Page
function Page:add(text, group, link)
  for number, part in ipairs(vim.split(text, '\n', { plain = true })) do
    if number > 1 then
      self.lines[#self.lines + 1] = ''
    end
    local row, from = #self.lines - 1, #self.lines[#self.lines]
    self.lines[#self.lines] = self.lines[#self.lines] .. part
    local span = { row = row, from = from, to = from + #part }
    if group and part ~= '' then
      table.insert(self.marks, vim.tbl_extend('error', span, { group = group }))
    end
    if link then
      table.insert(self.links, vim.tbl_extend('error', span, { link = link }))
    end
  end
  return self
end

---@param text string?
---@param group string?
---@return slipstream.Page
function Page:line(text, group)
  return self:add((text or '') .. '\n', group)
end

---@param link slipstream.Link
local function open_link(link)
  vim.cmd.edit(vim.fn.fnameescape(link.file))
  local num_lines = vim.api.nvim_buf_line_count(0)
  vim.api.nvim_win_set_cursor(0, { math.min(link.line + 1, num_lines), 0 })
  vim.cmd.normal({ 'zz', bang = true })
end

---@param page slipstream.Page
---@return slipstream.Link?
local function link_under_cursor(page)
  local cursor = vim.api.nvim_win_get_cursor(0)
  for _, span in ipairs(page.links) do
    local is_inside = cursor[2] >= span.from and cursor[2] < math.max(span.to, span.from + 1)
    if span.row == cursor[1] - 1 and is_inside then
      return span.link
    end
  end
end

---@param page slipstream.Page
---@return integer buf
local function filled_buffer(page)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, page.lines)
  for _, mark in ipairs(page.marks) do
    local opts = { end_col = mark.to, hl_group = mark.group }
    vim.api.nvim_buf_set_extmark(buf, namespace, mark.row, mark.from, opts)
  end
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = 'slipstream-info'
  return buf
end

--- Opens the page at the cursor. `q` and `<Esc>` close it, `<CR>` follows the link under the cursor.
---@param title string
---@param page slipstream.Page
---@param actions table<string, fun()>? further keys; each closes the window before its action
function M.open(title, page, actions)
  while #page.lines > 1 and page.lines[#page.lines] == '' do
    table.remove(page.lines)
  end
  vim.cmd.stopinsert()
  local origin = vim.api.nvim_get_current_win()
  local buf = filled_buffer(page)
  local width = vim.fn.strdisplaywidth(title) + 2
  for _, line in ipairs(page.lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line) + 1)
  end
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'cursor',
    row = 1,
    col = 0,
    width = math.min(width, vim.o.columns - 4),
    height = math.min(#page.lines, math.max(1, vim.o.lines - 6)),
    style = 'minimal',
    border = 'rounded',
    title = ' ' .. title .. ' ',
  })
  vim.wo[win].wrap, vim.wo[win].linebreak, vim.wo[win].breakindent = true, true, true
  local height = vim.api.nvim_win_text_height(win, {}).all
  vim.api.nvim_win_set_height(win, math.min(height, math.max(1, vim.o.lines - 6)))
  local function close()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  for _, lhs in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', lhs, close, { buffer = buf, nowait = true, desc = 'Close the window' })
  end
  for lhs, action in pairs(actions or {}) do
    vim.keymap.set('n', lhs, function()
      close()
      vim.api.nvim_set_current_win(origin)
      action()
    end, { buffer = buf, nowait = true })
  end
  vim.keymap.set('n', '<CR>', function()
    local link = link_under_cursor(page)
    if link then
      close()
      vim.api.nvim_set_current_win(origin)
      open_link(link)
    end
  end, { buffer = buf, nowait = true, desc = 'Go to the file of this part' })
end

return M
