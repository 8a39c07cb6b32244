"""Rules against text that repeats the text after the cursor, the line above, or a chat."""

from __future__ import annotations

import re
from itertools import pairwise

from completion_engine.languages.table import LANGUAGES
from completion_engine.suggestions.regions import CursorRegion, Reading
from completion_engine.suggestions.rest_of_line import imbalance
from completion_engine.suggestions.rules import Fire
from completion_engine.text_window import indent_width

NUM_HEAD_CHARS = 20
MAX_HEAD_CHARS = 60
LONG_LINE = 20
_LEAST_REST = 12  # characters of a rest of the line
_MIN_SECOND = 4  # characters of a second line

_FENCE = "```"
_FENCE_MARK = re.compile("`{3,}")
_BEFORE_FENCE = re.compile(r"[\s>*+/#!;%-]*(?:\d+[.)]\s*)?")
_SPECIAL_TOKEN = re.compile(r"<\|[\w-]{2,24}\|>")
_FENCED_ELEMENTS = frozenset({"pre", "code", "textarea", "xmp"})
_CLOSING_CHARS = " \t)]}>*_~`$|'\".,;:"
WORD = re.compile(r"[^\W_]")
_PUNCTUATION = " \t.,;:!?`'\""
_ONLY_ONCE = re.compile(
    r"^(?:[\s)\]}>;,:'\"`]*[)\]}][\s)\]};,:]*|pass|break|continue|return;?|end|fi|done|esac"
    r"|else:?|else \{|\} else \{|finally:?|try:|begin|default:|</[\w:.-]+>)$"
)
_DATA = re.compile(r".{0,40},|[-+]?[\d.]+|0x[\da-fA-F]+|[\"'][^\"']{0,40}[\"']")
_MAX_ONCE_CHARS = 100
NUM_COPIED = 3  # lines in a row that stand below already
_NUM_LINES_BELOW = 4  # people write what stands further below once more


def is_telling(line: str) -> bool:
    """Return whether a second copy of a line is a repeat; false for lines such as `}`, `0,` or `end`."""
    stripped = line.strip()
    return len(stripped) >= 4 and len(WORD.findall(stripped)) >= 3 and not _stands_once(stripped)


def _stands_once(code: str) -> bool:
    """Return whether a line of code cannot follow itself; false for long lines."""
    return len(code) <= _MAX_ONCE_CHARS and _ONLY_ONCE.match(code) is not None


def repeats(region: CursorRegion, line: str, following: str, *, is_first: bool) -> bool:
    """Whether a line repeats the one that follows it in the document.

    A long line does wherever it stands, others in the same column. Short data such as `0,` never does, nor a
    short line in a document that holds another one twice in a row. A ruler may be first: it begins a box.
    """
    if line.strip() != following.strip() or not line.strip():
        return False
    if is_telling(line) and len(line.strip()) >= LONG_LINE:
        return True
    if indent_width(line) != indent_width(following):
        return False
    if is_telling(line) or _stands_once(line.strip()):
        return True
    if is_first and len(line.strip()) > len("```") and not WORD.search(line):
        return False
    return not _DATA.fullmatch(line.strip()) and not _repeats_lines(region)


def _repeats_lines(region: CursorRegion) -> bool:
    """Return whether the document near the cursor, without the cursor's line, has the same line twice in a
    row.
    """
    above = [line.rstrip() for line in region.before.split("\n")[:-1] if line.strip()]
    below = [line.rstrip() for line in region.lines_below]
    beside = above[-1:] + below[:1] if below and WORD.search(below[0]) else []  # no rulers: they make a box
    return any(first == second for lines in (above, below, beside) for first, second in pairwise(lines))


