"""Finds how much of the rest of the cursor's line a text replaces, and how balanced the line then is.

It counts the events of the scan. On the cursor's line it also counts quotes and brackets in prose, and angle
brackets, whose meaning depends on the text around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from completion_engine.languages.open_marks import Event, Open, Stack
from completion_engine.languages.scanner import scan
from completion_engine.suggestions.regions import CursorRegion

MIN_OVERLAP = 3
_LONG_REST = 8  # characters; a text that ends with as many repeats them
_SEPARATORS = ";,:"
_ANGLES = r"<(?![\s=])|(?<![\s=-])>"
_CODE = re.compile(_ANGLES)
_NESTED = re.compile(rf"\\[^\n]|[()\[\]{{}}]|{_ANGLES}")
_QUOTED = rf"\"|`+|(?<!\w)'|'(?!\w)|{_NESTED.pattern}"
_TEXT = re.compile(_QUOTED)
_EMPHASIS = r"\*{1,3}+(?!\s)|(?<=\S)\*{1,3}+|(?<!\w)_(?!\s)|(?<!\s)_(?!\w)|\$(?!\s)|(?<!\s)\$"
_PROSE = re.compile(f"{_EMPHASIS}|{_QUOTED}")
_CLOSING_MARKS = re.compile(r"[)\]}>%#$*|/?!'\"`-]+")
_OPERATOR = re.compile(r"[ ]([=:|&+*<>.?]|[-=!<>:]=|&&|\|\||->|=>)[ ]")
_MAX_MARKS = 8
_MAX_OVERLAPS = 8
_MAX_OPENED = 64  # marks in prose without a partner yet
_MAX_KEPT = 256  # imbalances
OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}
_MAX_CHARS_BEFORE = 400  # characters of the cursor's line


def num_covered(region: CursorRegion, text: str) -> int:
    """Return how many characters of the rest of the line `text` replaces.

    Chooses the number that leaves brackets and strings the most balanced; among equals, the largest. A text
    that ends with the whole rest replaces it if the line is at least as balanced as before: the rest may
    close what other lines open.
    """
    rest = region.line_suffix
    if not rest.strip():
        return len(rest) if text else 0
    last = len(rest.rstrip())
    is_whole = len(rest.strip()) >= _LONG_REST and text.rstrip().endswith(rest.strip())
    if is_whole and imbalance(region, text, last) <= imbalance(region, "", 0):
        return last
    heads = _overlaps(text, rest) + _begun_ends(text.rstrip(), rest) + _closed_heads(region, text, rest)
    return min((0, *heads), key=lambda length: (imbalance(region, text, length), -length))


def imbalance(region: CursorRegion, text: str, num_replaced: int) -> int:
    """Number of marks that the cursor's line with `text` leaves open or closes too often."""
    key = text, num_replaced
    found = region.imbalances.get(key)
    if found is None:
        if len(region.imbalances) >= _MAX_KEPT:
            region.imbalances.clear()
        joined = text + region.line_suffix[num_replaced:]
        found = _imbalance(region, joined) + _num_closed_twice(region, text, num_replaced)
        region.imbalances[key] = found
    return found


def _num_closed_twice(region: CursorRegion, text: str, num_replaced: int) -> int:
    """Number of entries on the cursor's line that both `text` and its uncovered rest close."""
    line_start, line_end = -len(region.line_prefix), len(region.line_suffix)
    closed = [
        entry
        for entry in region.stack
        if entry.start >= line_start and num_replaced < region.closed.get(entry.start, 0) <= line_end
    ]
    if not closed or not region.cursor.has_rest_of_line:
        return 0
    reading = region.read(text)
    marks = [entry.mark for entry in reading.stack if entry.start >= 0]
    return sum(entry not in reading.stack and entry.mark not in marks for entry in closed)


def _imbalance(region: CursorRegion, joined: str) -> int:
    stack = list(region.stack)
    events = list(scan(region.document_language, joined, stack, before=region.tail))
    region.num_marks_read += len(events)
    num_unmatched = sum(event.kind == "unmatched" for event in events)
    outer, num_closed_by_rest = region.outer_on_line
    num_outer = sum(entry.start in outer for entry in stack)
    num_opened = sum(not entry.is_comment and entry.start not in outer for entry in stack)
    num_closed = len(outer) - num_outer
    num_misclosed = abs(num_closed - num_closed_by_rest)
    num_dropped = sum(event.num_dropped for event in events)
    prose = joined[: _end_of_prose(region, events)]
    return num_opened + num_misclosed + num_unmatched + num_dropped + _loose_marks(region, prose)


