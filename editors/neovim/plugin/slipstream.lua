-- Defines :Slipstream and waits for the client to attach. Loads the other modules when they are needed.
if vim.g.loaded_slipstream then
  return
end
vim.g.loaded_slipstream = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify('Slipstream needs Neovim 0.11 or newer.', vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command('Slipstream', function(call)
  require('slipstream.commands').run(call.fargs)
end, {
  nargs = '+',
  desc = 'Slipstream: code completion from a model on this machine',
  complete = function(lead, line)
    return require('slipstream.commands').complete(lead, line)
  end,
})

local group = vim.api.nvim_create_augroup('slipstream.attach', {})
for event, method in pairs({ LspAttach = 'attach', LspDetach = 'detach' }) do
  vim.api.nvim_create_autocmd(event, {
    group = group,
    callback = function(args)
      local client = vim.lsp.get_client_by_id(args.data.client_id)
      if client and client.name == 'slipstream' then
        require('slipstream.events')[method](args.buf, client.id)
      end
    end,
  })
end