def repeats_next_line(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires if a complete generated line equals the next non-blank line, or two lines equal the next two."""
    below = region.lines_below
    if not below or region.line_suffix.strip():
        return None
    closers = region.language.closers
    previous = -1  # end of the text before a line that is too short to count by itself
    for index, line in enumerate(reading.lines):
        text = region.line_text(reading, index)
        if not line.is_ended or not text.strip():
            continue
        keep = max(0, line.start - 1) if index else 0
        is_closer = text.strip() == below[0].strip() and text.strip() in closers
        is_at_its_place = indent_width(text) == indent_width(below[0]) or (
            index == 0 and not _closes_block_above(region)
        )
        counts_alone = not region.language.prelude.search(text)
        if (is_closer and is_at_its_place) or (
            counts_alone and repeats(region, text, below[0], is_first=index == 0)
        ):
            return Fire(line.end + 1, keep, "repeats-next-line")
        if previous >= 0 and text.rstrip() == below[1].rstrip():
            return Fire(line.end + 1, previous, "repeats-next-line")
        if fire := _goes_on_as_next_line(region, reading, index):
            return fire
        previous = keep if len(below) > 1 and text.rstrip() == below[0].rstrip() else -1
    return None


def _goes_on_as_next_line(region: CursorRegion, reading: Reading, index: int) -> Fire | None:
    """Fires if a line goes on with all of the line that follows it in the document.

    Code counts only if that line closes more brackets than it opens: a statement may hold any other line.
    """
    following, line = region.lines_below[0].strip(), reading.lines[index]
    closes = any(following.count(closing) > following.count(mark) for mark, closing in ("()", "[]", "{}"))
    if len(following) < LONG_LINE or not is_telling(following) or not (closes or region.language.is_text):
        return None
    text = region.line_text(reading, index).rstrip()
    before = text.removesuffix(following)
    if before == text or not before.strip() or before[-1].isalnum():
        return None
    keep = max(0, line.end - len(region.line_text(reading, index)) + len(before.rstrip()))
    return Fire(line.end + 1, keep * bool(reading.text[:keep].strip(_PUNCTUATION)), "repeats-next-line")


def copies_lines_below(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires if three written lines, at least two of them telling, stand just below in the same order.

    A line before them that begins their block is dropped with them, unless it stands at the cursor.
    """
    below = [line.rstrip() for line in region.lines_below[:_NUM_LINES_BELOW]]
    starts: list[int] = []
    written: list[str] = []
    for index, line in enumerate(reading.lines):
        text = region.line_text(reading, index).rstrip()
        if not line.is_ended or not text:
            continue
        starts.append(line.start)
        written.append(text)
        last = written[-NUM_COPIED:]
        if text in below and sum(map(is_telling, last)) >= NUM_COPIED - 1 and _holds(below, last):
            keep = max(0, starts[-NUM_COPIED] - 1)
            return Fire(line.end + 1, _before_header(region, reading, keep), "repeats-suffix")
    return None


def _before_header(region: CursorRegion, reading: Reading, end: int) -> int:
    """Return `end` without the written lines before it that begin a block; the author's own line is kept."""
    for index in range(len(reading.lines) - 1, -1, -1):
        line = reading.lines[index]
        if line.end > end:
            continue
        code = region.line_code(reading, index)
        begins_block = line.depth_end > line.depth or region.language.opener.search(code)
        if not begins_block or (index == 0 and not region.is_blank_line):
            break
        end = max(0, line.start - 1)
    return end


def _holds(lines: list[str], part: list[str]) -> bool:
    """Whether a list holds another, of `NUM_COPIED` lines, without a gap."""
    spans = zip(*(lines[at:] for at in range(NUM_COPIED)), strict=False)
    return tuple(part) in spans


def _closes_block_above(region: CursorRegion) -> bool:
    """Return whether a closing word in the cursor's column would close a block that began in this column."""
    num_deeper = 0
    for line in reversed(region.before.split("\n")[:-1]):
        width = indent_width(line)
        if line.strip() and width <= region.indent:
            is_opened = width == region.indent and num_deeper > 0
            return is_opened and region.language.opener.search(line.rstrip()) is not None
        num_deeper += bool(line.strip())
    return False


def repeats_suffix(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires if the text ends with the first 20 characters of the suffix, without leading blanks.

    If they begin a line, up to 60 characters of this line count, because neighbouring lines often begin
    alike. Decorators count together with the line after them, because neighbours often share them.
    """
    stripped = region.after.lstrip()
    is_at_line_start = "\n" in region.after[: len(region.after) - len(stripped)]
    num_chars = NUM_HEAD_CHARS
    if is_at_line_start:
        line, _, others = stripped.partition("\n")
        num_chars = max(num_chars, min(len(line), MAX_HEAD_CHARS))
        if region.language.prelude.search(line):
            num_chars = len(line) + 1 + len(others.partition("\n")[0])
    fires = [_repeats_head(region, reading.text, stripped[:num_chars], is_line=is_at_line_start)]
    fires.append(_repeats_head(region, reading.text, _joined_lines(region), is_line=False))
    if not is_at_line_start:  # a target may leave out the marks that close what stands before the cursor
        rest = region.line_suffix.strip(_CLOSING_CHARS)[:NUM_HEAD_CHARS]
        fires.append(_repeats_head(region, reading.text, rest, is_line=False, least=_LEAST_REST))
    return min((fire for fire in fires if fire), key=lambda fire: fire.seen, default=None)


def _joined_lines(region: CursorRegion) -> str:
    """Return the next line and the beginning of the one after it as a target may write them on one line."""
    first, second = [*(line.strip() for line in region.lines_below[:2]), "", ""][:2]
    between = "" if second.startswith((".", "?", ")", "]", "}")) else " "
    is_known = is_telling(first) and len(second) >= _MIN_SECOND
    return f"{first}{between}{second[:NUM_HEAD_CHARS]}" if is_known else ""


def _repeats_head(
    region: CursorRegion, text: str, head: str, *, is_line: bool, least: int = NUM_HEAD_CHARS
) -> Fire | None:
    if len(head) < least or len(set(WORD.findall(head))) < 4:
        return None
    start = text.find(head)
    while start >= 0:
        line = (region.line_prefix + text[:start]).rpartition("\n")[2]
        if not (is_line and line.strip()):
            keep = start if region.after.lstrip().startswith(head) else len(text[:start].rstrip())
            keep = keep if text[:keep].strip(_PUNCTUATION) else 0
            return Fire(start + len(head), keep, "repeats-suffix")
        start = text.find(head, start + 1)
    return None


def rest_of_line_reached(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires when the text ends with the whole rest of the line and all its brackets are paired."""
    rest = region.line_suffix.strip()
    if not region.cursor.has_rest_of_line or len(rest) < 3:
        return None
    start = reading.text.find(rest)
    while start >= 0:
        end = start + len(rest)
        seen = end + rest[-1].isalnum()  # a word that continues is another word
        is_whole = seen <= len(reading.text) and not (seen > end and reading.text[end].isalnum())
        left_open = imbalance(region, reading.text[:end], len(region.line_suffix)) if is_whole else 0
        if is_whole and left_open <= imbalance(region, "", 0):
            return Fire(seen, end, "rest-of-line-reached")
        start = reading.text.find(rest, start + 1)
    return None


def repeats_line_above(region: CursorRegion, text: str) -> bool:
    """Return whether `text`, which is not empty, begins with a copy of the line above the cursor's."""
    above = region.line_above()
    first = region.line_prefix + text.lstrip("\n").partition("\n")[0]
    if text.startswith("\n"):
        above, first = region.line_prefix or above, text.lstrip("\n").partition("\n")[0]
    return is_telling(first) and first.rstrip(_PUNCTUATION) == above.rstrip(_PUNCTUATION)


def ends_as_in_a_chat(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires where code ends with a Markdown fence or a control marker of a model, as in a chat."""
    found = _SPECIAL_TOKEN.search(reading.text)
    if found and found[0] not in region.before + region.after:
        return Fire(found.end(), len(reading.text[: found.start()].rstrip()), "chat-fence")
    for index, line in enumerate(reading.lines):
        text = reading.text[line.start : line.end]
        whole = region.line_text(reading, index)
        num_before = len(whole) - len(text)
        for found in _FENCE_MARK.finditer(text):
            start = line.start + found.start()
            if _may_hold_fences(region) or _is_in_text(reading, start):
                is_last = line.is_ended and not text[found.end() :].strip()
                begins = _BEFORE_FENCE.fullmatch(whole, 0, num_before + found.start()) is not None
                if not is_last or begins or whole.count(_FENCE) % 2 == 0:
                    continue
            return Fire(start + len(_FENCE), len(reading.text[:start].rstrip()), "chat-fence")
    return None


def _may_hold_fences(region: CursorRegion) -> bool:
    """Whether the cursor is in a fence, in an element for text, or in an unknown language that has fences."""
    if region.language.has_fences:
        return True
    for entry in region.stack:
        if entry.tag.startswith(_FENCE) or entry.tag.lower() in _FENCED_ELEMENTS:
            return True
    return region.language_id not in LANGUAGES and _FENCE in region.before + region.after


def _is_in_text(reading: Reading, at: int) -> bool:
    """Whether an offset of the text is in a string or comment, or opens one by a triple mark."""
    inside = reading.lines[0].inside
    for event in reading.events:
        if event.start > at:
            break
        if event.kind == "open" and event.entry and event.entry.is_text:
            if event.start == at:
                return event.entry.mark == _FENCE
            inside = event.entry
        elif event.kind in ("close", "newline") and event.end <= at and event.entry is inside:
            inside = None if event.kind == "close" or not inside or inside.pair.ends_with_line else inside
    return inside is not None