def _end_of_prose(region: CursorRegion, events: list[Event]) -> int | None:
    """Return where the string or comment at the cursor ends; None in prose, or if it does not end."""
    inside = region.inside
    return next((e.start for e in events if inside and e.kind == "close" and e.entry == inside), None)


def _loose_marks(region: CursorRegion, text: str) -> int:
    """Return the number of marks in prose on the cursor's line that have no partner."""
    if "\n" in text or not is_prose(region):
        return 0
    opened: list[str] = []
    start = prose_start(region)
    waiting: set[str] = set()
    closes_nothing = num_before = 0
    # The scan knows where a string ends, so that quotes in it need no partner.
    is_string = region.inside is not None and not region.inside.is_comment
    marks = _NESTED if is_string else _marks_of(region)
    for found in chain(marks.finditer(start), marks.finditer(start + text, len(start))):
        region.num_marks_read += 1
        crossed = opened.copy() if found[0].startswith("*") else []
        closes_nothing += _closes_nothing(found[0], opened, waiting)
        closes_nothing += sum(mark.startswith("*") for mark in crossed[len(opened) + 1 :])  # `**a* b**`
        num_before = len(opened) if found.start() < len(start) else min(num_before, len(opened))
    # A mark that the editor inserted after the cursor does not close what the text opens and leaves open.
    return closes_nothing + (len(opened) if region.cursor.has_rest_of_line else num_before)


def is_prose(region: CursorRegion) -> bool:
    """Whether the cursor is in a string, a comment or prose."""
    return region.inside is not None or not region.language.brackets


def _marks_of(region: CursorRegion) -> re.Pattern[str]:
    """The marks that stand in pairs in the cursor's text.

    `*`, `_` and `$` are such marks in prose only. In strings and comments of code they belong to names,
    patterns and formulas.
    """
    return _PROSE if region.language.is_marked and region.inside is None else _TEXT


def prose_start(region: CursorRegion) -> str:
    """Return the prose on the cursor's line before the cursor."""
    line = region.line_prefix[-_MAX_CHARS_BEFORE:]
    inner = region.stack[-1] if region.stack else None
    if inner is None or inner.pair.kind == "bracket":
        return line
    num_inside = -inner.start - len(inner.mark)
    return line[len(line) - num_inside :] if num_inside < len(line) else line


def _overlaps(text: str, rest: str) -> list[int]:
    """Lengths of the heads of `rest` that `text` ends with.

    Counts all of `rest`, a separator that is never doubled, or enough of it, up to a word's end.
    """
    blanks = len(rest) - len(rest.lstrip())
    last = len(rest.rstrip())
    text = text.rstrip()
    separator = [blanks + 1] if rest[blanks] in ",;" else []
    if (sign := _OPERATOR.match(rest)) and text.endswith(f" {sign[1]}"):
        separator = [sign.end(1)]
    longest = min(last, blanks + len(text))
    ends = [
        end
        for end in (*range(longest, blanks + MIN_OVERLAP - 1, -1), *separator, last)
        if text.endswith(rest[blanks:end]) and not (rest[end - 1].isalnum() and rest[end : end + 1].isalnum())
    ]
    return ends[:_MAX_OVERLAPS]


def _begun_ends(text: str, rest: str) -> list[int]:
    """Lengths of the heads of `rest`, all closing marks, that `text` ends with."""
    blanks = len(rest) - len(rest.lstrip())
    marks = _CLOSING_MARKS.match(rest, blanks)
    sizes = range(1, min(len(marks[0]), _MAX_MARKS) + 1) if marks else ()
    return [blanks + size for size in sizes if text.endswith(rest[blanks : blanks + size])]


def _closed_heads(region: CursorRegion, text: str, rest: str) -> list[int]:
    """Lengths of the heads of `rest`, all closing marks, that `text` has written itself in that order.

    If more follows them, such a head counts if `text` ends with it, or if all of `rest` closes something.
    """
    closings = _closings(region, text)
    heads: list[int] = []
    index, position = 0, -1
    while index < len(rest):
        if rest[index].isspace():
            index += 1
            continue
        if rest[index] in _SEPARATORS:
            position = _after_sign(region, text, rest[index], position)
            if position < 0:
                break
            index += 1
        else:
            while closings and not rest.startswith(closings[0][0], index):
                closings.pop(0)
            if not closings:
                break
            token, position = closings.pop(0)
            index += len(token)
        is_whole = not rest[index:].strip()
        if is_whole or not region.cursor.has_rest_of_line or not text[position:].strip():
            heads.append(len(rest) if is_whole else index)
        elif only_closes(region, index):
            heads.append(index)
    return heads


