-- The ghost text that stands on the screen, and since when: asked for at the end of each redraw.
-- Knows the plugin of Slipstream and llama.vim.
_G.Shown = { text = '', num_replaced = 0 }

local NAMESPACES = { 'slipstream.ghost', 'nvim.lsp.inline_completion', 'vt_fim' }
local NO_SUGGESTION = { llama_hl_fim_info = true } -- llama.vim writes its times after the ghost text

local function written(chunks)
  local found = {}
  for _, chunk in ipairs(chunks or {}) do
    if not NO_SUGGESTION[chunk[2]] then
      found[#found + 1] = chunk[1]
    end
  end
  return table.concat(found)
end

--- The ghost text of one namespace: its text, with the text of the line that it keeps, and how many
--- characters it keeps.
local function ghost(namespace)
  local text, below, num_kept, last_column = '', '', 0, nil
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
    local row, column, details = mark[2], mark[3], mark[4]
    local inline = written(details.virt_text)
    if inline ~= '' then
      local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]
      local kept = last_column and line:sub(last_column + 1, column) or ''
      num_kept = num_kept + vim.fn.strchars(kept)
      text, last_column = text .. kept .. inline, column
      if details.virt_text_pos == 'overlay' then
        -- llama.vim draws over the rest of the line, and repeats it at the end.
        num_kept = num_kept + vim.fn.strchars(line:sub(column + 1))
      end
    end
    for _, chunks in ipairs(details.virt_lines or {}) do
      below = below .. '\n' .. written(chunks)
    end
  end
  return text .. below, num_kept
end

vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace('keystrokes'), {
  on_end = function()
    local known = vim.api.nvim_get_namespaces()
    local text, num_replaced = '', 0
    for _, name in ipairs(NAMESPACES) do
      if known[name] and text == '' then
        text, num_replaced = ghost(known[name])
      end
    end
    if text ~= Shown.text or num_replaced ~= Shown.num_replaced or not Shown.at then
      Shown = { text = text, num_replaced = num_replaced, at = vim.uv.hrtime() }
    end
  end,
})

vim.on_key(function(_, typed)
  if typed ~= '' then
    Shown = { text = '', num_replaced = 0 }
  end
end)
