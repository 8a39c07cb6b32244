--- The window with keys saved today and this week, and the server's latencies and counts.

local client = require('slipstream.client')
local highlights = require('slipstream.highlights')
local window = require('slipstream.info_window')

local M = {}

local TIMES = {
  { 'answer', 'response_ms' },
  { 'keystroke processing', 'change_ms' },
  { 'cancellation', 'cancel_to_idle_ms' },
}
local STAGES = { 'queue', 'prompt', 'prefill', 'draft', 'verify', 'postprocess', 'total' }

---@param page slipstream.Page
---@param name string
---@param times table?
local function add_times(page, name, times)
  if times and (times.count or 0) > 0 then
    local p99 = times.p99 and ('%8.1f'):format(times.p99) or '       –'
    local row = '  %-24s%8d%8.1f%8.1f%s%8.1f'
    page:line(row:format(name, times.count, times.p50, times.p95, p99, times.max))
  end
end

---@param page slipstream.Page
---@param stats table
local function add_latencies(page, stats)
  page:line():line('Milliseconds                count     p50     p95     p99     max', 'SlipstreamTitle')
  for _, row in ipairs(TIMES) do
    add_times(page, row[1], stats[row[2]])
  end
  for _, stage in ipairs(STAGES) do
    add_times(page, '  ' .. (stats.texts.stages[stage] or stage), stats.ms and stats.ms[stage])
  end
end

---@param page slipstream.Page
---@param stats table
local function add_counts(page, stats)
  local counters = stats.counters or {}
  local function count(name)
    return counters['num_' .. name] or 0
  end
  page:line():line('Suggestions since the server started', 'SlipstreamTitle')
  local asked = '  %d requested, %d answered, %d empty, %d cancelled'
  page:line(asked:format(count('requests'), count('answered'), count('empty'), count('cancelled')))
  local taken = '  %d shown, %d accepted, %d accepted in part, %d characters accepted'
  local partially = count('partially_accepted')
  page:line(taken:format(count('shown'), count('accepted'), partially, count('accepted_chars')))
end

---@param page slipstream.Page
---@param stats table
local function add_tokens(page, stats)
  local tokens = stats.tokens or {}
  local num_written, num_forwards = tokens.num_written or 0, tokens.num_forwards or 0
  local written = '  %d tokens in %d passes: %.2f per pass'
  page:line():line('Accepted draft tokens', 'SlipstreamTitle')
  page:line(written:format(num_written, num_forwards, num_written / math.max(1, num_forwards)))
  for source, number in vim.spairs(stats.accepted_by_source or {}) do
    page:add('  ■ ', highlights.of_source(source))
    page:line(('%-36s%6d'):format(stats.texts.sources[source] or source, number))
  end
end

--- Today and the last seven days, over all of this user's editors.
---@param page slipstream.Page
---@param stats table
local function add_usage(page, stats)
  local usage = stats.usage
  if type(usage) ~= 'table' then
    return
  end
  local function row(name, figure)
    local cells = vim.tbl_map(function(days)
      local text = tostring(figure(days))
      return (' '):rep(10 - vim.fn.strdisplaywidth(text)) .. text
    end, { usage.today, usage.week })
    page:line(('  %-36s%s'):format(name, table.concat(cells)))
  end
  local function ms(name)
    return function(days)
      return type(days[name]) == 'number' and ('%.0f ms'):format(days[name]) or '–'
    end
  end
  page:line('Today and this week                        today    7 days', 'SlipstreamTitle')
  row('keys saved', function(days)
    return days.num_keys_saved
  end)
  row('suggestions accepted', function(days)
    return days.num_accepted
  end)
  row('response time, median', ms('p50_ms'))
  row('response time, 95th percentile', ms('p95_ms'))
  page:line(('  Kept on this machine for 31 days. To clear it, delete %s.'):format(usage.path))
end

---@param page slipstream.Page
---@param stats table
local function add_index(page, stats)
  if #(stats.index or {}) > 0 then
    page:line():line('Index', 'SlipstreamTitle')
  end
  for _, report in ipairs(stats.index or {}) do
    local name = vim.fn.fnamemodify(report.folder, ':~')
    page:line(('  %s: %s, %d files'):format(name, report.state, report.num_files or 0))
  end
end

--- The model, and why it does not run on a faster backend. With the target `auto` also the reason for it, and
--- the cost of the next larger one.
---@param page slipstream.Page
---@param stats table
local function add_target(page, stats)
  local engine = stats.engine or {}
  if engine.target then
    page:line('  ' .. engine.target)
  end
  if engine.backend_reason and engine.backend_reason ~= '' then
    page:line(('  Runs on: %s. %s'):format(engine.backend, engine.backend_reason))
  end
  for _, name in ipairs({ 'reason', 'step', 'next' }) do
    local said = (engine.auto or {})[name]
    if said and said ~= '' then
      page:line('  ' .. said)
    end
  end
end

---@param stats table the answer to `slipstream/stats`
---@return slipstream.Page
function M.page(stats)
  local page = window.page()
  if stats.state ~= 'ready' then
    page:add(stats.state, stats.state == 'error' and 'ErrorMsg' or 'SlipstreamTitle')
    page:line(('  %s %s'):format(stats.message or '', stats.advice or ''))
  end
  add_usage(page, stats)
  add_counts(page, stats)
  page:line():line('Model', 'SlipstreamTitle')
  add_target(page, stats)
  add_index(page, stats)
  page:line():line('For developers', 'SlipstreamTitle')
  add_latencies(page, stats)
  add_tokens(page, stats)
  return page
end

--- Requests the statistics and opens the window.
function M.open()
  client.ask('slipstream/stats', vim.empty_dict(), function(stats)
    window.open('Slipstream: statistics', M.page(stats))
  end)
end

return M
