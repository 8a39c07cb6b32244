"""Owns the bookkeeping of brackets: where text closes what it must not, and what of the line it covers."""

from __future__ import annotations

from completion_engine.suggestions.lexer import Event, Open
from completion_engine.suggestions.rules import Fire
from completion_engine.suggestions.site import Reading, Site
from completion_engine.suggestions.uncounted import uncounted_closings

MIN_OVERLAP = 3


def unmatched_bracket(site: Site, reading: Reading) -> Fire | None:
    """Fires at a bracket that closes nothing, or what the text after the cursor already closes.

    The same for the end of a string. What stands closed on the cursor's own line may be closed: the
    suggestion then covers it. What lines below close may, if the same line opens another of its kind.
    """
    standing: list[Open] = []  # opened in place of brackets that lines below close
    waiting: list[Event] = []  # on one line closed ones of those, which may have such a successor
    opened: list[Open] = []  # behind these and still open
    for event in reading.events:
        if event.kind == "newline" and waiting:
            successors = _successors(waiting, opened)
            if len(successors) < len(waiting):
                return _fire(event, waiting[0], reading)
            standing += successors
            waiting, opened = [], []
        elif event.kind == "open" and event.entry and waiting:
            opened.append(event.entry)
        elif event.entry in opened:
            opened.remove(event.entry)
        elif _is_wrong(site, reading, event, standing):
            if not _is_closed_below(site, event, standing):
                return _fire(event, waiting[0] if waiting else event, reading)
            waiting.append(event)
    return None


def _fire(seen: Event, wrong: Event, reading: Reading) -> Fire:
    return Fire(seen.end, len(reading.text[: wrong.start].rstrip()), "unmatched-bracket")


def _successors(closed: list[Event], opened: list[Open]) -> list[Open]:
    """Of the brackets `opened` one for each that was closed, as far as there are any of its kind."""
    left = list(opened)
    found: list[Open] = []
    for event in closed:
        same = [entry for entry in left if event.entry and entry.mark == event.entry.mark]
        if same:
            left.remove(same[0])
            found.append(same[0])
    return found


def _is_wrong(site: Site, reading: Reading, event: Event, standing: list[Open]) -> bool:
    """Whether an event closes nothing, or what the text after the cursor closes."""
    is_wrong = event.kind == "unmatched"
    if event.kind == "close" and event.entry:
        is_wrong = event.entry in standing
        if event.entry.start < 0:
            is_wrong = _is_taken(site, reading.text[: event.end], event.entry.start)
    return is_wrong and not _is_label(site, reading.text[: event.end])


def _is_closed_below(site: Site, event: Event, standing: list[Open]) -> bool:
    """Whether what an event closes is a bracket that lines below the cursor's close."""
    entry = event.entry
    if event.kind != "close" or entry is None or not entry.is_bracket:
        return False
    return entry in standing or site.closed.get(entry.start, 0) > len(site.line_suffix)


def _is_taken(site: Site, text: str, opened_at: int) -> bool:
    end = site.closed.get(opened_at)
    if end is None:
        return False
    if end > len(site.line_suffix):
        return True
    return site.cursor.has_rest_of_line and not text.endswith(site.line_suffix[:end].lstrip())


def _is_label(site: Site, text: str) -> bool:
    line = text[text.rfind("\n") + 1 :] if "\n" in text else site.line_prefix + text
    return site.language.label.match(line) is not None


def num_covered(site: Site, text: str) -> int:
    """How many characters of the rest of the line `text` covers.

    Of the ways to cover it, the one that leaves brackets and strings the most balanced, and of those the
    longest.
    """
    rest = site.line_suffix
    if not rest.strip():
        return len(rest) if text else 0
    heads = _overlaps(text, rest)
    if not site.cursor.has_rest_of_line:
        heads += _closed_heads(site, text, rest)
    return min((0, *heads), key=lambda length: (imbalance(site, text, length), -length))


def imbalance(site: Site, text: str, num_replaced: int) -> int:
    """How far the cursor's line with `text` is from closing what it opens, and no more than that."""
    line_start = -len(site.line_prefix)
    stack = list(site.stack)
    events = site.scanner.scan(text + site.line_suffix[num_replaced:], stack, before=site.line_prefix)
    num_unmatched = sum(event.kind == "unmatched" for event in events)
    num_outer = sum(entry.start < line_start for entry in site.stack)
    num_opened = sum(entry.start >= line_start and not site.scanner.is_comment(entry.mark) for entry in stack)
    num_closed = num_outer - sum(entry.start < line_start for entry in stack)
    return num_opened + num_closed + num_unmatched


def _overlaps(text: str, rest: str) -> list[int]:
    """Lengths of the heads of `rest` that `text` ends with.

    All of it, a separator that nobody doubles, or enough of it to be no chance, up to a word's end.
    """
    blanks = len(rest) - len(rest.lstrip())
    last = len(rest.rstrip())
    text = text.rstrip()
    separator = [blanks + 1] if rest[blanks] in ",;" else []
    return [
        end
        for end in (*separator, *range(blanks + MIN_OVERLAP, last), last)
        if text.endswith(rest[blanks:end]) and not (rest[end - 1].isalnum() and rest[end : end + 1].isalnum())
    ]


def _closed_heads(site: Site, text: str, rest: str) -> list[int]:
    """Lengths of the heads of `rest`, all closing marks, that `text` has written itself in that order."""
    counted = [
        (event.start, event.end)
        for event in site.read(text).events
        if event.kind == "unmatched" or (event.kind == "close" and event.entry and event.entry.start < 0)
    ]
    spans = sorted([*counted, *uncounted_closings(site, text)])
    closings = [(text[start:end], end) for start, end in spans]
    heads: list[int] = []
    index, position = 0, -1
    while index < len(rest):
        if rest[index].isspace():
            index += 1
            continue
        if rest[index] in ";,:":
            position = _after_sign(text, rest[index], position)
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
        heads.append(index if rest[index:].strip() else len(rest))
    return heads


def _after_sign(text: str, sign: str, position: int) -> int:
    """Where `text` goes on after `sign`, which must follow at `position`, or end it if that is -1."""
    if position < 0:
        return len(text) if text.rstrip().endswith(sign) else -1
    ahead = text[position:].lstrip(" ")
    return len(text) - len(ahead) + 1 if ahead.startswith(sign) else -1
