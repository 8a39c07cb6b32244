--- What the server last said of itself, in a few words for a status line.

local gate = require('slipstream.gate')

local M = {}

-- The server is asked for its figures only while a status line shows them, and no more often than this.
local REFRESH_MS = 1000
local SHOWN_WITHIN_MS = 10000

---@class slipstream.Status
---@field state? 'loading'|'ready'|'error'
---@field percent? number
---@field message? string
---@field kind? string
---@field busy? boolean
---@field ending? string what there is to say while no server runs

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

--- Takes note of an answer that is on the screen, `ms` after it was asked for.
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
    -- An answer that was ready beforehand took no pass: then the rate of all answers so far stands for it.
    tokens_per_pass = rate > 0 and rate or rate_of_all(stats)
    redraw()
  end)
end

--- The milliseconds that the last shown answer took, as seen from here.
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
  if gate.snoozed_minutes() > 0 then
    return ('Slipstream: snoozed %.0f min'):format(math.ceil(gate.snoozed_minutes()))
  elseif gate.reason_off(vim.api.nvim_get_current_buf()) then
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
