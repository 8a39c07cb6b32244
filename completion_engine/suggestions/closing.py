"""Finds which open marks at the cursor the text after it closes.

In unfinished code this is a guess, mostly by indentation: a line that is indented no deeper than the line of
an opening bracket, and does not begin with a closing bracket, is outside of it. A grammar (see `scanner`)
pairs brackets in order instead.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from completion_engine.languages.modes import reach_of
from completion_engine.languages.open_marks import CLOSING, Event, Open, Stack, language_at
from completion_engine.languages.scanner import scan
from completion_engine.suggestions.checkpoints import scan_lines
from completion_engine.text_window import indent_width

_MAX_CONTINUED = (
    32  # lines, and parentheses, between a statement's first line and the one that opens its block
)
_MAX_INDENT = 200
_MAX_COUNTED = 64_000  # characters of the suffix in which marks are counted
# The next angle bracket that is not in a string or in braces.
_TAG_MARK = re.compile(r"(?:[^<>\"'{}=-]++|[=-]>?+|\"[^\"\n]*+\"|'[^'\n]*+'|\{[^{}\n]*+\}|[\"'{}])*+([<>])")
_LABEL = re.compile(r"#|[A-Za-z_]\w*:$|case\b.*:$")
_COMMENT = re.compile(r"//|/\*|--|#|<!--|\{#")


def closed_by(  # noqa: PLR0913 - both sides of the cursor, and what is open there
    language: str, before: str, tail: str, suffix: str, num_chars: int, stack: Stack
) -> dict[int, int]:
    """Starts of the entries of `stack` that `suffix` closes, each with the offset where it has done so.

    `before`, which `tail` is the end of, ends and `suffix` begins at the cursor; offsets of entries count
    from there. Only the first `num_chars` of `suffix` are scanned; marks that no line has decided count as
    closed by the others.
    """
    return _Closing(language, before, tail, suffix, num_chars, stack).closed()


class _Closing:
    def __init__(  # noqa: PLR0913 - as `closed_by`
        self, language: str, before: str, tail: str, suffix: str, num_chars: int, stack: Stack
    ) -> None:
        self.language = language
        self.before = before
        self.tail = tail
        self.after = after = suffix[:num_chars]
        self.suffix = suffix
        self.num_line_chars = len(after.partition("\n")[0])
        self.statements = _Statements(language_at(stack, language), before)
        self.remaining = list(stack)
        self.ends: dict[int, int] = {}
        self.recent: list[
            tuple[Open, int]
        ] = []  # closed on lines below, but indentation has not confirmed it yet
        for depth in range(len(stack) - 1, -1, -1):
            if not self._may_close(stack[depth], is_innermost=depth == len(self.remaining) - 1):
                del self.remaining[depth:]
                self.after = " " * self.num_line_chars + after[self.num_line_chars :]

    def closed(self) -> dict[int, int]:
        """See `closed_by`."""
        owned = set(self.remaining)
        is_all = len(self.after) == len(self.suffix)
        text = self.after + "\n" * is_all  # the end of a document ends its last line
        stack = list(self.remaining)
        for event in self._events(text, stack):
            if not self.remaining:
                break
            if event.kind == "newline" and not (event.entry and event.entry.is_lasting_text):
                self._drop_line_marks()
                self._begin_line(event.end)
            elif event.kind == "unmatched" or (event.kind == "close" and event.entry in owned):
                self._close(event)
        if not is_all:
            self.ends |= {entry.start: len(self.suffix) for entry in self.remaining if self._is_far(entry)}
        return self.ends

    def _events(self, text: str, stack: Stack) -> Iterator[Event]:
        """The events of the suffix that concern what is open at the cursor."""
        if any(entry.pair.kind == "nested-element" for entry in stack):
            yield from self._events_in_elements(text, stack)
            return
        for scanned in scan_lines(self.language, text, stack, before=self.tail):
            yield from scanned.events()

    def _events_in_elements(self, text: str, stack: Stack) -> Iterator[Event]:
        """All events of the suffix; elements end above a line of code that closes what they stand in."""
        start = 0
        while start >= 0:
            following = -1
            for event in scan(self.language, text[start:], stack, before=self.tail + text[:start]):
                yield event._replace(start=event.start + start, end=event.end + start)
                if event.kind == "newline" and self._leaves_elements(text, event.end + start, stack):
                    following = event.end + start
                    break
            start = following

    def _leaves_elements(self, text: str, line_start: int, stack: Stack) -> bool:
        """Whether a line is code that stands outside of an element; what is open in it is taken off."""
        line = text[line_start : line_start + _MAX_INDENT].partition("\n")[0]
        if line.strip()[:1] not in (")", "}") or not stack or stack[-1].pair.kind != "nested-element":
            return False
        depth = len(stack)
        while depth and stack[depth - 1].pair.kind == "nested-element" and stack[depth - 1].start < 0:
            if self._width_of(stack[depth - 1]) <= indent_width(line):
                break
            depth -= 1
        is_left = depth < len(stack)
        del stack[depth:]
        return is_left

    def _may_close(self, entry: Open, *, is_innermost: bool) -> bool:
        """Whether the suffix may close a text, tag or part at all: the next mark must not open another."""
        if entry.pair.kind == "tag":
            mark = _TAG_MARK.match(self.after)
            return mark is None or mark[1] != "<"
        if entry.pair.kind == "region" and not entry.pair.begins_below:
            return self._closes_part(entry)
        return not (entry.is_lasting_text and is_innermost) or self._closes_text(entry)

    def _closes_part(self, entry: Open) -> bool:
        """Whether a part in another language that was opened within a line is closed before another opens."""
        reach = reach_of(entry.pair, entry.tag)
        start, end = reach.end_in(self.after, 0)
        if reach.literal == entry.mark:
            text = self.after if "\n" in self.before[entry.start :] else self.after[: self.num_line_chars]
            return text.count(entry.mark) % 2 == 1
        opens = entry.pair.opens or rf"<{re.escape(entry.tag)}\b"
        return end < 0 or re.compile(opens, re.MULTILINE).search(self.after, 0, start) is None

    def _closes_text(self, entry: Open) -> bool:
        """Whether a string or comment over several lines is closed below: its marks come in pairs."""
        end = reach_of(entry.pair, entry.tag).literal
        began_here = "\n" not in self.before[entry.start :]
        in_line = len(end) == 1 and end != "`" and began_here
        if end == entry.mark:
            text = self.after[: self.num_line_chars] if in_line else self.suffix[:_MAX_COUNTED]
            return text.count(end) % 2 == 1
        text = self.after[: self.num_line_chars] if in_line else self.after
        opening, closing = text.find(_opening_like(entry.mark)), text.find(end)
        return closing >= 0 and not 0 <= opening < closing

    def _drop_line_marks(self) -> None:
        """Strings and comments that end with their line are not closed by what follows it."""
        while self.remaining and self.remaining[-1].pair.ends_with_line:
            self.remaining.pop()

    def _close(self, event: Event) -> None:
        found = self.after[event.start : event.end]
        line_start = self.after.rfind("\n", 0, event.start) + 1
        begins_line = line_start > 0 and not self.after[line_start : event.start].strip()
        width = indent_width(self.after[line_start : event.start]) if begins_line else 0
        while self.remaining:
            if event.kind == "unmatched" and found in CLOSING and self.remaining[-1].pair.kind == "region":
                return  # a part ends at its own mark alone
            entry = self.remaining.pop()
            is_nested = entry.is_bracket or entry.is_element
            is_outer = begins_line and is_nested and width < self._width_of(entry)
            if _is_closed_by(entry, event.entry, found) and not is_outer:
                self.ends[entry.start] = event.end
                if event.end > self.num_line_chars:
                    self.recent.append((entry, event.end))
                return

    def _begin_line(self, start: int) -> None:
        end = self.after.find("\n", start)
        line = self.after[start:] if end < 0 else self.after[start:end]
        code = line.strip()
        self._drop_inner(code, indent_width(line))
        is_closing = code[:1] in CLOSING or code.startswith("</")
        if not code or is_closing or _LABEL.match(code) or _COMMENT.match(code):
            return
        width = indent_width(line) + code.startswith(",")  # a separator is within the brackets of its column
        unclosed: list[Open] = []
        while self.remaining and self._ends_above(self.remaining[-1], width):
            unclosed.append(self.remaining.pop())
        if unclosed:
            self._prefer_outer(unclosed, width)

    def _drop_inner(self, code: str, width: int) -> None:
        """Drop brackets that the text below leaves open.

        They follow one in whose column the next line has a separator or the closing bracket.
        """
        for depth in range(len(self.remaining) - 1, -1, -1):
            entry = self.remaining[depth]
            if entry.is_bracket and code[:1] in (",", entry.pair.closing) and code:
                line_start = self.before.rfind("\n", 0, len(self.before) + entry.start) + 1
                if len(self.before) + entry.start - line_start == width:
                    del self.remaining[depth + 1 :]
                    return

    def _ends_above(self, entry: Open, width: int) -> bool:
        """Whether a line of code that is indented by `width` stands outside of an entry."""
        if entry.is_bracket:
            return self._width_of(entry) >= width
        is_on_line = entry.is_element and "\n" not in self.before[entry.start :]
        return is_on_line and self._width_of(entry) >= width

    def _prefer_outer(self, unclosed: list[Open], width: int) -> None:
        """Among brackets opened in one statement, the inner ones are still to be closed."""
        recent = [(entry, end) for entry, end in self.recent if self._width_of(entry) >= width]
        self.recent.clear()
        entries = [*(entry for entry, _ in recent), *unclosed]
        outer = entries[len(entries) - len(recent) :]
        if [entry.mark for entry in outer] != [entry.mark for entry, _ in recent]:
            return
        for entry, _ in recent:
            del self.ends[entry.start]
        self.ends |= {entry.start: end for entry, (_, end) in zip(outer, recent, strict=True)}

    def _is_far(self, entry: Open) -> bool:
        """Whether an entry may be closed beyond what was scanned: no parenthesis of the cursor's line."""
        return entry.mark not in ("(", "[") or "\n" in self.before[entry.start :]

    def _width_of(self, entry: Open) -> int:
        """Indentation of the line that opened an entry; for a block, of its statement's line."""
        return self.statements.width_at(entry.start + len(self.before))


