--- The suggestion that stands at the cursor: its candidates, which one is shown, and how typing shrinks it.
---
--- Owns that state. Asks nothing and inserts nothing.

local ghost = require('slipstream.ghost')
local places = require('slipstream.place')
local suggestions = require('slipstream.suggestion')

local M = {}

---@class slipstream.Current
---@field candidates slipstream.Suggestion[]
---@field index integer
---@field is_complete boolean whether all candidates were asked for

---@type slipstream.Current?
local current
---@type slipstream.Place?
local seen
---@type table<string, boolean> whether the server was told that an item was shown
local told = setmetatable({}, { __mode = 'k' })

---@param suggestion slipstream.Suggestion
local function tell_shown(suggestion)
  if told[suggestion.item] then
    return
  end
  told[suggestion.item] = true
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  if client then
    client:notify('textDocument/didShowCompletion', { item = suggestion.item })
  end
end

--- The candidates that still fit at a place, without those that say the same.
---@param now slipstream.Place
---@return slipstream.View[], integer? index of the current one among them
local function fitting(now)
  local views, index, known = {}, nil, {}
  for number, candidate in ipairs(current and current.candidates or {}) do
    local view = suggestions.view(candidate, now)
    if view and not known[view.text] then
      known[view.text] = #views + 1
      views[#views + 1] = view
    end
    if view and current and number == current.index then
      index = known[view.text]
    end
  end
  return views, index
end

---@param now slipstream.Place
---@return slipstream.View?
local function current_view(now)
  local candidate = current and current.candidates[current.index]
  return candidate and suggestions.view(candidate, now)
end

---@param view slipstream.View
local function show(view)
  local hint
  if current and current.is_complete then
    local views, index = fitting(view.place)
    hint = #views > 1 and (' %d/%d'):format(index, #views) or nil
  end
  ghost.draw(view, hint)
  tell_shown(view.suggestion)
end

--- Whether something was typed or moved since the last call; takes note of the place.
---@param now slipstream.Place
---@return boolean is_new, boolean is_typed
function M.observe(now)
  local before = seen
  seen = now
  local is_new = not places.is_same(before, now)
  return is_new, is_new and (not before or before.buf ~= now.buf or before.tick ~= now.tick)
end

--- Fits what is shown to the place: shrinks it, or takes it away when it no longer fits.
---@param now slipstream.Place
---@return slipstream.View?
function M.follow(now)
  local view = current_view(now)
  if view then
    show(view)
  else
    M.clear()
  end
  return view
end

--- What is on the screen, if it fits the text as it is at this moment.
---@return slipstream.View?
function M.visible()
  return current_view(places.here())
end

--- Takes an answer. What no longer fits is left out; the same text, only cut shorter, changes nothing.
---@param candidates slipstream.Suggestion[]
---@param is_current boolean whether the answer was asked for exactly this place
---@return boolean is_shown
function M.offer(candidates, is_current)
  local now = places.here()
  local shown = current_view(now)
  local fits = vim.tbl_filter(function(candidate)
    return suggestions.view(candidate, now) ~= nil
  end, candidates)
  if #fits == 0 then
    if is_current then
      M.clear()
    end
    return false
  end
  local new = suggestions.view(fits[1], now)
  local is_kept = shown and new and vim.startswith(shown.text, new.text) and #new.text < #shown.text
  if not is_kept then
    current = { candidates = fits, index = 1, is_complete = false }
    M.follow(now)
  end
  return true
end

--- Takes all candidates for the cursor's place and goes `delta` on from the one that is shown.
---@param candidates slipstream.Suggestion[]
---@param delta integer
function M.offer_all(candidates, delta)
  local now = places.here()
  local shown = current_view(now)
  if shown then
    table.insert(candidates, 1, shown.suggestion)
  end
  if #candidates == 0 then
    return M.clear()
  end
  current = { candidates = candidates, index = 1, is_complete = true }
  if shown then
    M.step(delta)
  else
    M.follow(now)
  end
end

--- Shows the candidate `delta` on, round and round.
---@param delta integer
function M.step(delta)
  local views, index = fitting(places.here())
  if not current or not index then
    return
  end
  local chosen = views[(index - 1 + delta) % #views + 1]
  for number, candidate in ipairs(current.candidates) do
    if candidate == chosen.suggestion then
      current.index = number
    end
  end
  show(chosen)
end

--- Whether all candidates are known.
---@return boolean
function M.is_complete()
  return current ~= nil and current.is_complete
end

--- Forgets the suggestion and takes it off the screen.
function M.clear()
  current = nil
  ghost.clear()
end

return M
