--- The language server: starts it, finds it, stops it, and restarts it after a crash.

local config = require('slipstream.config')
local change_tracking = require('slipstream.change_tracking')
local cursors = require('slipstream.cursor')

local M = {}

local NAME = 'slipstream'
local RESTARTING = 'Restarting the server.'
-- A crash after this time counts as the first one.
local HEALTHY_MS = 60000

local num_crashes = 0
---@type table<integer, integer> the time of each server's first answer, from vim.uv.now()
local answered_ms = {}
---@type table<integer, boolean> clients that the plugin stopped
local is_leaving = {}
---@type table<integer, boolean> clients whose process crashed
local is_crashed = {}

--- The client that serves a buffer, or nil before its server answers.
---@param buf integer
---@return vim.lsp.Client?
function M.of(buf)
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buf, name = NAME })) do
    if client.initialized and not client:is_stopped() then
      return client
    end
  end
end

--- The client that serves the current buffer, or otherwise any client.
---@return vim.lsp.Client?
function M.any()
  return M.of(vim.api.nvim_get_current_buf()) or vim.lsp.get_clients({ name = NAME })[1]
end

--- The reason why the server cannot start, or nil.
---@return string?
function M.problem()
  local program = config.command()[1]
  if vim.fn.executable(program) == 0 then
    local message = 'the program %s does not exist. Install the server, or name its program in `cmd`.'
    return message:format(program)
  end
end

--- The folders that a client with this configuration is started with.
---@param wanted vim.lsp.ClientConfig
---@return lsp.WorkspaceFolder[]
local function initial_folders(wanted)
  local root = wanted.root_dir
  return wanted.workspace_folders or root and { { uri = vim.uri_from_fname(root), name = root } } or {}
end

---@param folders lsp.WorkspaceFolder[]
---@param uri string
---@return boolean
local function holds_uri(folders, uri)
  return vim.iter(folders):any(function(folder)
    return folder.uri == uri
  end)
end

---@param client vim.lsp.Client
---@param folder lsp.WorkspaceFolder
local function add_folder(client, folder)
  local event = { added = { folder }, removed = {} }
  client:notify('workspace/didChangeWorkspaceFolders', { event = event })
end

--- One server serves all projects: a second project becomes another folder of the running server.
---@param client vim.lsp.Client
---@param wanted vim.lsp.ClientConfig
---@return boolean
local function reuse(client, wanted)
  if client.name ~= wanted.name or client:is_stopped() then
    return false
  end
  for _, folder in ipairs(initial_folders(wanted)) do
    local known = client.workspace_folders or {}
    if not holds_uri(known, folder.uri) then
      client.workspace_folders = vim.list_extend({ folder }, known)
      if client.initialized then
        add_folder(client, folder)
      end
    end
  end
  return true
end

--- Adds the folders that came while the server was starting.
---@param client vim.lsp.Client
local function on_init(client)
  answered_ms[client.id] = vim.uv.now()
  local initial = initial_folders(client.config)
  for _, folder in ipairs(client.workspace_folders or {}) do
    if not holds_uri(initial, folder.uri) then
      add_folder(client, folder)
    end
  end
end

---@param wanted vim.lsp.ClientConfig
---@param buffers integer[]
local function start(wanted, buffers)
  for _, buf in ipairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buf) then
      vim.lsp.start(wanted, { bufnr = buf, reuse_client = reuse })
    end
  end
end

--- Restarts a crashed server, with longer waits each time. Gives up with an error after some crashes.
---@param wanted vim.lsp.ClientConfig
---@param buffers integer[]
---@param was_healthy boolean
local function recover(wanted, buffers, was_healthy)
  local options = config.get().restart
  num_crashes = was_healthy and 1 or num_crashes + 1
  local status = require('slipstream.status')
  if num_crashes > options.max_attempts then
    local reason = 'the server crashed %d times in a row. Run :Slipstream log for its output.'
    local message = reason:format(num_crashes)
    status.set({ state = 'error', message = message, kind = 'Error', ending = 'error' })
    vim.notify('Slipstream: ' .. message, vim.log.levels.ERROR)
    return
  end
  status.set({ state = 'loading', message = RESTARTING, kind = 'Warning', ending = 'restarting' })
  vim.defer_fn(function()
    start(wanted, buffers)
  end, options.first_delay_ms * 2 ^ (num_crashes - 1))
end

