-- What `vim.lsp.enable('slipstream')` starts. Built from the options of `require('slipstream').setup()`.
return require('slipstream.client').lsp_config()
