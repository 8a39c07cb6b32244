--- The options: their defaults, their checks and their one present value. Knows nothing of what they do.

local M = {}

---@class slipstream.Keymaps
---@field accept? string|string[]|false
---@field accept_word? string|string[]|false
---@field accept_line? string|string[]|false
---@field next? string|string[]|false
---@field previous? string|string[]|false
---@field dismiss? string|string[]|false

---@class slipstream.Restart
---@field max_attempts? integer how often in a row a crashed server is started again
---@field first_delay_ms? integer the first wait; each further one is twice as long

---@class slipstream.Options
---@field cmd? string|string[] the server's program, or program and arguments
---@field shared_engine? boolean whether all editors share one engine, where `cmd` names a program alone
---@field enabled? boolean whether suggestions are on at the start
---@field auto_trigger? boolean whether typing asks for suggestions
---@field ghost? 'own'|'builtin' who draws: this plugin, or Neovim 0.12's vim.lsp.inline_completion
---@field debounce_ms? integer how long to wait after a key before asking
---@field popup_menu? 'hide'|'show' what to do while the completion menu is visible
---@field in_macros? boolean whether to suggest while a macro is recorded or executed
---@field filetypes? table<string, boolean> on or off by filetype; '*' speaks for all others
---@field keymaps? slipstream.Keymaps|false insert mode keys; false sets none
---@field root_markers? string[] files or folders that mark a project's root
---@field restart? slipstream.Restart
---@field settings? table the server's settings, as in the user's config.toml

---@type slipstream.Options
M.defaults = {
  cmd = 'slipstream',
  shared_engine = true,
  enabled = true,
  auto_trigger = true,
  ghost = 'own',
  debounce_ms = 0,
  popup_menu = 'hide',
  in_macros = false,
  filetypes = {},
  keymaps = {
    accept = '<Tab>',
    accept_word = { '<C-Right>', '<M-w>' },
    accept_line = '<M-l>',
    next = '<M-]>',
    previous = '<M-[>',
    dismiss = '<C-]>',
  },
  root_markers = { '.slipstream.toml', '.git', '.hg', 'pyproject.toml', 'package.json', 'Cargo.toml' },
  restart = { max_attempts = 5, first_delay_ms = 500 },
  settings = { candidates = 3 },
}

local function is_count(value)
  return type(value) == 'number' and value >= 0 and value == math.floor(value)
end

local function is_strings(value)
  return vim.islist(value) and vim.iter(value):all(function(item)
    return type(item) == 'string' and item ~= ''
  end)
end

local function is_keys(value)
  return value == false or (type(value) == 'string' and value ~= '') or is_strings(value)
end

local function one_of(...)
  local choices = { ... }
  return function(value)
    return vim.list_contains(choices, value)
  end, "one of '" .. table.concat(choices, "', '") .. "'"
end

local function is_boolean(value)
  return type(value) == 'boolean'
end

local function is_switches(value)
  return type(value) == 'table'
    and vim.iter(value):all(function(name, on)
      return type(name) == 'string' and type(on) == 'boolean'
    end)
end

local function is_table(value)
  return type(value) == 'table'
end

--- Each option's check and the words for what it wants.
local checks = {
  cmd = {
    function(value)
      return (type(value) == 'string' and value ~= '') or (is_strings(value) and #value > 0)
    end,
    "a program's name, or a list of the program and its arguments",
  },
  shared_engine = { is_boolean, 'true or false' },
  enabled = { is_boolean, 'true or false' },
  auto_trigger = { is_boolean, 'true or false' },
  ghost = { one_of('own', 'builtin') },
  debounce_ms = { is_count, 'a whole number of milliseconds, 0 or more' },
  popup_menu = { one_of('hide', 'show') },
  in_macros = { is_boolean, 'true or false' },
  filetypes = { is_switches, 'a table like { python = true, markdown = false }' },
  keymaps = {
    function(value)
      return value == false or type(value) == 'table'
    end,
    'a table of keys, or false',
  },
  root_markers = { is_strings, 'a list of names' },
  restart = { is_table, 'a table like { max_attempts = 5, first_delay_ms = 500 }' },
  settings = { is_table, "a table of the server's settings" },
}

local group_checks = {
  keymaps = { is_keys, "a key like '<Tab>', a list of keys, or false" },
  restart = { is_count, 'a whole number, 0 or more' },
}

local function fail(name, wanted, value)
  error(('slipstream.setup: %s must be %s, not %s'):format(name, wanted, vim.inspect(value)), 0)
end

local function reject_unknown(given, known, prefix)
  for name in pairs(given) do
    if known[name] == nil then
      local names = vim.tbl_keys(known)
      table.sort(names)
      local list = table.concat(names, ', ')
      error(('slipstream.setup: there is no option %s%s. There are: %s'):format(prefix, name, list), 0)
    end
  end
end

---@param opts slipstream.Options
local function check(opts)
  if type(opts) ~= 'table' then
    fail('opts', 'a table', opts)
  end
  reject_unknown(opts, M.defaults, '')
  for name, value in pairs(opts) do
    local is_good, wanted = unpack(checks[name])
    if not is_good(value) then
      fail(name, wanted, value)
    end
  end
  for group, rule in pairs(group_checks) do
    local given = opts[group] or {}
    reject_unknown(given, M.defaults[group], group .. '.')
    for name, value in pairs(given) do
      if not rule[1](value) then
        fail(group .. '.' .. name, rule[2], value)
      end
    end
  end
end

local current = vim.deepcopy(M.defaults)

--- Replaces the options: `opts` over the defaults. Raises an error that names the bad one.
---@param opts slipstream.Options
function M.set(opts)
  check(opts)
  current = vim.tbl_deep_extend('force', M.defaults, opts)
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

--- The words that have the same program do something else than serve; nil where `cmd` does not tell.
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

--- What the server is told: the settings, with the filetypes that are switched on or off.
---@return table
function M.server_settings()
  local settings = vim.deepcopy(current.settings)
  local languages = vim.tbl_extend('force', settings.languages or {}, current.filetypes)
  if next(languages) then
    settings.languages = languages
  end
  return settings
end

return M