---@param code integer
---@param signal integer
---@param client_id integer
local function on_exit(code, signal, client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  local since = answered_ms[client_id]
  local was_healthy = since ~= nil and vim.uv.now() - since > HEALTHY_MS
  answered_ms[client_id] = nil
  local was_asked = is_leaving[client_id] or (code == 0 and signal == 0) or signal == 15
  is_leaving[client_id] = nil
  if not client or was_asked then
    return
  end
  is_crashed[client_id] = true
  local buffers = vim.tbl_keys(client.attached_buffers)
  -- The configuration names only the first project's root; the client holds the folders of all projects.
  local wanted = vim.tbl_extend('force', client.config, { workspace_folders = client.workspace_folders })
  vim.schedule(function()
    if vim.v.exiting == vim.NIL then
      recover(wanted, buffers, was_healthy)
    end
  end)
end

--- Called before Neovim detaches a client from a buffer. A key can arrive between two events: if it finds the
--- buffer without a client, Neovim stops tracking changes.
---@param client_id integer
---@param buf integer
function M.before_detach(client_id, buf)
  if is_crashed[client_id] and vim.v.exiting == vim.NIL then
    change_tracking.hold({ buf })
  end
end

--- The configuration that lsp/slipstream.lua returns.
---@return vim.lsp.Config
function M.lsp_config()
  return {
    cmd = config.command(),
    root_markers = config.get().root_markers,
    settings = { slipstream = config.server_settings() },
    -- Neovim 0.11 does not announce this, and without it the server offers completion lists.
    capabilities = {
      textDocument = { inlineCompletion = { dynamicRegistration = false } },
      experimental = require('slipstream.growth').capabilities(),
    },
    handlers = {
      didChangeStatus = function(_, params)
        require('slipstream.status').set(params)
      end,
      ['slipstream/suggestionGrew'] = function(_, params, context)
        local client = vim.lsp.get_client_by_id(context.client_id)
        if client then
          require('slipstream.growth').grew(params, client)
        end
      end,
    },
    reuse_client = reuse,
    on_init = on_init,
    on_exit = on_exit,
  }
end

--- Restarts the server for the same buffers.
function M.restart()
  num_crashes = 0
  local problem = M.problem()
  if problem then
    vim.notify('Slipstream: ' .. problem, vim.log.levels.ERROR)
    return
  end
  require('slipstream.status').set({ state = 'loading', message = RESTARTING, kind = 'Warning' })
  local running = vim.lsp.get_clients({ name = NAME })
  for _, client in ipairs(running) do
    is_leaving[client.id] = true
    change_tracking.hold(vim.tbl_keys(client.attached_buffers))
    client:stop(true)
  end
  local function start_again(num_left)
    if #vim.lsp.get_clients({ name = NAME }) > 0 and num_left > 0 then
      return vim.defer_fn(function()
        start_again(num_left - 1)
      end, 50)
    end
    vim.lsp.enable(NAME)
  end
  start_again(100)
end

--- Sends the current settings to the server.
function M.push_settings()
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
    client.settings = vim.tbl_extend('force', client.settings, { slipstream = config.server_settings() })
    client:notify('workspace/didChangeConfiguration', { settings = client.settings })
  end
end

--- Sends the cursor position to the server, so that it can prepare before a key is pressed.
---@param cursor slipstream.Cursor
function M.send_focus(cursor)
  local client = M.of(cursor.buf)
  if client then
    client:notify('textDocument/didFocus', {
      textDocument = { uri = vim.uri_from_bufnr(cursor.buf) },
      position = cursors.position(cursor, client.offset_encoding),
    })
  end
end

--- Cancels a request that is on its way, if there is one.
---@param asked { client: vim.lsp.Client, request_id: integer? }?
function M.cancel(asked)
  if asked and asked.request_id and not asked.client:is_stopped() then
    asked.client:cancel_request(asked.request_id)
  end
end

--- Sends a request on the user's behalf, and shows a message if it fails.
---@param method string
---@param params table
---@param on_answer fun(result: any)
---@param buf integer?
function M.ask(method, params, on_answer, buf)
  local client = M.any()
  if not client then
    local message = 'Slipstream: the server is not running. Run :checkhealth slipstream for details.'
    vim.notify(message, vim.log.levels.WARN)
    return
  end
  client:request(method, params, function(err, result)
    if err then
      vim.notify('Slipstream: ' .. err.message, vim.log.levels.WARN)
    else
      on_answer(result)
    end
  end, buf)
end

return M
