--- All places of the next edit at once: a list to look at first, then applied in this file or everywhere.

local clients = require('slipstream.client')
local cursors = require('slipstream.cursor')
local window = require('slipstream.info_window')

local M = {}

local METHOD = 'textDocument/copilotInlineEdit'
local INVOKED = 1

---@class slipstream.Place an edit of the answer
---@field uri string
---@field version integer? nil if the file is not open
---@field range lsp.Range
---@field text string

---@param item table
---@return slipstream.Place
local function place_of(item)
  local version = item.textDocument.version
  return {
    uri = item.textDocument.uri,
    version = version ~= vim.NIL and version or nil,
    range = item.range,
    text = item.text,
  }
end

--- Whether the document of a place is as it was when the server was asked.
---@param place slipstream.Place
local function is_current(place)
  local buf = vim.uri_to_bufnr(place.uri)
  local version = vim.api.nvim_buf_is_loaded(buf) and vim.lsp.util.buf_versions[buf] or nil
  return version == place.version
end

---@param uri string
---@return string[]
local function lines_of(uri)
  local buf = vim.uri_to_bufnr(uri)
  if vim.api.nvim_buf_is_loaded(buf) then
    return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  local is_read, lines = pcall(vim.fn.readfile, vim.uri_to_fname(uri))
  return is_read and lines or {}
end

---@param number integer
---@param one string
local function numbered(number, one)
  return ('%d %s%s'):format(number, one, number == 1 and '' or 's')
end

---@param page slipstream.Page
---@param place slipstream.Place
---@param lines string[]
---@param encoding string
local function add_place(page, place, lines, encoding)
  local first, last = place.range.start, place.range['end']
  local line, end_line = lines[first.line + 1] or '', lines[last.line + 1] or ''
  local from = vim.str_byteindex(line, encoding, first.character, false)
  local to = vim.str_byteindex(end_line, encoding, last.character, false)
  local old = first.line == last.line and line:sub(from + 1, to) or line:sub(from + 1) .. ' …'
  local new = place.text:gsub('\r?\n', ' ⏎ ')
  local link = { file = vim.uri_to_fname(place.uri), line = first.line }
  page:add(('%6d  '):format(first.line + 1), 'SlipstreamMuted', link)
  page:add((line:sub(1, from):gsub('^%s+', '')), nil, link)
  page:add(old, 'SlipstreamReplaced', link):add(new, 'SlipstreamAdded', link)
  page:line(end_line:sub(to + 1))
end

---@param places slipstream.Place[] those of one file follow each other
---@param here string the URI of the current buffer
---@param encoding string
---@return slipstream.Page
function M.page(places, here, encoding)
  local files = vim.iter(places):fold({}, function(found, place)
    found[place.uri] = (found[place.uri] or 0) + 1
    return found
  end)
  local page = window.page()
  page:line(numbered(#places, 'place') .. ' in ' .. numbered(vim.tbl_count(files), 'file'), 'SlipstreamTitle')
  page:line('a  apply all')
  if files[here] and files[here] < #places then
    page:line(('f  apply the %d in this file'):format(files[here]))
  end
  page:line('<CR>  go to the place under the cursor'):line('q  close')
  local uri, lines
  for _, place in ipairs(places) do
    if place.uri ~= uri then
      uri, lines = place.uri, lines_of(place.uri)
      page:line():line(vim.fn.fnamemodify(vim.uri_to_fname(uri), ':~:.'), 'Directory')
    end
    add_place(page, place, lines, encoding)
  end
  return page
end

---@param client vim.lsp.Client
---@param places slipstream.Place[]
---@param command lsp.Command? notifies the server
local function apply(client, places, command)
  if not vim.iter(places):all(is_current) then
    vim.notify('Slipstream: a file has changed since. Ask for the places again.', vim.log.levels.WARN)
    return
  end
  local changes, of_file = {}, {}
  for _, place in ipairs(places) do
    if not of_file[place.uri] then
      of_file[place.uri] = { textDocument = { uri = place.uri, version = place.version }, edits = {} }
      table.insert(changes, of_file[place.uri])
    end
    table.insert(of_file[place.uri].edits, { range = place.range, newText = place.text })
  end
  vim.lsp.util.apply_workspace_edit({ documentChanges = changes }, client.offset_encoding)
  if command then
    client:exec_cmd(command)
  end
  local said = 'Slipstream: changed %s in %s. :wall saves all files.'
  vim.notify(said:format(numbered(#places, 'place'), numbered(#changes, 'file')), vim.log.levels.INFO)
end

---@param client vim.lsp.Client
---@param items table[]
---@param here string
local function show(client, items, here)
  local places = vim.tbl_map(place_of, items)
  local command = items[1].command
  local function applying(chosen)
    return function()
      apply(client, chosen, command)
    end
  end
  local in_this_file = vim.tbl_filter(function(place)
    return place.uri == here
  end, places)
  table.sort(places, function(one, other)
    if one.uri ~= other.uri then
      return one.uri == here or (other.uri ~= here and one.uri < other.uri)
    end
    return one.range.start.line < other.range.start.line
  end)
  local keys = { a = applying(places), f = #in_this_file > 0 and applying(in_this_file) or nil }
  window.open('Slipstream: all places of the next edit', M.page(places, here, client.offset_encoding), keys)
end

--- Asks for all places of the next edit, and opens the list.
function M.open()
  local cursor = cursors.here()
  local running = clients.any()
  local here = vim.uri_from_bufnr(cursor.buf)
  local params = {
    textDocument = { uri = here, version = vim.lsp.util.buf_versions[cursor.buf] },
    position = cursors.position(cursor, running and running.offset_encoding or 'utf-16'),
    context = { triggerKind = INVOKED, otherDocuments = true, otherFiles = true, allEdits = true },
  }
  clients.ask(METHOD, params, function(answer)
    if running and answer and #answer.edits > 0 then
      show(running, answer.edits, here)
    else
      vim.notify(M.none(answer), vim.log.levels.INFO)
    end
  end, cursor.buf)
end

--- The message that there is no next edit.
---@param answer table?
---@return string
function M.none(answer)
  return vim.trim('Slipstream: no next edit. ' .. (answer and answer.reason or ''))
end

return M
