--- `:checkhealth slipstream`: checks the program, the server, the model, the keys and other plugins.

local M = {}

local health = vim.health

local function check_neovim()
  health.start('Neovim')
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.11') == 0 then
    return health.error('Slipstream needs Neovim 0.11 or newer. This is Neovim ' .. version .. '.')
  end
  health.ok('This is Neovim ' .. version .. '.')
  local problem = require('slipstream.builtin').problem()
  if problem then
    health.error(problem)
  end
end

local function check_program()
  health.start('Server program')
  local command = require('slipstream.config').command()
  local path = vim.fn.exepath(command[1])
  if path == '' then
    return health.error(('Neovim cannot run %s.'):format(command[1]), {
      'Install the server so that `slipstream` is on the PATH.',
      "Or name its program: require('slipstream').setup({ cmd = '/path/to/slipstream' })",
    })
  end
  health.ok(path)
  local asking = require('slipstream.config').command_for('--version')
  if not asking then
    return health.info('The option `cmd` does not name the program, so its version is unknown.')
  end
  local is_started, process = pcall(vim.system, asking, { text = true })
  local done = is_started and process:wait(30000) or { code = 1, stderr = tostring(process) }
  local said = vim.trim(done.stdout or '')
  if done.code == 0 and vim.startswith(said, 'slipstream ') then
    health.ok(said)
  elseif done.code == 0 then
    health.error('The program is not Slipstream. It printed: ' .. said, {
      'Name the right program in the option `cmd`.',
    })
  else
    local reason = 'The program failed: ' .. vim.trim(done.stderr or '')
    health.error(reason, { 'Run `slipstream doctor` in a shell for details.' })
  end
end

---@param client vim.lsp.Client
local function check_model(client)
  local answer = client:request_sync('slipstream/stats', vim.empty_dict(), 5000)
  local stats = answer and answer.result
  if not stats then
    return health.error('The server does not answer.', {
      'Run :Slipstream restart. If that does not help, run :Slipstream log for its output.',
    })
  end
  local message = vim.trim(('%s %s'):format(stats.message or '', stats.advice or ''))
  if stats.state == 'error' then
    health.error(message, { 'Run :Slipstream doctor for details.' })
  elseif stats.state == 'loading' then
    health.warn('The model is still loading. ' .. message)
  else
    health.ok(vim.trim(('The model is %s. %s'):format(stats.state, message)))
  end
  local times = stats.response_ms
  if times and times.count > 0 then
    local figures = '%d answers: median %.0f ms, 95th percentile %.0f ms.'
    health.info(figures:format(times.count, times.p50, times.p95))
  end
end

local function check_client()
  health.start('Server')
  local client = require('slipstream.client').any()
  if not client then
    return health.warn('The server is not running.', {
      "Call require('slipstream').setup() or vim.lsp.enable('slipstream'), and open a file with a filetype.",
    })
  end
  local num_buffers = vim.tbl_count(client.attached_buffers)
  health.ok(('The server serves %d of the open buffers.'):format(num_buffers))
  health.info('Positions are counted in ' .. client.offset_encoding .. '.')
  for _, folder in ipairs(client.workspace_folders or {}) do
    health.info('Project: ' .. folder.name)
  end
  check_model(client)
end

local function check_ghost()
  health.start('Ghost text')
  local options = require('slipstream.config').get()
  local builtin = vim.lsp.inline_completion
  local found = false
  for _, client in ipairs(vim.lsp.get_clients({ name = 'slipstream' })) do
    for buf in pairs(client.attached_buffers) do
      if options.ghost == 'own' and builtin and builtin.is_enabled({ bufnr = buf }) then
        found = true
        local message = 'vim.lsp.inline_completion draws ghost text in buffer %d too.'
        health.warn(message:format(buf), {
          'Remove the call of vim.lsp.inline_completion.enable().',
          "Or let only Neovim draw: require('slipstream').setup({ ghost = 'builtin' })",
        })
      end
    end
  end
  if not found then
    health.ok(options.ghost == 'own' and 'This plugin draws it.' or 'vim.lsp.inline_completion draws it.')
  end
  if not options.auto_trigger or options.settings.trigger == 'manual' then
    health.info('Suggestions appear only when you ask for them.')
  end
  if not require('slipstream.switches').is_enabled() then
    health.warn('Suggestions are switched off.', { 'Run :Slipstream enable.' })
  end
end

local function check_keys()
  health.start('Keys')
  local keymaps = require('slipstream.keymaps')
  local is_clear = true
  for _, client in ipairs(vim.lsp.get_clients({ name = 'slipstream' })) do
    for buf in pairs(client.attached_buffers) do
      for _, lhs in ipairs(keymaps.taken(buf)) do
        is_clear = false
        local message = 'Another mapping of %s in buffer %d replaces the one of Slipstream.'
        health.warn(message:format(lhs, buf), { ('Run :verbose imap %s to find it.'):format(lhs) })
      end
    end
  end
  for _, want in ipairs(keymaps.wanted()) do
    health.info(('%s: %s'):format(want.lhs, want.action))
  end
  if is_clear then
    health.ok('No other mapping replaces a key of Slipstream.')
  end
end

function M.check()
  check_neovim()
  check_program()
  check_client()
  check_ghost()
  check_keys()
end

return M
