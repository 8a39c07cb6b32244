--- A suggestion, and how it fits the text: reuse after typing, and the text that it replaces.
---
--- Reads buffers. Draws nothing and sends no request.

local M = {}

---@class slipstream.Suggestion
---@field item table the item of the server's answer
---@field client_id integer
---@field cursor slipstream.Cursor the cursor at its beginning
---@field text string with `\n` line ends
---@field num_replaced integer bytes after the cursor that the text replaces

--- The rest of a suggestion at the current cursor.
---@class slipstream.View
---@field suggestion slipstream.Suggestion
---@field cursor slipstream.Cursor
---@field text string the rest to insert
---@field num_replaced integer bytes after the cursor that `text` replaces

---@class slipstream.Segment
---@field text string
---@field is_kept boolean whether the buffer already contains it

--- Converts an item of the answer, or returns nil if the item is for another position.
---@param item table
---@param client vim.lsp.Client
---@param cursor slipstream.Cursor
---@return slipstream.Suggestion?
function M.from_item(item, client, cursor)
  local text = item.insertText
  if type(text) ~= 'string' or text == '' then
    return nil
  end
  local num_replaced = 0
  if item.range then
    local encoding = client.offset_encoding
    local from, to = item.range.start, item.range['end']
    local column = vim.str_utfindex(cursor.before, encoding)
    if from.line ~= cursor.row or to.line ~= cursor.row or from.character ~= column then
      return nil
    end
    local line = cursor.before .. cursor.right
    num_replaced = vim.str_byteindex(line, encoding, to.character, false) - cursor.col
  end
  return {
    item = item,
    client_id = client.id,
    cursor = cursor,
    text = (text:gsub('\r\n', '\n')),
    num_replaced = num_replaced,
  }
end

--- Splits a line of the suggestion into new text and text that already follows the cursor, in order.
--- Returns nil if the line does not contain the replaced text in that order.
---@param line string
---@param replaced string
---@return slipstream.Segment[]?
function M.align(line, replaced)
  local segments = {} ---@type slipstream.Segment[]
  local from = 1
  for character in replaced:gmatch('[^\128-\191][\128-\191]*') do
    local at = line:find(character, from, true)
    if not at then
      return nil
    end
    if at > from then
      segments[#segments + 1] = { text = line:sub(from, at - 1), is_kept = false }
    end
    segments[#segments + 1] = { text = character, is_kept = true }
    from = at + #character
  end
  if from <= #line then
    segments[#segments + 1] = { text = line:sub(from), is_kept = false }
  end
  return segments
end

--- Number of bytes after the cursor that the rest replaces, or nil if the text there changed otherwise.
---@param suggestion slipstream.Suggestion
---@param rest string
---@param right string
---@return integer?
local function replaced_now(suggestion, rest, right)
  local then_right, num_replaced = suggestion.cursor.right, suggestion.num_replaced
  local num_added = #right - #then_right
  if num_added == 0 then
    return right == then_right and num_replaced or nil
  end
  if num_added < 0 then
    local is_eaten = -num_added <= num_replaced and vim.endswith(then_right, right)
    return is_eaten and num_replaced + num_added or nil
  end
  -- A plugin that closes brackets inserted the other half of the typed pair.
  local added = right:sub(1, num_added)
  if not vim.endswith(right, then_right) or added:find('[^%)%]}>"\'`]') then
    return nil
  end
  local line = rest:match('^[^\n]*')
  local replaced = added .. then_right:sub(1, num_replaced)
  return M.align(line, replaced) and num_added + num_replaced or nil
end

--- The rest of the suggestion at a cursor, or nil if other text was typed or nothing is left.
---@param suggestion slipstream.Suggestion
---@param now slipstream.Cursor
---@return slipstream.View?
function M.view(suggestion, now)
  local start = suggestion.cursor
  local num_rows = now.row - start.row
  if now.buf ~= start.buf or num_rows < 0 or now.num_lines - start.num_lines ~= num_rows then
    return nil
  end
  local lines = vim.api.nvim_buf_get_text(now.buf, start.row, 0, now.row, now.col, {})
  local written = table.concat(lines, '\n')
  if #written < start.col or not vim.startswith(written, start.before) then
    return nil
  end
  local typed = written:sub(start.col + 1)
  if #typed >= #suggestion.text or not vim.startswith(suggestion.text, typed) then
    return nil
  end
  local rest = suggestion.text:sub(#typed + 1)
  local num_replaced = replaced_now(suggestion, rest, now.right)
  if not num_replaced or rest == now.right:sub(1, num_replaced) then
    return nil
  end
  return { suggestion = suggestion, cursor = now, text = rest, num_replaced = num_replaced }
end

--- The beginning of `text` that a part names: a word with the blanks before it, or the rest of the line.
---@param text string
---@param part slipstream.Part
---@return string
function M.head(text, part)
  if part == 'all' then
    return text
  elseif part == 'line' then
    return text:match('^\n*[^\n]*')
  end
  return text:match('^%s*[%w_\128-\255]+') or text:match('^%s*[^%w%s_\128-\255]+') or text
end

--- Number of bytes after the cursor that inserting `head`, the first part of the view's text, replaces.
---@param view slipstream.View
---@param head string
---@return integer
function M.num_consumed(view, head)
  if head == view.text then
    return view.num_replaced
  end
  local replaced = view.cursor.right:sub(1, view.num_replaced)
  local segments = M.align(view.text:match('^[^\n]*'), replaced) or {}
  local num_passed, num_consumed = 0, 0
  for _, segment in ipairs(segments) do
    num_passed = num_passed + #segment.text
    if num_passed > #head then
      break
    end
    num_consumed = num_consumed + (segment.is_kept and #segment.text or 0)
  end
  return num_consumed
end

--- Length of the item's text that is inserted after `head`, in UTF-16 units.
---@param view slipstream.View
---@param head string
---@return integer
function M.accepted_units(view, head)
  local suggestion = view.suggestion
  local written = suggestion.text:sub(1, #suggestion.text - #view.text + #head)
  if suggestion.item.insertText:find('\r\n', 1, true) then
    written = written:gsub('\n', '\r\n')
  end
  return vim.str_utfindex(written, 'utf-16')
end

return M
