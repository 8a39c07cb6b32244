--- The last status of the server, and a short text of it for status lines.

local switches = require('slipstream.switches')

local M = {}

-- Statistics are requested only while a status line shows them, at most once in this time.
local REFRESH_MS = 1000
local SHOWN_WITHIN_MS = 10000

---@class slipstream.Status
---@field state? 'loading'|'ready'|'error'
---@field percent? number
---@field message? string
---@field kind? string
---@field busy? boolean
---@field ending? string the text while the server is not running

---@type slipstream.Status
local status = {}
local last_ms ---@type number?
local tokens_per_pass ---@type number?
local used_at, asked_at = -math.huge, -math.huge

local function redraw()
  vim.cmd.redrawstatus()
end

--- Takes the parameters of `didChangeStatus`.
---@param params slipstream.Status
function M.set(params)
  local was_loading = status.state == 'loading'
  status = vim.deepcopy(params)
  status.percent = type(params.percent) == 'number' and params.percent or nil
  redraw()
  if was_loading and status.state ~= 'loading' then
    require('slipstream.events').refresh()
  end
end

---@param stats table?
---@return number?
local function rate_of_all(stats)
  local tokens = type(stats) == 'table' and stats.tokens or {}
  local num_forwards = tokens.num_forwards or 0
  return num_forwards > 0 and (tokens.num_written or 0) / num_forwards or nil
end

--- Records a visible answer, which arrived `ms` after the request.
---@param client vim.lsp.Client
---@param ms number
function M.note_shown(client, ms)
  last_ms = ms
  local now = vim.uv.now()
  if now - used_at > SHOWN_WITHIN_MS or now - asked_at < REFRESH_MS then
    return
  end
  asked_at = now
  client:request('slipstream/stats', vim.empty_dict(), function(_, stats)
    local last = type(stats) == 'table' and stats.last
    local rate = type(last) == 'table' and tonumber(last.tokens_per_pass) or 0
    -- An answer that was ready before the request took no pass: use the rate of all answers.
    tokens_per_pass = rate > 0 and rate or rate_of_all(stats)
    redraw()
  end)
end

--- The latency of the last visible answer in milliseconds, measured in Neovim.
---@return number?
function M.last_ms()
  return last_ms
end

---@return slipstream.Status
function M.get()
  return status
end

---@return string
local function figures()
  local parts = {}
  if last_ms then
    parts[#parts + 1] = ('%.0f ms'):format(last_ms)
  end
  if tokens_per_pass then
    parts[#parts + 1] = ('%.1f tokens/pass'):format(tokens_per_pass)
  end
  return #parts > 0 and table.concat(parts, ' · ') or 'ready'
end

--- One short text: off, snoozed, loading with its percentage, an error, or the last figures.
---@return string
function M.component()
  used_at = vim.uv.now()
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
  return 'Slipstream: ' .. figures()
end

return M
