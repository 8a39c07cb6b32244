--- The suggestion at the cursor: its candidates, the visible one, and how typing shortens it.
---
--- Sends no request and inserts nothing.

local ghost = require('slipstream.ghost')
local cursors = require('slipstream.cursor')
local suggestions = require('slipstream.suggestion')

local M = {}

---@class slipstream.Current
---@field candidates slipstream.Suggestion[]
---@field index integer
---@field is_complete boolean whether it has all candidates

---@type slipstream.Current?
local current
---@type slipstream.Cursor?
local seen
---@type table<string, boolean> the items that the server knows to be shown
local notified = setmetatable({}, { __mode = 'k' })

---@param suggestion slipstream.Suggestion
local function notify_shown(suggestion)
  if notified[suggestion.item] then
    return
  end
  notified[suggestion.item] = true
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  if client then
    client:notify('textDocument/didShowCompletion', { item = suggestion.item })
  end
end

--- The candidates that still fit at the cursor, without duplicates.
---@param now slipstream.Cursor
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

---@param now slipstream.Cursor
---@return slipstream.View?
local function current_view(now)
  local candidate = current and current.candidates[current.index]
  return candidate and suggestions.view(candidate, now)
end

---@param view slipstream.View
local function show(view)
  local hint
  if current and current.is_complete then
    local views, index = fitting(view.cursor)
    hint = #views > 1 and (' %d/%d'):format(index, #views) or nil
  end
  ghost.draw(view, hint)
  notify_shown(view.suggestion)
end

--- Records the cursor, and returns whether the text or the position changed since the last call.
---@param now slipstream.Cursor
---@return boolean is_new, boolean is_typed
function M.observe(now)
  local before = seen
  seen = now
  local is_new = not cursors.is_same(before, now)
  return is_new, is_new and (not before or before.buf ~= now.buf or before.tick ~= now.tick)
end

--- Shortens the visible suggestion to fit the cursor, or hides it if it no longer fits.
---@param now slipstream.Cursor
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

--- The visible suggestion, if it fits the current text.
---@return slipstream.View?
function M.visible()
  return current_view(cursors.here())
end

--- Takes an answer without the candidates that no longer fit. A shorter version of the visible text changes
--- nothing.
---@param candidates slipstream.Suggestion[]
---@param is_current boolean whether the cursor is where it was at the request
---@return boolean is_shown
function M.offer(candidates, is_current)
  local now = cursors.here()
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

--- Takes all candidates for the cursor and shows the one `delta` after the visible one.
---@param candidates slipstream.Suggestion[]
---@param delta integer
function M.offer_all(candidates, delta)
  local now = cursors.here()
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

--- Shows the candidate `delta` after the visible one; the first follows the last.
---@param delta integer
function M.step(delta)
  local views, index = fitting(cursors.here())
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

--- Whether it has all candidates.
---@return boolean
function M.is_complete()
  return current ~= nil and current.is_complete
end

--- Discards the suggestion and hides it.
function M.clear()
  current = nil
  ghost.clear()
end

return M
