--- The requests for suggestions, at most one at a time, and the choice of answers that are still valid.

local clients = require('slipstream.client')
local config = require('slipstream.config')
local switches = require('slipstream.switches')
local cursors = require('slipstream.cursor')
local current_suggestion = require('slipstream.current_suggestion')
local suggestions = require('slipstream.suggestion')

local M = {}

local METHOD = 'textDocument/inlineCompletion'
local INVOKED, AUTOMATIC = 1, 2

---@class slipstream.Asked
---@field cursor slipstream.Cursor
---@field client vim.lsp.Client
---@field number integer
---@field delta integer? for all candidates: the number of steps from the visible one
---@field request_id integer?

---@type slipstream.Asked?
local pending
local num_asked, last_answered = 0, 0
---@type slipstream.Cursor? the position of the last answer, if it had no suggestion
local empty_at
local timer = assert(vim.uv.new_timer())

---@param asked slipstream.Asked
---@param items table[]
---@return slipstream.Suggestion[]
local function suggestions_in(asked, items)
  local found = {}
  for _, item in ipairs(items) do
    found[#found + 1] = suggestions.from_item(item, asked.client, asked.cursor)
  end
  return found
end

--- Takes an answer. Errors are ignored: they end requests that were cancelled or superseded.
---@param asked slipstream.Asked
---@param result table?
local function receive(asked, err, result)
  if pending == asked then
    pending = nil
  end
  if err or asked.number < last_answered or not switches.can_suggest() then
    return
  end
  last_answered = asked.number
  local candidates = suggestions_in(asked, result and (result.items or result) or {})
  local is_current = cursors.is_same(asked.cursor, cursors.here())
  empty_at = #candidates == 0 and asked.cursor or nil
  if asked.delta then
    if is_current then
      current_suggestion.offer_all(candidates, asked.delta)
    end
  elseif current_suggestion.offer(candidates, is_current) then
    -- A suggestion comes before the next edit, and takes its key.
    require('slipstream.next_edit').redraw()
  end
end

---@param kind integer
---@param delta integer?
local function ask(kind, delta)
  M.cancel()
  local cursor = cursors.here()
  local client = clients.of(cursor.buf)
  if not client or not switches.can_suggest() then
    return
  end
  num_asked = num_asked + 1
  local asked = {
    cursor = cursor,
    client = client,
    number = num_asked,
    delta = delta,
  }
  pending = asked
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(cursor.buf) },
    position = cursors.position(cursor, client.offset_encoding),
    context = { triggerKind = kind },
  }
  local is_sent, request_id = client:request(METHOD, params, function(err, result)
    receive(asked, err, result)
  end, cursor.buf)
  asked.request_id = is_sent and request_id or nil
end

--- Requests a suggestion after a key, at once or when typing pauses. An empty line counts as a pause.
function M.after_typing()
  local delay = config.get().debounce_ms
  if delay == 0 or not cursors.here().before:find('%S') then
    ask(AUTOMATIC)
    return
  end
  M.cancel()
  timer:start(delay, 0, vim.schedule_wrap(function()
    ask(AUTOMATIC)
  end))
end

--- Requests again where the suggestion grew. A request that is pending here gets the longer text anyway.
function M.again()
  if not pending then
    ask(AUTOMATIC)
  end
end

--- Whether the last answer was that there is no suggestion at this cursor.
---@return boolean
function M.was_empty()
  return empty_at ~= nil and cursors.is_same(empty_at, cursors.here())
end

--- Requests a suggestion on the user's behalf.
function M.invoke()
  ask(INVOKED)
end

--- Requests all candidates, to show the one `delta` after the visible one.
---@param delta integer
function M.all_candidates(delta)
  ask(INVOKED, delta)
end

--- Cancels the pending request. If its answer arrives all the same, it is shown only if it fits the text.
function M.cancel()
  timer:stop()
  clients.cancel(pending)
  pending = nil
end

return M
