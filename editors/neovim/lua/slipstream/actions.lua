--- What keys and commands can do, whoever draws the ghost text. Owns that choice and nothing else.

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
  return require('slipstream.session').visible() ~= nil
end

---@param part slipstream.Part
---@return boolean
function M.accept(part)
  if is_builtin() then
    return require('slipstream.builtin').accept(part)
  end
  return require('slipstream.accept').accept(part)
end

--- Shows another candidate; asks for them when they are not known, or when nothing is shown.
---@param delta integer
---@return boolean
function M.cycle(delta)
  if is_builtin() then
    return require('slipstream.builtin').cycle(delta)
  end
  local session, request = require('slipstream.session'), require('slipstream.request')
  if not session.visible() then
    request.invoke()
  elseif session.is_complete() then
    session.step(delta)
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
  local session = require('slipstream.session')
  local was_visible = session.visible() ~= nil
  require('slipstream.request').cancel()
  session.clear()
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
