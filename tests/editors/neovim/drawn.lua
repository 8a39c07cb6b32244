-- Watches what is drawn and what is asked, from outside of the plugin: it wraps Neovim's own functions.
_G.Drawn = {
  history = {}, -- each ghost text that was drawn, with the line under it
  said = {}, -- each text that the server answered, with the line it was asked for
  delays_ms = {}, -- delays of the next answers, in order
  num_held = 0,
  asked_tick = {}, -- the changedtick of each buffer at the last request for the next edit
}

local NAMES = { ['slipstream.ghost'] = true, ['nvim.lsp.inline_completion'] = true }

local function own_namespaces()
  local found = {}
  for name, id in pairs(vim.api.nvim_get_namespaces()) do
    if NAMES[name] then
      found[id] = true
    end
  end
  return found
end

--- The ghost text of a buffer: the virtual text of the line with the kept text between, then the
--- virtual lines.
function Drawn.text(buf)
  buf = buf == 0 and vim.api.nvim_get_current_buf() or buf
  local inline, below, last_col = {}, {}, nil
  for id in pairs(own_namespaces()) do
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, id, 0, -1, { details = true })) do
      local row, col, details = mark[2], mark[3], mark[4]
      if details.virt_text and details.virt_text_pos ~= 'eol' then
        local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
        if last_col then
          inline[#inline + 1] = line:sub(last_col + 1, col)
        end
        last_col = col
        for _, chunk in ipairs(details.virt_text) do
          inline[#inline + 1] = chunk[1]
        end
      end
      for _, line in ipairs(details.virt_lines or {}) do
        below[#below + 1] = '\n' .. vim.iter(line):map(function(chunk) return chunk[1] end):join('')
      end
    end
  end
  return table.concat(inline) .. table.concat(below)
end

--- Whether a request of this method has no answer yet.
local function is_pending(method)
  for _, client in ipairs(vim.lsp.get_clients({ name = 'slipstream' })) do
    for _, request in pairs(client.requests) do
      if request.type == 'pending' and request.method == method then
        return true
      end
    end
  end
  return false
end

--- Whether no answer is waited for and all keys are taken in.
function Drawn.is_settled()
  if Drawn.num_held > 0 or vim.fn.getchar(1) ~= 0 then
    return false
  end
  return not is_pending('textDocument/inlineCompletion')
end

--- What tells why nothing is drawn: the editor's mode, each server's requests, and the server's statistics.
function Drawn.state()
  local found = { mode = vim.api.nvim_get_mode(), cursor = vim.api.nvim_win_get_cursor(0) }
  for _, client in ipairs(vim.lsp.get_clients()) do
    local is_own = client.name == 'slipstream' and client.initialized
    found[#found + 1] = {
      client = client.name .. ' ' .. client.id,
      buffers = vim.tbl_keys(client.attached_buffers),
      requests = client.requests,
      stats = is_own and client:request_sync('slipstream/stats', vim.empty_dict(), 10000) or nil,
    }
  end
  return vim.inspect(found)
end

--- Whether the next edit was asked for since the last change of the buffer, and answered.
function Drawn.is_next_edit_settled()
  local buf = vim.api.nvim_get_current_buf()
  if vim.fn.getchar(1) ~= 0 or Drawn.asked_tick[buf] ~= vim.api.nvim_buf_get_changedtick(buf) then
    return false
  end
  return not is_pending('textDocument/copilotInlineEdit')
end

local set_extmark = vim.api.nvim_buf_set_extmark
vim.api.nvim_buf_set_extmark = function(buf, namespace, row, col, opts)
  local id = set_extmark(buf, namespace, row, col, opts)
  if own_namespaces()[namespace] then
    local cursor = vim.api.nvim_win_get_cursor(0)
    table.insert(Drawn.history, {
      row = cursor[1] - 1,
      column = cursor[2],
      line = vim.api.nvim_get_current_line(),
      text = Drawn.text(buf),
      is_insert_mode = vim.api.nvim_get_mode().mode:sub(1, 1) == 'i',
    })
  end
  return id
end

--- Passes an answer on, late if that is wanted.
local function hold(handler, delay_ms)
  return function(...)
    local answer = { n = select('#', ...), ... }
    Drawn.num_held = Drawn.num_held + 1
    vim.defer_fn(function()
      Drawn.num_held = Drawn.num_held - 1
      handler(unpack(answer, 1, answer.n))
    end, delay_ms)
  end
end

local Client = require('vim.lsp.client')
local request = Client.request
function Client:request(method, params, handler, ...)
  if method == 'textDocument/copilotInlineEdit' then
    local buf = vim.uri_to_bufnr(params.textDocument.uri)
    Drawn.asked_tick[buf] = vim.api.nvim_buf_get_changedtick(buf)
  end
  if method == 'textDocument/inlineCompletion' then
    local row = params.position.line
    local col = vim.str_byteindex(vim.fn.getline(row + 1), self.offset_encoding, params.position.character)
    local before = vim.fn.getline(row + 1):sub(1, col)
    local delay_ms = table.remove(Drawn.delays_ms, 1)
    local pass_on = delay_ms and hold(handler, delay_ms) or handler
    handler = function(err, result, ...)
      for _, item in ipairs(result and (result.items or result) or {}) do
        table.insert(Drawn.said, { row = row, text = before .. item.insertText:gsub('\r\n', '\n') })
      end
      pass_on(err, result, ...)
    end
  end
  return request(self, method, params, handler, ...)
end
