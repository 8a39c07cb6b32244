--- Which of the editor's events follow, ask and clear. Owns the autocommands of attached buffers.

local clients = require('slipstream.client')
local config = require('slipstream.config')
local gate = require('slipstream.gate')
local keeper = require('slipstream.keeper')
local keymaps = require('slipstream.keymaps')
local places = require('slipstream.place')
local request = require('slipstream.request')
local session = require('slipstream.session')

local M = {}

local group = vim.api.nvim_create_augroup('slipstream.events', {})

local function clear()
  request.cancel()
  session.clear()
end

--- Something may have changed: shows what still fits, and asks when something was typed.
---@param is_forced boolean? ask also when nothing was typed
local function update(is_forced)
  if not gate.is_open() then
    return clear()
  end
  local now = places.here()
  local is_new, is_typed = session.observe(now)
  if not (is_new or is_forced) then
    return
  end
  session.follow(now)
  if (is_typed or is_forced) and config.get().auto_trigger then
    request.after_typing()
  else
    request.cancel()
  end
end

--- Asks again in the current buffer, for instance when the model has just become ready.
function M.refresh()
  if #vim.api.nvim_get_autocmds({ group = group, buffer = 0 }) > 0 then
    update(true)
  end
end

-- A cursor that rests this long has arrived.
local SETTLED_MS = 100
local looking = assert(vim.uv.new_timer())

local function look()
  looking:start(SETTLED_MS, 0, vim.schedule_wrap(function()
    -- Who types already is asking.
    if vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
      clients.tell_focus(places.here())
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
    if not gate.is_open() then
      clear()
    end
  end)
  -- The menu is still there while this event runs.
  on(buf, { 'CompleteDone' }, vim.schedule_wrap(M.refresh))
  on(buf, { 'BufEnter', 'CursorMoved' }, look)
  on(buf, { 'InsertLeave', 'BufLeave', 'WinLeave', 'BufUnload' }, clear)
end

-- InsertEnter comes before the mode has changed, and select mode has no event of its own.
vim.api.nvim_create_autocmd('ModeChanged', {
  group = group,
  callback = function(args)
    local from, to = args.match:match('^(.-):(.*)$')
    local was_insert, is_insert = from:sub(1, 1) == 'i', to:sub(1, 1) == 'i'
    if was_insert ~= is_insert then
      gate.set_block_insert(from == '\22')
    end
    if is_insert and not was_insert then
      M.refresh()
    elseif was_insert and not is_insert then
      clear()
    end
  end,
})

--- Begins with a buffer that the client has attached to.
---@param buf integer
function M.attach(buf)
  require('slipstream.highlights').define()
  keeper.release(buf)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  keymaps.set(buf)
  if config.get().ghost == 'builtin' then
    require('slipstream.builtin').follow_switches(buf)
  else
    watch(buf)
    look()
    M.refresh()
  end
end

--- Ends with a buffer.
---@param buf integer
---@param client_id integer
function M.detach(buf, client_id)
  clients.before_detach(client_id, buf)
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  if vim.api.nvim_get_current_buf() == buf then
    clear()
  end
  keymaps.remove(buf)
end

--- Applies switches that have just changed.
function M.apply_switches()
  if config.get().ghost == 'builtin' then
    require('slipstream.builtin').follow_switches()
  elseif gate.is_open() then
    M.refresh()
  else
    clear()
  end
end

return M
