--- The insert mode keys of attached buffers. A key that has nothing to do keeps its previous action.

local config = require('slipstream.config')

local M = {}

---@class slipstream.SetKey
---@field lhs string
---@field prior table? the buffer's previous mapping, as from maparg()

---@type table<integer, slipstream.SetKey[]>
local keys_of = {}

local PRIOR = '<Plug>(slipstream-prior-%s)'

local actions = {
  accept = function()
    return require('slipstream.actions').accept('all') or require('slipstream.next_edit').step()
  end,
  accept_word = function()
    return require('slipstream.actions').accept('word')
  end,
  accept_line = function()
    return require('slipstream.actions').accept('line')
  end,
  next = function()
    return require('slipstream.actions').cycle(1)
  end,
  previous = function()
    return require('slipstream.actions').cycle(-1)
  end,
  dismiss = function()
    return require('slipstream.actions').dismiss() or require('slipstream.next_edit').dismiss()
  end,
}

-- The keys of normal mode, which exist while an edit is shown.
local edit_actions = {
  edit = function()
    require('slipstream.next_edit').step()
  end,
  dismiss_edit = function()
    require('slipstream.next_edit').dismiss()
  end,
}

local descriptions = {
  accept = 'Slipstream: accept the suggestion',
  accept_word = 'Slipstream: accept a word',
  accept_line = 'Slipstream: accept a line',
  next = 'Slipstream: next suggestion',
  previous = 'Slipstream: previous suggestion',
  dismiss = 'Slipstream: dismiss the suggestion',
  edit = 'Slipstream: jump to the next edit, then apply it',
  dismiss_edit = 'Slipstream: dismiss the next edit',
}

---@param lhs string
---@return string
local function raw(lhs)
  return vim.keycode(lhs)
end

--- The current global mapping of a key.
---@param lhs string
---@return table?
local function global_mapping(lhs)
  for _, mapping in ipairs(vim.api.nvim_get_keymap('i')) do
    if raw(mapping.lhs) == raw(lhs) then
      return mapping
    end
  end
end

--- Gives a mapping a second name, to run it while its key is mapped to something else.
---@param mapping table
---@param lhs string
---@return string keys
local function renamed(mapping, lhs)
  local keys = raw(PRIOR:format(lhs:gsub('[<>]', '')))
  local changes = { lhs = keys, lhsraw = keys, buffer = 0, mode = 'i', abbr = 0 }
  local copy = vim.tbl_extend('force', mapping, changes)
  copy.lhsrawalt, copy.mode_bits = nil, nil
  vim.fn.mapset('i', false, copy)
  return keys
end

--- Runs the action that the key has without this plugin.
---@param key slipstream.SetKey
local function fall_back(key)
  local mapping = key.prior or global_mapping(key.lhs)
  if not mapping then
    vim.api.nvim_feedkeys(raw(key.lhs), 'in', false)
    return
  end
  local rhs = raw(mapping.rhs or '')
  local is_own_head = mapping.noremap == 0 and mapping.expr ~= 1 and vim.startswith(rhs, raw(key.lhs))
  if is_own_head then
    -- A right side that begins with the key itself means the bare key, as in any mapping.
    vim.api.nvim_feedkeys(rhs:sub(#raw(key.lhs) + 1), 'im', false)
    vim.api.nvim_feedkeys(raw(key.lhs), 'in', false)
    return
  end
  vim.api.nvim_feedkeys(renamed(mapping, key.lhs), 'im', false)
end

---@param buf integer
---@param lhs string
---@return table?
local function buffer_mapping(buf, lhs)
  for _, mapping in ipairs(vim.api.nvim_buf_get_keymap(buf, 'i')) do
    if raw(mapping.lhs) == raw(lhs) then
      return mapping
    end
  end
end

--- The keys of the options for these actions.
---@param of table<string, function>
---@return {lhs: string, action: string}[]
local function keys_for(of)
  local wanted = {}
  for action, keys in pairs(config.get().keymaps or {}) do
    for _, lhs in ipairs(of[action] and (type(keys) == 'table' and keys or { keys or nil }) or {}) do
      wanted[#wanted + 1] = { lhs = lhs, action = action }
    end
  end
  return wanted
end

--- All keys of insert mode, with the action of each.
---@return {lhs: string, action: string}[]
function M.wanted()
  return keys_for(actions)
end

---@type { buf: integer, keys: slipstream.SetKey[] }?
local edit_keys

--- Takes the keys of normal mode away, and gives them back to their previous mappings.
local function remove_edit_keys()
  local set = edit_keys
  edit_keys = nil
  if not set or not vim.api.nvim_buf_is_valid(set.buf) then
    return
  end
  for _, key in ipairs(set.keys) do
    pcall(vim.keymap.del, 'n', key.lhs, { buffer = set.buf })
    if key.prior then
      vim.api.nvim_buf_call(set.buf, function()
        vim.fn.mapset('n', false, key.prior)
      end)
    end
  end
end

--- Sets the keys of normal mode in a buffer while an edit is shown, or removes them.
---@param buf integer?
function M.set_edit_keys(buf)
  if edit_keys and edit_keys.buf == buf then
    return
  end
  remove_edit_keys()
  if not buf then
    return
  end
  edit_keys = { buf = buf, keys = {} }
  for _, want in ipairs(keys_for(edit_actions)) do
    local prior = vim.api.nvim_buf_call(buf, function()
      return vim.fn.maparg(want.lhs, 'n', false, true)
    end)
    table.insert(edit_keys.keys, { lhs = want.lhs, prior = prior.buffer == 1 and prior or nil })
    local opts = { buffer = buf, nowait = true, desc = descriptions[want.action] }
    vim.keymap.set('n', want.lhs, edit_actions[want.action], opts)
  end
end

--- The name of the key that jumps to an edit and applies it in the current mode.
---@return string
function M.edit_key()
  local keymaps = config.get().keymaps or {}
  local keys = vim.api.nvim_get_mode().mode:sub(1, 1) == 'i' and keymaps.accept or keymaps.edit
  return type(keys) == 'table' and keys[1] or keys or ':Slipstream edit'
end

---@param buf integer
function M.set(buf)
  if keys_of[buf] then
    return
  end
  keys_of[buf] = {}
  for _, want in ipairs(M.wanted()) do
    local key = { lhs = want.lhs, prior = buffer_mapping(buf, want.lhs) }
    table.insert(keys_of[buf], key)
    vim.keymap.set('i', want.lhs, function()
      if not actions[want.action]() then
        fall_back(key)
      end
    end, { buffer = buf, desc = descriptions[want.action] })
  end
end

--- Removes the keys and restores the previous mappings.
---@param buf integer
function M.remove(buf)
  local keys = keys_of[buf] or {}
  keys_of[buf] = nil
  if not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  for _, key in ipairs(keys) do
    local mapping = buffer_mapping(buf, key.lhs)
    if mapping and vim.startswith(mapping.desc or '', 'Slipstream: ') then
      vim.keymap.del('i', key.lhs, { buffer = buf })
      if key.prior then
        vim.api.nvim_buf_call(buf, function()
          vim.fn.mapset('i', false, key.prior)
        end)
      end
    end
  end
end

--- Keys of a buffer that another mapping replaced.
---@param buf integer
---@return string[]
function M.taken(buf)
  local taken = {}
  for _, key in ipairs(keys_of[buf] or {}) do
    local mapping = buffer_mapping(buf, key.lhs)
    if not mapping or not vim.startswith(mapping.desc or '', 'Slipstream: ') then
      taken[#taken + 1] = key.lhs
    end
  end
  return taken
end

return M
