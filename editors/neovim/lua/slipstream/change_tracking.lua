--- Keeps Neovim tracking the changes of buffers while they have no server.
---
--- Neovim stops tracking a buffer's changes when its last client detaches, and does not resume when the next
--- one attaches. A client without a process fills the gap.

local M = {}

local NAME = 'slipstream-change-tracking'

--- A language server inside Neovim that does nothing.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
local function idle_server(dispatchers)
  local is_closing, num_requests = false, 0
  local function close()
    if not is_closing then
      is_closing = true
      dispatchers.on_exit(0, 0)
    end
  end
  return {
    request = function(method, _, callback)
      num_requests = num_requests + 1
      callback(nil, method == 'initialize' and { capabilities = {} } or vim.NIL)
      return true, num_requests
    end,
    notify = function(method)
      if method == 'exit' then
        close()
      end
      return true
    end,
    is_closing = function()
      return is_closing
    end,
    terminate = close,
  }
end

---@param buffers integer[]
function M.hold(buffers)
  for _, buf in ipairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buf) then
      vim.lsp.start({ name = NAME, cmd = idle_server }, { bufnr = buf })
    end
  end
end

--- Detaches from a buffer once a server is attached to it.
---@param buf integer
function M.release(buf)
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME, bufnr = buf })) do
    vim.lsp.buf_detach_client(buf, client.id)
    if not next(client.attached_buffers) then
      client:stop()
    end
  end
end

return M
