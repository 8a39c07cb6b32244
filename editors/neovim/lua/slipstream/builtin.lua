--- Drawing by `vim.lsp.inline_completion` of Neovim 0.12. The only module that calls it.

local config = require('slipstream.config')
local switches = require('slipstream.switches')
local suggestions = require('slipstream.suggestion')

local M = {}

--- The reason why this Neovim cannot do what the options ask for, or nil.
---@return string?
function M.problem()
  if config.get().ghost == 'builtin' and not vim.lsp.inline_completion then
    return "the option ghost = 'builtin' needs Neovim 0.12. Without it the plugin draws the ghost text."
  end
end

--- Turns Neovim's inline completion on or off in attached buffers, according to the switches.
---@param buf integer? only this one
function M.follow_switches(buf)
  local buffers = buf and { buf } or {}
  if not buf then
    for _, client in ipairs(vim.lsp.get_clients({ name = 'slipstream' })) do
      vim.list_extend(buffers, vim.tbl_keys(client.attached_buffers))
    end
  end
  for _, each in ipairs(buffers) do
    vim.lsp.inline_completion.enable(switches.reason_off(each) == nil, { bufnr = each })
  end
end

local function namespace()
  return vim.api.nvim_get_namespaces()['nvim.lsp.inline_completion']
end

---@return boolean
function M.is_visible()
  local known = namespace()
  return known ~= nil and #vim.api.nvim_buf_get_extmarks(0, known, 0, -1, { limit = 1 }) > 0
end

--- Shortens an item to the first part of the text that is not typed yet, and removes its command.
---@param item vim.lsp.inline_completion.Item
---@param part slipstream.Part
local function shortened(item, part)
  local text = item.insert_text
  if type(text) ~= 'string' or not item.range then
    return item
  end
  local row, col, end_row, end_col = item.range:to_extmark()
  local cursor = vim.api.nvim_win_get_cursor(0)
  local typed = cursor[1] - 1 == row and math.max(0, cursor[2] - col) or 0
  local head = suggestions.head(text:sub(typed + 1), part)
  if typed + #head < #text then
    item.insert_text, item.command = text:sub(1, typed + #head), nil
    -- The text that the rest would replace stays.
    local kept_end = math.min(end_col, col + typed)
    item.range = vim.range.extmark(item.range.buf, row, col, end_row, kept_end)
  end
  return item
end

---@param part slipstream.Part
---@return boolean
function M.accept(part)
  if not M.is_visible() then
    return false
  end
  if part == 'all' then
    return vim.lsp.inline_completion.get()
  end
  return vim.lsp.inline_completion.get({
    on_accept = function(item)
      return shortened(item, part)
    end,
  })
end

---@param delta integer
---@return boolean
function M.cycle(delta)
  if not M.is_visible() then
    return false
  end
  vim.lsp.inline_completion.select({ count = delta })
  return true
end

--- Dismisses the suggestion. Neovim can only switch inline completion off and on again.
---@return boolean
function M.dismiss()
  if not M.is_visible() then
    return false
  end
  local buf = vim.api.nvim_get_current_buf()
  vim.lsp.inline_completion.enable(false, { bufnr = buf })
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
  return true
end

--- Neovim has no public function that requests a suggestion.
function M.trigger()
  local message = "Slipstream: with the option ghost = 'builtin', Neovim decides when to suggest."
  vim.notify(message, vim.log.levels.INFO)
end

return M
