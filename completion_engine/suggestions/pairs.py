"""Rules at the marks around the cursor: before text that closes or opens what the document already does, and
after the end of the part in another language that the cursor is in.
"""

from __future__ import annotations

import re

from completion_engine.languages.open_marks import Event, Open
from completion_engine.languages.table import language_of
from completion_engine.suggestions.closing import closed_by
from completion_engine.suggestions.regions import CursorRegion, Reading
from completion_engine.suggestions.rules import Fire

_MAX_CHARS_BEFORE = 1_000  # characters of the cursor's line
_MAX_PARAGRAPH_CHARS = 2_000
_BRACKETS = re.compile(r"\\[^\n]|[()\[\]{}]")
# The brackets of `a)` and `:-)` count as text.
_LABEL_OR_FACE = re.compile(r"(?:(?:\A|\n)[\s>*-]*\(?\w{1,3}|(?:\A|\s)[:;=8xX][-^o']?)[)\]}]\Z")
_PUNCTUATION = ".,;:"
_ONLY_MARKS = re.compile(r"\n[\s*/#;%-]*\Z")  # the beginning of a comment's line
_MAX_LINES = 4  # whose opening marks are considered
_QUOTE = re.compile(r"[ \t]*(?:\"{1,3}|'{1,3})[;,)]*[ \t]*")
_END_TAG = re.compile(r"</([A-Za-z][\w.-]*)\s*>")
_HEREDOC_WORD = re.compile(r"[A-Z_][A-Z0-9_]+")


