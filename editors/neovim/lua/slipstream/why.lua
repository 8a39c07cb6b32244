--- The window that explains one suggestion: its reason, its stages, and where each piece came from.

local client = require('slipstream.client')
local highlights = require('slipstream.highlights')
local places = require('slipstream.place')
local session = require('slipstream.session')
local window = require('slipstream.window')

local M = {}

local STAGES = { 'queue', 'prompt', 'prefill', 'draft', 'verify', 'postprocess', 'total' }

---@param piece table
---@return slipstream.Goal?
local function goal_of(piece)
  if type(piece.file) == 'string' and type(piece.line) == 'number' then
    return { file = piece.file, line = piece.line }
  end
end

---@param page slipstream.Page
---@param answer table
local function add_reason(page, answer)
  page:line(answer.shown and 'Suggested' or 'Nothing suggested', 'SlipstreamTitle')
  page:line(answer.reason)
end

---@param page slipstream.Page
---@param pieces table[]
---@param sources table<string, string> what to show for each source
local function add_pieces(page, pieces, sources)
  for _, piece in ipairs(pieces) do
    page:add(piece.text, highlights.of_source(piece.source), goal_of(piece))
  end
  page:line():line():line('Where it came from', 'SlipstreamTitle')
  for _, piece in ipairs(pieces) do
    local goal = goal_of(piece)
    local shown = piece.text:gsub('\n', '⏎'):gsub('\t', '⇥')
    local group = highlights.of_source(piece.source)
    local padding = (' '):rep(24 - vim.fn.strdisplaywidth(shown))
    page:add('■ ', group, goal):add(shown .. padding, group, goal)
    page:add('  ' .. (sources[piece.source] or piece.source), nil, goal)
    if goal then
      local name = vim.fn.fnamemodify(goal.file, ':~:.')
      page:add(('  %s:%d'):format(name, goal.line + 1), 'Directory', goal)
    elseif (piece.evidence or '') ~= '' then
      page:add('  ' .. piece.evidence, 'SlipstreamMuted')
    end
    page:line()
  end
end

---@param page slipstream.Page
---@param stats table
---@param stages table<string, string> what to show for each stage
local function add_stats(page, stats, stages)
  local num_tokens, num_forwards = stats.num_tokens or 0, stats.num_forwards or 0
  page:line():line('How', 'SlipstreamTitle')
  if num_forwards == 0 then
    page:line(('%d tokens, all known from an earlier answer'):format(num_tokens))
  else
    local passes = '%d tokens, %d written in %d passes, %.1f a pass'
    local num_written = stats.num_written or 0
    page:line(passes:format(num_tokens, num_written, num_forwards, num_written / num_forwards))
    local drafted = '%d tokens drafted, %d of them accepted'
    page:line(drafted:format(stats.num_drafted or 0, stats.num_accepted or 0))
  end
  local parts = {}
  for _, stage in ipairs(STAGES) do
    local ms = stats.ms and stats.ms[stage] or 0
    parts[#parts + 1] = ms >= 0.05 and ('%s %.1f ms'):format(stages[stage] or stage, ms) or nil
  end
  page:line(table.concat(parts, ' · '), 'SlipstreamMuted')
end

---@param answer table the answer to `slipstream/why`
---@return slipstream.Page
function M.page(answer)
  local page = window.page()
  add_reason(page, answer)
  if answer.pieces and #answer.pieces > 0 then
    page:line()
    add_pieces(page, answer.pieces, answer.texts.sources)
  end
  if answer.stats and (answer.stats.num_tokens or 0) > 0 then
    add_stats(page, answer.stats, answer.texts.stages)
  end
  return page
end

--- The place that is meant: leaving insert mode moves the cursor one to the left of where it was.
---@return slipstream.Place
local function meant_place()
  local here = places.here()
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

--- Asks about the suggestion on the screen, or else about the cursor's place, and opens the window.
function M.open()
  local view = session.visible()
  local arguments = view and view.suggestion.item.command and view.suggestion.item.command.arguments
  local running = client.any()
  local place = meant_place()
  local params = {
    id = arguments and arguments[1],
    textDocument = { uri = vim.uri_from_bufnr(place.buf) },
    position = places.position(place, running and running.offset_encoding or 'utf-16'),
  }
  client.ask('slipstream/why', params, function(answer)
    window.open('Slipstream: why', M.page(answer))
  end, place.buf)
end

return M
