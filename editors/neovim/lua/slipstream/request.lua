--- When to ask the server and which answers are still good. At most one request is under way.

local clients = require('slipstream.client')
local config = require('slipstream.config')
local gate = require('slipstream.gate')
local places = require('slipstream.place')
local session = require('slipstream.session')
local status = require('slipstream.status')
local suggestions = require('slipstream.suggestion')

local M = {}

local METHOD = 'textDocument/inlineCompletion'
local INVOKED, AUTOMATIC = 1, 2

---@class slipstream.Asked
---@field place slipstream.Place
---@field client vim.lsp.Client
---@field number integer
---@field begin integer nanoseconds
---@field delta integer? for a request of all candidates: how far to go on from the one shown
---@field request_id integer?

---@type slipstream.Asked?
local pending
local num_asked, last_answered = 0, 0
local timer = assert(vim.uv.new_timer())

---@param asked slipstream.Asked
---@param items table[]
---@return slipstream.Suggestion[]
local function understood(asked, items)
  local found = {}
  for _, item in ipairs(items) do
    found[#found + 1] = suggestions.from_item(item, asked.client, asked.place)
  end
  return found
end

--- The server ends a request that was cancelled or overtaken with an error; that is no news.
---@param asked slipstream.Asked
---@param result table?
local function receive(asked, err, result)
  if pending == asked then
    pending = nil
  end
  if err or asked.number < last_answered or not gate.is_open() then
    return
  end
  last_answered = asked.number
  local candidates = understood(asked, result and (result.items or result) or {})
  local is_current = places.is_same(asked.place, places.here())
  local ms = (vim.uv.hrtime() - asked.begin) / 1e6
  if asked.delta then
    if is_current then
      session.offer_all(candidates, asked.delta)
    end
  elseif session.offer(candidates, is_current) then
    status.note_shown(asked.client, ms)
  end
end

---@param kind integer
---@param delta integer?
local function ask(kind, delta)
  M.cancel()
  local place = places.here()
  local client = clients.of(place.buf)
  if not client or not gate.is_open() then
    return
  end
  num_asked = num_asked + 1
  local asked = { place = place, client = client, number = num_asked, begin = vim.uv.hrtime(), delta = delta }
  pending = asked
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(place.buf) },
    position = places.position(place, client.offset_encoding),
    context = { triggerKind = kind },
  }
  local is_sent, request_id = client:request(METHOD, params, function(err, result)
    receive(asked, err, result)
  end, place.buf)
  asked.request_id = is_sent and request_id or nil
end

--- Asks after something was typed, at once or when typing pauses. On a new line typing has paused already.
function M.after_typing()
  local delay = config.get().debounce_ms
  if delay == 0 or not places.here().before:find('%S') then
    ask(AUTOMATIC)
    return
  end
  M.cancel()
  timer:start(delay, 0, vim.schedule_wrap(function()
    ask(AUTOMATIC)
  end))
end

--- Asks because the user wants it.
function M.invoke()
  ask(INVOKED)
end

--- Asks for all candidates, to go `delta` on from the one that is shown.
---@param delta integer
function M.all_candidates(delta)
  ask(INVOKED, delta)
end

--- Ends the request under way; an answer that comes all the same is judged by the text it fits.
function M.cancel()
  timer:stop()
  if pending and pending.request_id and not pending.client:is_stopped() then
    pending.client:cancel_request(pending.request_id)
  end
  pending = nil
end

return M
