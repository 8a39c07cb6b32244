-- The screen as an attached interface draws it: for each row, runs of text with one look.
_G.Screen = {}

local function look(highlight)
  local colors = highlight or {}
  local parts = {}
  for _, name in ipairs({ 'foreground', 'background' }) do
    parts[#parts + 1] = colors[name] and string.format('#%06x', colors[name]) or ''
  end
  parts[#parts + 1] = colors.bold and 'b' or ''
  parts[#parts + 1] = colors.italic and 'i' or ''
  parts[#parts + 1] = colors.reverse and 'r' or ''
  return table.concat(parts, ',')
end

--- The windows that float above the others: their first and last row and column with the border, from 0.
local function floating()
  local found = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      local at = vim.api.nvim_win_get_position(window)
      local height, width = vim.api.nvim_win_get_height(window), vim.api.nvim_win_get_width(window)
      found[#found + 1] = { at[1], at[1] + height + 1, at[2], at[2] + width + 1 }
    end
  end
  return found
end

local function is_inside(row, column, windows)
  for _, at in ipairs(windows) do
    if row >= at[1] and row <= at[2] and column >= at[3] and column <= at[4] then
      return true
    end
  end
  return false
end

--- Each row as a list of `{ text, look }`; the row and column of the cursor, from 0.
function Screen.rows()
  vim.cmd.redraw()
  local rows, windows = {}, floating()
  local normal = look(vim.api.nvim_get_hl(0, { name = 'NormalFloat', link = false }))
  for row = 0, vim.o.lines - 1 do
    local runs, last = {}, nil
    for column = 0, vim.o.columns - 1 do
      local cell = vim.api.nvim__inspect_cell(1, row, column)
      local now = look(cell[2])
      -- A cell of the first grid holds what is below a floating window.
      if is_inside(row, column, windows) then
        cell, now = { vim.fn.screenstring(row + 1, column + 1) }, normal
      end
      if now == last then
        runs[#runs][1] = runs[#runs][1] .. cell[1]
      else
        runs[#runs + 1] = { cell[1], now }
        last = now
      end
    end
    rows[#rows + 1] = runs
  end
  return { rows = rows, cursor = { vim.fn.screenrow() - 1, vim.fn.screencol() - 1 } }
end
