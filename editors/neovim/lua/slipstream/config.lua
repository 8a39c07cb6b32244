--- Checks the options of `setup()` and holds the current ones.

local options = require('slipstream.options')

local M = {}

local function is_count(value)
  return type(value) == 'number' and value >= 0 and value == math.floor(value)
end

local function is_text(value)
  return type(value) == 'string' and value ~= ''
end

local function is_texts(value)
  return vim.islist(value) and vim.iter(value):all(is_text)
end

local function is_boolean(value)
  return type(value) == 'boolean'
end

local function is_table(value)
  return type(value) == 'table'
end

local function is_switches(value)
  return is_table(value)
    and vim.iter(value):all(function(name, on)
      return type(name) == 'string' and type(on) == 'boolean'
    end)
end

--- A check for each kind of option, and the values that it takes in words.
local checks = {
  boolean = { is_boolean, 'true or false' },
  command = {
    function(value)
      return is_text(value) or (is_texts(value) and #value > 0)
    end,
    "a program's name, or a list of the program and its arguments",
  },
  key = {
    function(value)
      return value == false or is_text(value) or is_texts(value)
    end,
    "a key like '<Tab>', a list of keys, or false",
  },
  keymaps = {
    function(value)
      return value == false or is_table(value)
    end,
    'a table of keys, or false',
  },
  count = { is_count, 'a whole number, 0 or more' },
  milliseconds = { is_count, 'a whole number of milliseconds, 0 or more' },
  restart = { is_table, 'a table like { max_attempts = 5, first_delay_ms = 500 }' },
  strings = { is_texts, 'a list of names' },
  switches = { is_switches, 'a table like { python = true, markdown = false }' },
  table = { is_table, "a table of the server's settings" },
}

--- The kind of the entries of an option that is a table.
local entry_kinds = { keymaps = 'key', restart = 'count' }

local function fail(name, wanted, value)
  error(('slipstream.setup: the option %s must be %s, not %s.'):format(name, wanted, vim.inspect(value)), 0)
end

local function reject_unknown(given, known, prefix)
  for name in pairs(given) do
    if known[name] == nil then
      local names = vim.tbl_keys(known)
      table.sort(names)
      local list = table.concat(names, ', ')
      error(('slipstream.setup: there is no option %s%s. The options are: %s.'):format(prefix, name, list), 0)
    end
  end
end

---@param kind string|string[] the name of a check, or the texts to choose from
---@param name string
---@param value any
local function check_value(kind, name, value)
  if type(kind) == 'table' then
    if not vim.list_contains(kind, value) then
      fail(name, "one of '" .. table.concat(kind, "', '") .. "'", value)
    end
    return
  end
  local is_good, wanted = unpack(checks[kind])
  if not is_good(value) then
    fail(name, wanted, value)
  end
end

---@param opts slipstream.Options
local function check(opts)
  if type(opts) ~= 'table' then
    error(('slipstream.setup: the options must be a table, not %s.'):format(vim.inspect(opts)), 0)
  end
  reject_unknown(opts, options.defaults, '')
  for name, value in pairs(opts) do
    check_value(options.kinds[name], name, value)
  end
  for name, kind in pairs(entry_kinds) do
    local given = opts[name] or {}
    reject_unknown(given, options.defaults[name], name .. '.')
    for entry, value in pairs(given) do
      check_value(kind, name .. '.' .. entry, value)
    end
  end
end

local current = vim.deepcopy(options.defaults)

--- Replaces the options: `opts` over the defaults. Raises an error that names the bad one.
---@param opts slipstream.Options
function M.set(opts)
  check(opts)
  current = vim.tbl_deep_extend('force', options.defaults, opts)
end

---@return slipstream.Options
function M.get()
  return current
end

--- The program and its arguments.
---@return string[]
function M.command()
  local cmd = current.cmd
  local words
  if type(cmd) == 'string' then
    words = { cmd, 'serve', '--stdio', current.shared_engine and '--shared' or nil }
  else
    words = vim.deepcopy(cmd --[[@as string[] ]])
  end
  words[1] = vim.fs.normalize(words[1])
  return words
end

--- The command line that runs the same program with another argument, or nil if `cmd` does not name it.
---@param argument string
---@return string[]?
function M.command_for(argument)
  local words = M.command()
  for index, word in ipairs(words) do
    local head = vim.list_slice(words, 1, index - 1)
    if word == 'serve' and index > 1 then
      return vim.list_extend(head, { argument })
    elseif word == '-m' and words[index + 1] == 'lsp_server' then
      return vim.list_extend(head, { '-c', 'from lsp_server.cli import main; main()', argument })
    end
  end
end

--- The settings to send, with the filetypes that are switched on or off. Without any it is an empty object: a
--- plain empty table would be sent as a list.
---@return table
function M.server_settings()
  local settings = vim.tbl_extend('force', vim.empty_dict(), current.settings)
  local languages = vim.tbl_extend('force', settings.languages or {}, current.filetypes)
  if next(languages) then
    settings.languages = languages
  end
  return settings
end

return M