def unmatched_bracket(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at a mark that closes nothing, or closes what the text after the cursor already closes.

    Brackets that are closed on the cursor's own line may be closed again: the suggestion then replaces that
    text. Brackets that lines below close may be closed if the same line opens another one of the same kind.
    """
    standing: list[Open] = []  # opened instead of brackets that lines below close
    waiting: list[Event] = []  # closing marks of such brackets on one line, before a possible replacement
    opened: list[Open] = []  # opened after them and still open
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
        elif _is_wrong(region, reading, event, standing):
            if not _is_closed_below(region, event, standing):
                return _fire(event, waiting[0] if waiting else event, reading)
            waiting.append(event)
    return None


def _fire(seen: Event, wrong: Event, reading: Reading) -> Fire:
    kept = _ONLY_MARKS.sub("", reading.text[: wrong.start])
    return Fire(seen.end, len(kept.rstrip()), "unmatched-bracket")


def _successors(closed: list[Event], opened: list[Open]) -> list[Open]:
    """Return for each closed bracket one of `opened` of the same kind, if there is one."""
    left = list(opened)
    found: list[Open] = []
    for event in closed:
        same = [entry for entry in left if event.entry and entry.mark == event.entry.mark]
        if same:
            left.remove(same[0])
            found.append(same[0])
    return found


def _is_wrong(region: CursorRegion, reading: Reading, event: Event, standing: list[Open]) -> bool:
    """Return whether an event closes nothing, or closes what the text after the cursor closes."""
    is_wrong = event.kind == "unmatched" and (
        region.is_from_start or not reading.text.startswith("</", event.start)
    )
    if event.kind == "close" and event.entry and event.start < event.end:
        is_wrong = event.entry in standing
        if event.entry.start < 0:
            is_wrong = _is_taken(region, reading.text[: event.end], event.entry.start)
    return is_wrong and not _is_label(region, reading.text[: event.end])


def _is_closed_below(region: CursorRegion, event: Event, standing: list[Open]) -> bool:
    """Return whether an event closes a bracket that lines below the cursor close."""
    entry = event.entry
    if event.kind != "close" or entry is None or not (entry.pair.kind == "bracket" or entry.is_element):
        return False
    return entry in standing or region.closed.get(entry.start, 0) > len(region.line_suffix)


def _is_taken(region: CursorRegion, text: str, opened_at: int) -> bool:
    end = region.closed.get(opened_at)
    if end is None:
        return False
    if end > len(region.line_suffix):
        return True
    return region.cursor.has_rest_of_line and not text.endswith(region.line_suffix[:end].lstrip())


def _is_label(region: CursorRegion, text: str) -> bool:
    line = text[text.rfind("\n") + 1 :] if "\n" in text else region.line_prefix[-_MAX_CHARS_BEFORE:] + text
    return region.language.label.match(line) is not None


def stray_closing(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at the end of a line of text that ends with a bracket which nothing in its paragraph opens."""
    closed = {event.end for event in reading.events if event.kind == "close"}
    for index, line in enumerate(reading.lines):
        text = reading.text[line.start : line.end].rstrip().rstrip(_PUNCTUATION)
        if not line.is_ended or not text.endswith((")", "]", "}")) or len(text) > _MAX_CHARS_BEFORE:
            continue
        if line.start + len(text) in closed:
            continue
        before = _prose_before(region, reading, index)
        if before is None or _LABEL_OR_FACE.search(before + text):
            continue
        since_close = (
            len(text) + line.start - max((end for end in closed if end <= line.start + len(text)), default=0)
        )
        if num_stray := min(_num_stray(before + text), since_close, len(text)):
            keep = line.start + len(text) - num_stray
            return Fire(line.end + 1, len(reading.text[:keep].rstrip()), "unmatched-bracket")
    return None


def _prose_before(region: CursorRegion, reading: Reading, index: int) -> str | None:
    """Return the text before a generated line that ends in prose, in which its brackets may be opened; None
    in code.

    Comments and markup are prose, back to a blank line, and so is all of a string over several lines.
    """
    line = reading.lines[index]
    inside = line.inside_end or line.inside
    is_here = line.language_end == region.language_id
    before = (region.part[0] if is_here else "") + reading.text[: line.start]
    if inside and inside.is_lasting_text and not inside.is_comment:
        start = len(before) - line.start + inside.start + len(inside.mark)
        return before[start:] if start >= 0 and line.inside_end is inside else None
    is_comment = line.code_end < line.end or (inside is not None and inside.is_comment)
    language = language_of(line.language_end)
    is_markup = language.markup is not None and (
        not language.markup.is_nested_in_code or line.innermost.startswith("<")
    )
    if not (is_comment or is_markup or language.is_text):
        return None
    if is_markup and language.markup is not None and language.markup.is_nested_in_code:
        return "" if index else region.line_prefix
    if line.code_end < line.end or (inside is not None and inside.is_comment and inside.pair.ends_with_line):
        return _comment_before(before[-_MAX_PARAGRAPH_CHARS:], inside)
    before = before[-_MAX_PARAGRAPH_CHARS:]
    return before[before.rfind("\n\n") + 1 :]


def _comment_before(before: str, inside: Open | None) -> str:
    """Return the text of the line comments directly above a line that ends with a comment."""
    above, _, here = before.rpartition("\n")
    mark = inside.mark.strip() if inside else ""
    start = here.rfind(mark) if mark else -1
    if start < 0:
        return ""
    paragraph = [here[start:]]
    if not here[:start].strip():
        for line in reversed(above.split("\n")):
            if not line.lstrip().startswith(mark):
                break
            paragraph.append(line)
    return "\n".join(reversed(paragraph))


def _num_stray(text: str) -> int:
    """Return how many brackets in a row at the end of a text close nothing in it."""
    num_open = num_stray = 0
    end = -1
    for found in _BRACKETS.finditer(text):
        num_stray = num_stray if found.start() == end else 0
        end = found.end()
        if found[0] in "([{":
            num_open += 1
        elif found[0] in ")]}":
            num_stray += num_open == 0
            num_open = max(0, num_open - 1)
    return num_stray


def stray_end_tag(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at the end tag of an element that neither the document nor the text begins."""
    if not region.is_from_start and region.language.markup:
        return None
    for tag in _END_TAG.finditer(reading.text):
        beginning = f"<{tag[1]}".lower()
        text = region.before + reading.text[: tag.start()] + region.after
        if beginning not in text.lower() and f"</{tag[1]}".lower() not in region.after.lower():
            return Fire(tag.end(), len(reading.text[: tag.start()].rstrip()), "unmatched-bracket")
    return None


def opens_what_closes_below(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires after a line that opens a string, element or part whose content and end are below already."""
    if region.line_suffix.strip():
        return None
    for index, line in enumerate(reading.lines):
        opened = [
            event.entry
            for event in reading.events
            if event.kind == "open" and event.entry and line.start <= event.start < line.end
        ]
        if not line.is_ended or all(entry.pair.kind in ("bracket", "tag") for entry in opened):
            continue
        if _closes_below(region, reading.text[: line.end], {entry.start for entry in opened}):
            return Fire(line.end + 1, line.end, "end-of-statement")
        if index >= _MAX_LINES:
            break
    return None


def end_of_part(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at the end of the line that ends the cursor's embedded region, which has its own language."""
    line_start = -len(region.line_prefix)
    for event in reading.events:
        entry = event.entry
        is_part = event.kind == "close" and entry is not None and entry.pair.kind == "region"
        if event.start == event.end and not reading.text[: event.start].strip():
            continue
        if is_part and entry is not None and entry.start < line_start and event.start == event.end:
            # A line that is indented no deeper does not belong to the part.
            blanks = len(reading.text) - event.end - len(reading.text[event.end :].lstrip(" \t"))
            return Fire(event.end + blanks + 1, len(reading.text[: event.start].rstrip()), "end-of-block")
        if is_part and entry is not None and entry.start < line_start:
            end = reading.text.find("\n", event.end)
            return Fire(end + 1, end, "end-of-block") if end >= 0 else None
    return None


def quote_alone(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at a line of nothing but a quote, in a string that ends below with another mark."""
    inside = region.inside
    if inside is None or inside.is_comment or region.closed.get(inside.start, 0) <= len(region.line_suffix):
        return None
    for index, line in enumerate(reading.lines):
        if line.inside_end == inside and line.is_ended and _QUOTE.fullmatch(region.line_text(reading, index)):
            return Fire(line.end + 1, max(0, line.start - 1), "end-of-block")
    return None


def ends_another_heredoc(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at a line in a heredoc that is the closing word of another one, which the document has."""
    around = next((entry for entry in reversed(region.stack) if entry.pair.kind == "region"), None)
    if around is None or around.pair.holds != "<tag>":
        return None
    for index, line in enumerate(reading.lines):
        word = region.line_text(reading, index).strip()
        if not line.is_ended or word == around.tag or not _HEREDOC_WORD.fullmatch(word):
            continue
        if re.search(rf"<<\S{{0,2}}[ \t]*['\"]?{word}\b", region.before + region.after):
            return Fire(line.end + 1, max(0, line.start - 1), "end-of-block")
    return None


def _closes_below(region: CursorRegion, text: str, opened: set[int]) -> bool:
    """Return whether the suffix closes what `text` leaves open of `opened`, and all that it closes without
    `text`.
    """
    stack = region.read(text).stack
    if not stack or stack[-1].start not in opened or stack[-1].pair.ends_with_line:
        return False
    here = [entry._replace(start=entry.start - len(text)) for entry in stack]
    closed = closed_by(
        region.document_language,
        region.before + text,
        (region.tail + text)[-_MAX_CHARS_BEFORE:],
        region.cursor.suffix,
        len(region.after),
        here,
    )
    owned = {start - len(text) for start in region.closed}
    return here[-1].start in closed and owned <= closed.keys()
