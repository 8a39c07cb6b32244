--- `:Slipstream` and its subcommands.

local M = {}

---@class slipstream.Command
---@field run fun(argument: string?)
---@field arguments? string[]

---@param change fun(switches: table)
local function switch(change)
  change(require('slipstream.switches'))
  require('slipstream.events').apply_switches()
end

---@param scope string?
---@param wanted boolean? nil switches over
local function enable(scope, wanted)
  switch(function(switches)
    if scope == 'buffer' then
      local is_on = vim.b.slipstream_enabled
      if is_on == nil then
        is_on = switches.is_enabled()
      end
      vim.b.slipstream_enabled = wanted == nil and not is_on or wanted or false
    elseif scope == 'filetype' then
      local filetype = vim.bo.filetype
      local is_on = switches.is_filetype_enabled(filetype)
      require('slipstream.config').get().filetypes[filetype] = wanted == nil and not is_on or wanted or false
      require('slipstream.client').push_settings()
    else
      switches.enable(wanted == nil and not switches.is_enabled() or wanted or false)
    end
  end)
end

---@param argument string?
local function snooze(argument)
  local minutes = tonumber(argument or 30)
  if not minutes or minutes <= 0 then
    local message = 'Slipstream: %s is not a number of minutes. Example: :Slipstream snooze 30'
    vim.notify(message:format(argument), vim.log.levels.ERROR)
    return
  end
  switch(function(switches)
    switches.snooze(minutes)
  end)
  vim.defer_fn(require('slipstream.events').apply_switches, minutes * 60000 + 50)
end

local function purge()
  local question = 'Delete the index of all open folders and build it again?'
  if vim.fn.confirm(question, '&Yes\n&No', 2) ~= 1 then
    return
  end
  local params = { command = 'slipstream.purgeIndex', arguments = {} }
  require('slipstream.client').ask('workspace/executeCommand', params, function(num_folders)
    local folders = num_folders == 1 and 'folder' or 'folders'
    vim.notify(('Slipstream: rebuilding the index of %d %s.'):format(num_folders, folders))
  end)
end

local function doctor()
  local command = require('slipstream.config').command_for('doctor')
  if not command then
    local message = 'Slipstream: `cmd` does not name the program. Run `slipstream doctor` in a shell.'
    vim.notify(message, vim.log.levels.WARN)
    return
  end
  vim.cmd.new()
  vim.fn.jobstart(command, { term = true })
end

local SCOPES = { 'buffer', 'filetype' }

---@type table<string, slipstream.Command>
M.commands = {
  enable = { run = function(scope) enable(scope, true) end, arguments = SCOPES },
  disable = { run = function(scope) enable(scope, false) end, arguments = SCOPES },
  toggle = { run = function(scope) enable(scope) end, arguments = SCOPES },
  snooze = { run = snooze, arguments = { '5', '30', '60' } },
  resume = { run = function() switch(function(switches) switches.resume() end) end },
  trigger = { run = function() require('slipstream').trigger() end },
  accept = {
    run = function(part) require('slipstream').accept(part --[[@as slipstream.Part]]) end,
    arguments = { 'all', 'word', 'line' },
  },
  next = { run = function() require('slipstream').next() end },
  previous = { run = function() require('slipstream').previous() end },
  dismiss = { run = function() require('slipstream').dismiss() end },
  edit = { run = function(scope) require('slipstream').next_edit(scope) end, arguments = { 'all' } },
  why = { run = function() require('slipstream.why').open() end },
  stats = { run = function() require('slipstream.statistics').open() end },
  restart = { run = function() require('slipstream.client').restart() end },
  log = { run = function() vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename())) end },
  purge = { run = purge },
  doctor = { run = doctor },
  health = { run = function() vim.cmd.checkhealth('slipstream') end },
}

---@param words string[]
function M.run(words)
  local name, argument = words[1], words[2]
  local command = M.commands[name]
  if not command then
    local known = table.concat(M.names(), ', ')
    local message = 'Slipstream: there is no command %s. The commands are: %s.'
    vim.notify(message:format(name, known), vim.log.levels.ERROR)
    return
  end
  local is_known = not argument or name == 'snooze' or vim.list_contains(command.arguments or {}, argument)
  if not is_known then
    local choices = table.concat(command.arguments or { 'no argument' }, ', ')
    local message = 'Slipstream: the command %s does not take %s. It takes: %s.'
    vim.notify(message:format(name, argument, choices), vim.log.levels.ERROR)
    return
  end
  command.run(argument)
end

---@return string[]
function M.names()
  local names = vim.tbl_keys(M.commands)
  table.sort(names)
  return names
end

--- The words that complete a command line.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local words = vim.split(vim.trim(line), '%s+')
  local num_done = lead == '' and #words or #words - 1
  local choices = M.names()
  if num_done >= 2 then
    local command = M.commands[words[2]]
    choices = num_done == 2 and command and command.arguments or {}
  end
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, lead)
  end, choices)
end

return M