def only_closes(region: CursorRegion, index: int) -> bool:
    """Whether the rest of the line holds only closing marks of pairs open at the cursor, from `index` on."""
    rest = region.line_suffix
    ends = sorted(end for end in region.closed.values() if index < end <= len(rest))
    for end in ends:
        piece = rest[index:end].strip().lstrip(_SEPARATORS)
        if len(piece) > 1 and not piece.startswith(("</", "}", "%}", "*/", "-->")):
            return False
        index = end
    return not rest[index:].strip(" \t;,:")


def _closings(region: CursorRegion, text: str) -> list[tuple[str, int]]:
    """The marks of `text` that close what was opened before it, each with its end."""
    counted = [
        (event.start, event.end)
        for event in region.read(text).events
        if event.kind == "unmatched" or (event.kind == "close" and event.entry and event.entry.start < 0)
    ]
    spans = sorted({*counted, *_uncounted_closings(region, text)})
    return [(text[start:end], end) for start, end in spans if end > start]


def _after_sign(region: CursorRegion, text: str, sign: str, position: int) -> int:
    """Return where `text` continues after `sign`, which must be at `position`; for -1, at its code's end."""
    if position < 0:
        code = text[: region.read(text).lines[-1].code_end].rstrip()
        return len(text) if code.endswith(sign) else -1
    ahead = text[position:].lstrip(" ")
    return len(text) - len(ahead) + 1 if ahead.startswith(sign) else -1


def _uncounted_closings(region: CursorRegion, text: str) -> Iterator[tuple[int, int]]:
    """Where marks stand in `text` that close what was opened before it, unless the scan has events of them.

    In code these are angle brackets alone. In prose, and in what the cursor stands in, all brackets and
    quotes, as far as they do not pair in the text.
    """
    waiting, in_text, in_code = unpaired_marks(region), list[str](), list[str]()
    for start, end, stack in _pieces(region, text):
        entry = stack[-1] if stack and stack[-1].is_text else None
        is_own = entry is not None and entry.start < 0
        if entry is not None and not is_own:
            continue
        is_text = is_own or not region.language.brackets
        opened = in_text if is_text else in_code
        for found in (_marks_of(region) if is_text else _CODE).finditer(text, start, end):
            if _closes_nothing(found[0], opened, waiting):
                yield found.span()


def _closes_nothing(mark: str, opened: list[str], waiting: set[str]) -> bool:
    """Return whether a mark closes none of `opened`; updates `opened` with the mark."""
    if mark.startswith("\\"):
        return False
    opening = OPENING.get(mark, mark)
    is_own_closer = opening == mark and mark not in OPENING.values()
    if opening in opened and (opening != mark or is_own_closer):
        del opened[len(opened) - 1 - opened[::-1].index(opening) :]
        return False
    if mark in waiting:
        waiting.remove(mark)
        return True
    if opening == mark:
        opened.append(mark)
        del opened[:-_MAX_OPENED]
        return False
    return True


def unpaired_marks(region: CursorRegion) -> set[str]:
    """Return the marks that close themselves, such as quotes, with an odd count in the prose of the cursor's
    line.
    """
    marks = [found[0] for found in _marks_of(region).finditer(prose_start(region))]
    own = {mark for mark in marks if not mark.startswith("\\") and mark not in "()[]{}<>"}
    return {mark for mark in own if marks.count(mark) % 2}


def _pieces(region: CursorRegion, text: str) -> Iterator[tuple[int, int, Stack]]:
    """Yield the text cut at the ends of its strings and comments, each part with its open marks."""
    stack = list(region.stack)
    start, open_before = 0, list(stack)
    for event in scan(region.document_language, text, stack, before=region.tail):
        if _text_of(stack) != _text_of(open_before):
            yield start, event.start, open_before
            start, open_before = event.end, list(stack)
    yield start, len(text), open_before


def _text_of(stack: Stack) -> Open | None:
    return stack[-1] if stack and stack[-1].is_text else None
