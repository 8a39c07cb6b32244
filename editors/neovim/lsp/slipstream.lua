-- The configuration for `vim.lsp.enable('slipstream')`, made from the options of `setup()`.
return require('slipstream.client').lsp_config()
