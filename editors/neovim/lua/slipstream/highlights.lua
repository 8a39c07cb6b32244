--- The highlight groups, with defaults that a colour scheme or the user can override.

local M = {}

-- Groups that Neovim's own colours draw at a contrast of 4.5 or more, on both backgrounds.
local links = {
  SlipstreamGhost = 'Comment',
  SlipstreamAdded = 'DiffAdd',
  SlipstreamHint = 'Title',
  SlipstreamTarget = 'NormalFloat',
  SlipstreamNgram = 'String',
  SlipstreamNeural = 'Identifier',
  SlipstreamSelected = 'Statement',
  SlipstreamTitle = 'Title',
  SlipstreamMuted = 'Comment',
}

local function apply()
  for name, target in pairs(links) do
    vim.api.nvim_set_hl(0, name, { link = target, default = true })
  end
  vim.api.nvim_set_hl(0, 'SlipstreamReplaced', { strikethrough = true, default = true })
end

--- Defines the groups, and again after each change of the colour scheme.
function M.define()
  apply()
  vim.api.nvim_create_autocmd('ColorScheme', {
    group = vim.api.nvim_create_augroup('slipstream.highlights', {}),
    callback = apply,
  })
end

--- The group for text from a source.
---@param source string
---@return string
function M.of_source(source)
  local name = 'Slipstream' .. source:sub(1, 1):upper() .. source:sub(2)
  return links[name] and name or 'SlipstreamTarget'
end

return M
