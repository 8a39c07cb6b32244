--- Suggestions that grow while the user looks at them: the server notifies, and the plugin requests again.
---
--- Draws nothing. The answer begins with the text on the screen, so the ghost text is extended in place.

local cursors = require('slipstream.cursor')
local current_suggestion = require('slipstream.current_suggestion')

local M = {}

M.METHOD = 'slipstream/suggestionGrew'

--- Announces that the plugin requests again. Neovim's own ghost text does not.
---@return table
function M.capabilities()
  local is_own = require('slipstream.config').get().ghost ~= 'builtin'
  return is_own and { slipstream = { suggestionGrew = true } } or vim.empty_dict()
end

---@param params table
---@param now slipstream.Cursor
---@param client vim.lsp.Client
---@return boolean
local function is_here(params, now, client)
  local document, position = params.textDocument, cursors.position(now, client.offset_encoding)
  local is_same_text = document.uri == vim.uri_from_bufnr(now.buf)
    and document.version == vim.lsp.util.buf_versions[now.buf]
  return is_same_text and vim.deep_equal(params.position, position)
end

--- Requests again, unless the user left the position, dismissed the suggestion or has a menu open.
---@param params table
---@param client vim.lsp.Client
function M.grew(params, client)
  local request = require('slipstream.request')
  local is_typing = vim.api.nvim_get_mode().mode:sub(1, 1) == 'i' and vim.fn.pumvisible() == 0
  if not is_typing or not is_here(params, cursors.here(), client) then
    return
  end
  if current_suggestion.visible() or request.was_empty() then
    request.again()
  end
end

return M