class _Statements:
    """The beginnings of statements whose parentheses span several lines.

    Parameters below each other reveal nothing about the indentation of the function's body. A line is scanned
    once, for itself.
    """

    def __init__(self, language: str, text: str) -> None:
        self._language = language
        self._text = text
        self._parentheses: dict[int, tuple[list[int], int]] = {}
        self._widths: dict[tuple[int, int], int] = {}

    def width_at(self, end: int) -> int:
        """Indentation of the line that opened the parentheses that are closed up to `end` on its line."""
        line_start = self._text.rfind("\n", 0, end) + 1
        key = line_start, bisect_left(self._parentheses_of(line_start)[0], end)
        if key not in self._widths:
            self._widths[key] = indent_width(self._line(self._start(*key)))
        return self._widths[key]

    def _start(self, line_start: int, num_unopened: int) -> int:
        """The beginning of the line that opens this number of parentheses; the line itself if none near it
        does.
        """
        found = line_start
        for _ in range(_MAX_CONTINUED):
            if not 0 < num_unopened <= _MAX_CONTINUED or found == 0:
                break
            found = self._text.rfind("\n", 0, found - 1) + 1
            unopened, num_open = self._parentheses_of(found)
            num_unopened = max(0, num_unopened - num_open) + len(unopened)
        return line_start if num_unopened else found

    def _parentheses_of(self, line_start: int) -> tuple[list[int], int]:
        """Offsets of the parentheses that the line closes and does not open, and how many it leaves open."""
        found = self._parentheses.get(line_start)
        if found is None:
            line = self._line(line_start)
            stack: Stack = []
            events = [event for event in scan(self._language, line, stack) if event.kind == "unmatched"]
            closed = [line_start + event.start for event in events if line[event.start] == ")"]
            found = closed, sum(entry.mark == "(" for entry in stack)
            self._parentheses[line_start] = found
        return found

    def _line(self, start: int) -> str:
        end = self._text.find("\n", start)
        return self._text[start:] if end < 0 else self._text[start:end]


def _is_closed_by(entry: Open, closed: Open | None, found: str) -> bool:
    """Whether a mark closes an entry, which the scan may have taken for the end of another, `closed`."""
    if closed is None or entry.pair.kind == "bracket":
        return bool(found) and entry.pair.closing == found if entry.pair.closing else entry == closed
    return entry == closed or (entry.is_element and entry.tag == closed.tag)


def _opening_like(mark: str) -> str:
    """The beginning of the marks that do not stand in what `mark` opened."""
    return "<" if mark.startswith("<?") else "{{" if mark.startswith("{{") else mark
