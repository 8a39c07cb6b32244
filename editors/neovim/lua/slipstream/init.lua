--- The public face: `setup(opts)` and what a user may call from own mappings.
---
--- Owns no state. Everything here is documented in |slipstream.txt|.

local M = {}

--- Takes the options, makes :Slipstream available and starts the language server for fitting buffers.
---@param opts slipstream.Options?
function M.setup(opts)
  require('slipstream.config').set(opts or {})
  -- A plugin manager that adds the folder late sources no plugin/ file.
  vim.cmd.runtime('plugin/slipstream.lua')
  local problem = require('slipstream.builtin').problem() or require('slipstream.client').problem()
  if problem then
    vim.notify('Slipstream: ' .. problem, vim.log.levels.ERROR)
    return
  end
  require('slipstream.highlights').define()
  vim.lsp.enable('slipstream')
end

--- Inserts the visible suggestion, or a part of it. Returns false when there is none.
---@param part slipstream.Part? 'all' (default), 'word' or 'line'
---@return boolean
function M.accept(part)
  return require('slipstream.actions').accept(part or 'all')
end

--- Shows the next candidate, asking for several the first time; without a suggestion it asks for one.
---@return boolean
function M.next()
  return require('slipstream.actions').cycle(1)
end

--- Shows the previous candidate.
---@return boolean
function M.previous()
  return require('slipstream.actions').cycle(-1)
end

--- Takes the suggestion off the screen. Returns false when there is none.
---@return boolean
function M.dismiss()
  return require('slipstream.actions').dismiss()
end

--- Asks for a suggestion now, wherever automatic ones are off.
function M.trigger()
  require('slipstream.actions').trigger()
end

--- Whether a suggestion is on the screen.
---@return boolean
function M.is_visible()
  return require('slipstream.actions').is_visible()
end

--- A short text for a status line.
---@return string
function M.status()
  return require('slipstream.status').component()
end

return M
