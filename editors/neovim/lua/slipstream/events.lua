--- The autocommands of attached buffers: when to request a suggestion, fit it to the text, or hide it.

local clients = require('slipstream.client')
local config = require('slipstream.config')
local switches = require('slipstream.switches')
local change_tracking = require('slipstream.change_tracking')
local keymaps = require('slipstream.keymaps')
local next_edit = require('slipstream.next_edit')
local cursors = require('slipstream.cursor')
local request = require('slipstream.request')
local current_suggestion = require('slipstream.current_suggestion')

local M = {}

local group = vim.api.nvim_create_augroup('slipstream.events', {})

local function clear()
  request.cancel()
  current_suggestion.clear()
end

--- Fits the visible suggestion to the text, and requests a new one if the text changed.
---@param is_forced boolean? request one in any case
local function update(is_forced)
  if not switches.can_suggest() then
    return clear()
  end
  local now = cursors.here()
  local is_new, is_typed = current_suggestion.observe(now)
  if not (is_new or is_forced) then
    return
  end
  current_suggestion.follow(now)
  if (is_typed or is_forced) and config.get().auto_trigger then
    request.after_typing()
  else
    request.cancel()
  end
end

--- Requests a suggestion again in the current buffer, for example when the model becomes ready.
function M.refresh()
  if #vim.api.nvim_get_autocmds({ group = group, buffer = 0 }) > 0 then
    update(true)
  end
end

-- The server is notified of a cursor that rests this long.
local REST_MS = 100
local focus_timer = assert(vim.uv.new_timer())

local function send_focus_soon()
  focus_timer:start(REST_MS, 0, vim.schedule_wrap(function()
    -- In insert mode the requests themselves carry the position.
    if vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
      clients.send_focus(cursors.here())
    end
  end))
end

---@param buf integer
---@param names string[]
---@param callback fun(args: table)
local function on(buf, names, callback)
  vim.api.nvim_create_autocmd(names, { group = group, buffer = buf, callback = callback })
end

---@param buf integer
local function watch(buf)
  on(buf, { 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, function()
    update()
  end)
  on(buf, { 'CompleteChanged' }, function()
    if not switches.can_suggest() then
      clear()
    end
  end)
  -- The menu is still visible while this event runs.
  on(buf, { 'CompleteDone' }, vim.schedule_wrap(M.refresh))
  on(buf, { 'BufEnter', 'CursorMoved' }, send_focus_soon)
  on(buf, { 'InsertLeave', 'BufLeave', 'WinLeave', 'BufUnload' }, clear)
end

-- InsertEnter runs before the mode changes, and select mode has no event of its own.
vim.api.nvim_create_autocmd('ModeChanged', {
  group = group,
  callback = function(args)
    local from, to = args.match:match('^(.-):(.*)$')
    local was_insert, is_insert = from:sub(1, 1) == 'i', to:sub(1, 1) == 'i'
    if was_insert ~= is_insert then
      switches.set_block_insert(from == '\22')
    end
    if is_insert and not was_insert then
      M.refresh()
    elseif was_insert and not is_insert then
      clear()
    end
  end,
})

--- Starts suggesting in a buffer that the client attached to.
---@param buf integer
function M.attach(buf)
  require('slipstream.highlights').define()
  change_tracking.release(buf)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  keymaps.set(buf)
  next_edit.attach(buf)
  if config.get().ghost == 'builtin' then
    require('slipstream.builtin').follow_switches(buf)
  else
    watch(buf)
    send_focus_soon()
    M.refresh()
  end
end

--- Stops suggesting in a buffer.
---@param buf integer
---@param client_id integer
function M.detach(buf, client_id)
  clients.before_detach(client_id, buf)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  if vim.api.nvim_get_current_buf() == buf then
    clear()
  end
  next_edit.detach(buf)
  keymaps.remove(buf)
end

--- Applies changed switches.
function M.apply_switches()
  if switches.reason_off(vim.api.nvim_get_current_buf()) then
    next_edit.clear()
  end
  if config.get().ghost == 'builtin' then
    require('slipstream.builtin').follow_switches()
  elseif switches.can_suggest() then
    M.refresh()
  else
    clear()
  end
end

return M
