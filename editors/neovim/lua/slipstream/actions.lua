--- The actions of keys and commands, for both ways to draw the ghost text.

local config = require('slipstream.config')

local M = {}

local function is_builtin()
  return config.get().ghost == 'builtin'
end

---@return boolean
function M.is_visible()
  if is_builtin() then
    return require('slipstream.builtin').is_visible()
  end
  return require('slipstream.current_suggestion').visible() ~= nil
end

---@param part slipstream.Part
---@return boolean
function M.accept(part)
  if is_builtin() then
    return require('slipstream.builtin').accept(part)
  end
  return require('slipstream.accept').accept(part)
end

--- Shows another candidate. Requests all candidates first, or one suggestion where none is visible.
---@param delta integer
---@return boolean
function M.cycle(delta)
  if is_builtin() then
    return require('slipstream.builtin').cycle(delta)
  end
  local current_suggestion, request = require('slipstream.current_suggestion'), require('slipstream.request')
  if not current_suggestion.visible() then
    request.invoke()
  elseif current_suggestion.is_complete() then
    current_suggestion.step(delta)
  else
    request.all_candidates(delta)
  end
  return true
end

---@return boolean
function M.dismiss()
  if is_builtin() then
    return require('slipstream.builtin').dismiss()
  end
  local current_suggestion = require('slipstream.current_suggestion')
  local was_visible = current_suggestion.visible() ~= nil
  require('slipstream.request').cancel()
  current_suggestion.clear()
  return was_visible
end

function M.trigger()
  if is_builtin() then
    require('slipstream.builtin').trigger()
  else
    require('slipstream.request').invoke()
  end
end

return M
