--- The switches of suggestions, the snooze, and the states of the editor that suppress ghost text.

local config = require('slipstream.config')

local M = {}

---@type boolean?
local is_enabled
---@type number? in milliseconds of vim.uv.now()
local snoozed_until

-- Neovim copies the typed text of a block insert to its other lines, but not an accepted text.
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

--- Ends the snooze. Other switches stay as they are.
function M.resume()
  snoozed_until = nil
end

--- Minutes until the snooze ends, 0 without one.
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

--- The reason why a buffer has no suggestions, or nil.
---@param buf integer
---@return string?
function M.reason_off(buf)
  if vim.b[buf].slipstream_enabled == false then
    return 'Suggestions are switched off in this buffer.'
  elseif vim.b[buf].slipstream_enabled == nil and not M.is_enabled() then
    return 'Suggestions are switched off.'
  elseif not M.is_filetype_enabled(vim.bo[buf].filetype) then
    return ('Suggestions are switched off for the filetype %s.'):format(vim.bo[buf].filetype)
  elseif M.snoozed_minutes() > 0 then
    return ('Suggestions are snoozed for %.0f more minutes.'):format(math.ceil(M.snoozed_minutes()))
  elseif vim.bo[buf].buftype ~= '' or not vim.bo[buf].modifiable or vim.bo[buf].readonly then
    return 'This buffer cannot be edited.'
  end
end

--- Whether the current window may show ghost text now.
---@return boolean
function M.can_suggest()
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
