--- The window that explains one suggestion: its reason, that of the next edit, the source of each part,
--- and the time it took.

local client = require('slipstream.client')
local highlights = require('slipstream.highlights')
local cursors = require('slipstream.cursor')
local current_suggestion = require('slipstream.current_suggestion')
local window = require('slipstream.info_window')

local M = {}

local STAGES = { 'queue', 'prompt', 'prefill', 'draft', 'verify', 'postprocess', 'total' }

---@param part table
---@return slipstream.Link?
local function link_of(part)
  if type(part.file) == 'string' and type(part.line) == 'number' then
    return { file = part.file, line = part.line }
  end
end

---@param page slipstream.Page
---@param answer table
local function add_reason(page, answer)
  page:line(answer.shown and 'Suggested' or 'No suggestion', 'SlipstreamTitle')
  page:line(answer.reason)
  local edit = answer.next_edit
  if edit then
    page:line():line(edit.shown and 'Next edit' or 'No next edit', 'SlipstreamTitle')
    page:line(edit.shown and ('Proposed for line %d.'):format(edit.line + 1) or edit.reason)
  end
end

---@param page slipstream.Page
---@param parts table[]
---@param sources table<string, string> the text for each source
local function add_parts(page, parts, sources)
  for _, part in ipairs(parts) do
    page:add(part.text, highlights.of_source(part.source), link_of(part))
  end
  page:line():line():line('Sources', 'SlipstreamTitle')
  for _, part in ipairs(parts) do
    local link = link_of(part)
    local shown = part.text:gsub('\n', '⏎'):gsub('\t', '⇥')
    local group = highlights.of_source(part.source)
    local padding = (' '):rep(24 - vim.fn.strdisplaywidth(shown))
    page:add('■ ', group, link):add(shown .. padding, group, link)
    page:add('  ' .. (sources[part.source] or part.source), nil, link)
    if link then
      local name = vim.fn.fnamemodify(link.file, ':~:.')
      page:add(('  %s:%d'):format(name, link.line + 1), 'Directory', link)
    elseif (part.evidence or '') ~= '' then
      page:add('  ' .. part.evidence, 'SlipstreamMuted')
    end
    page:line()
  end
end

---@param page slipstream.Page
---@param stats table
---@param stages table<string, string> the text for each stage
local function add_stats(page, stats, stages)
  local num_tokens, num_forwards = stats.num_tokens or 0, stats.num_forwards or 0
  page:line():line('For developers', 'SlipstreamTitle')
  if num_forwards == 0 then
    page:line(('%d tokens, reused from an earlier answer'):format(num_tokens))
  else
    local passes = '%d tokens, %d written in %d passes: %.1f per pass'
    local num_written = stats.num_written or 0
    page:line(passes:format(num_tokens, num_written, num_forwards, num_written / num_forwards))
    local drafted = '%d draft tokens, %d of them accepted'
    page:line(drafted:format(stats.num_drafted or 0, stats.num_accepted or 0))
  end
  local times = {}
  for _, stage in ipairs(STAGES) do
    local ms = stats.ms and stats.ms[stage] or 0
    times[#times + 1] = ms >= 0.05 and ('%s %.1f ms'):format(stages[stage] or stage, ms) or nil
  end
  page:line(table.concat(times, ' · '), 'SlipstreamMuted')
end

---@param answer table the answer to `slipstream/why`
---@return slipstream.Page
function M.page(answer)
  local page = window.page()
  add_reason(page, answer)
  if answer.pieces and #answer.pieces > 0 then
    page:line()
    add_parts(page, answer.pieces, answer.texts.sources)
  end
  if answer.stats and (answer.stats.num_tokens or 0) > 0 then
    add_stats(page, answer.stats, answer.texts.stages)
  end
  return page
end

--- The cursor before the user left insert mode, which moves it one to the left.
---@return slipstream.Cursor
local function intended_cursor()
  local here = cursors.here()
  if vim.api.nvim_get_mode().mode:sub(1, 1) == 'i' then
    return here
  end
  local row, col = unpack(vim.api.nvim_buf_get_mark(here.buf, '^'))
  local line = here.before .. here.right
  if row ~= here.row + 1 or col <= here.col or col > #line then
    return here
  end
  return vim.tbl_extend('force', here, { col = col, before = line:sub(1, col), right = line:sub(col + 1) })
end

--- Requests the explanation of the visible suggestion or the cursor position, and opens the window.
function M.open()
  local view = current_suggestion.visible()
  local arguments = view and view.suggestion.item.command and view.suggestion.item.command.arguments
  local running = client.any()
  local cursor = intended_cursor()
  local params = {
    id = arguments and arguments[1],
    textDocument = { uri = vim.uri_from_bufnr(cursor.buf) },
    position = cursors.position(cursor, running and running.offset_encoding or 'utf-16'),
  }
  client.ask('slipstream/why', params, function(answer)
    window.open('Slipstream: why', M.page(answer))
  end, cursor.buf)
end

return M
