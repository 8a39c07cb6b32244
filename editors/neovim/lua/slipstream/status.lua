--- The last status of the server, and a short text of it for status lines.

local switches = require('slipstream.switches')

local M = {}

---@class slipstream.Status
---@field state? 'loading'|'ready'|'error'
---@field percent? number
---@field message? string
---@field kind? string
---@field busy? boolean
---@field ending? string the text while the server is not running

---@type slipstream.Status
local status = {}

--- Takes the parameters of `didChangeStatus`.
---@param params slipstream.Status
function M.set(params)
  local was_loading = status.state == 'loading'
  status = vim.deepcopy(params)
  status.percent = type(params.percent) == 'number' and params.percent or nil
  vim.cmd.redrawstatus()
  if was_loading and status.state ~= 'loading' then
    require('slipstream.events').refresh()
  end
end

---@return slipstream.Status
function M.get()
  return status
end

--- One short text, which no key changes: off, snoozed, loading with its percentage, an error, or ready.
---@return string
function M.component()
  local client = require('slipstream.client').any()
  if switches.snoozed_minutes() > 0 then
    return ('Slipstream: snoozed for %.0f min'):format(math.ceil(switches.snoozed_minutes()))
  elseif switches.reason_off(vim.api.nvim_get_current_buf()) then
    return 'Slipstream: off'
  elseif not client then
    return status.ending and 'Slipstream: ' .. status.ending or ''
  elseif status.state == 'loading' then
    return 'Slipstream: loading' .. (status.percent and (' %.0f %%'):format(status.percent) or '')
  elseif status.state == 'error' then
    return 'Slipstream: error'
  end
  return 'Slipstream: ready'
end

return M
