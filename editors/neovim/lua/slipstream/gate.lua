--- Whether suggestions are wanted here and now: switches, snooze, and states of the editor in which
--- ghost text would be in the way. Owns the switches.

local config = require('slipstream.config')

local M = {}

---@type boolean?
local is_enabled
---@type number? in milliseconds of vim.uv.now()
local snoozed_until

-- What is typed in one line of a block is written in the others afterwards; an accepted text would not be.
local is_block_insert = false

---@param is_block boolean whether insert mode was entered from a visual block
function M.set_block_insert(is_block)
  is_block_insert = is_block
end

---@return boolean
function M.is_enabled()
  if is_enabled == nil then
    return config.get().enabled
  end
  return is_enabled
end

---@param enabled boolean
function M.enable(enabled)
  is_enabled = enabled
  snoozed_until = nil
end

---@param minutes number
function M.snooze(minutes)
  snoozed_until = vim.uv.now() + minutes * 60000
end

--- Ends the snooze; what is switched off stays so.
function M.resume()
  snoozed_until = nil
end

--- Minutes of quiet that are left, 0 when none are.
---@return number
function M.snoozed_minutes()
  return snoozed_until and math.max(0, snoozed_until - vim.uv.now()) / 60000 or 0
end

---@param filetype string
---@return boolean
function M.is_filetype_enabled(filetype)
  local filetypes = config.get().filetypes
  local own = filetypes[filetype]
  if own ~= nil then
    return own
  end
  return filetypes['*'] ~= false
end

--- Why nothing is suggested in a buffer, or nil.
---@param buf integer
---@return string?
function M.reason_off(buf)
  if vim.b[buf].slipstream_enabled == false then
    return 'Switched off in this buffer.'
  elseif vim.b[buf].slipstream_enabled == nil and not M.is_enabled() then
    return 'Switched off.'
  elseif not M.is_filetype_enabled(vim.bo[buf].filetype) then
    return ('Switched off for the filetype %s.'):format(vim.bo[buf].filetype)
  elseif M.snoozed_minutes() > 0 then
    return ('Snoozed for %.0f more minutes.'):format(math.ceil(M.snoozed_minutes()))
  elseif vim.bo[buf].buftype ~= '' or not vim.bo[buf].modifiable or vim.bo[buf].readonly then
    return 'This buffer is not for writing.'
  end
end

--- Whether the moment allows ghost text in the current window.
---@return boolean
function M.is_open()
  local mode = vim.api.nvim_get_mode().mode
  local options = config.get()
  if mode:sub(1, 1) ~= 'i' or is_block_insert or M.reason_off(vim.api.nvim_get_current_buf()) then
    return false
  end
  if options.popup_menu == 'hide' and vim.fn.pumvisible() == 1 then
    return false
  end
  return options.in_macros or (vim.fn.reg_recording() == '' and vim.fn.reg_executing() == '')
end

return M
