--- The public functions: `setup(opts)`, and those for mappings. All are documented in |slipstream.txt|.

local M = {}

--- Sets the options, defines :Slipstream and enables the language server.
---@param opts slipstream.Options?
function M.setup(opts)
  require('slipstream.config').set(opts or {})
  -- A plugin manager that adds the folder late does not source plugin/ files.
  vim.cmd.runtime('plugin/slipstream.lua')
  local problem = require('slipstream.builtin').problem() or require('slipstream.client').problem()
  if problem then
    vim.notify('Slipstream: ' .. problem, vim.log.levels.ERROR)
    return
  end
  require('slipstream.highlights').define()
  vim.lsp.enable('slipstream')
end

--- Inserts the visible suggestion, or a part of it. Returns false without one.
---@param part slipstream.Part? 'all' (default), 'word' or 'line'
---@return boolean
function M.accept(part)
  return require('slipstream.actions').accept(part or 'all')
end

--- Shows the next candidate, or requests a suggestion if none is visible.
---@return boolean
function M.next()
  return require('slipstream.actions').cycle(1)
end

--- Shows the previous candidate.
---@return boolean
function M.previous()
  return require('slipstream.actions').cycle(-1)
end

--- Dismisses the suggestion. Returns false without one.
---@return boolean
function M.dismiss()
  return require('slipstream.actions').dismiss()
end

--- Requests a suggestion now, also where automatic ones are off.
function M.trigger()
  require('slipstream.actions').trigger()
end

--- Jumps to the next edit, then applies it. Asks for one if none is shown. 'all' lists all places of it,
--- to apply them at once.
---@param scope 'all'?
function M.next_edit(scope)
  if scope == 'all' then
    require('slipstream.all_edits').open()
  else
    require('slipstream.next_edit').invoke()
  end
end

--- Whether a suggestion is on the screen.
---@return boolean
function M.is_visible()
  return require('slipstream.actions').is_visible()
end

--- Returns a short text for a status line.
---@return string
function M.status()
  return require('slipstream.status').component()
end

return M
