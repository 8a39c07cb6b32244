"""The scan of text for open brackets, strings, comments, elements, and parts in other languages.

It works on any cut of a file and on unfinished text. Each event depends only on the text before it, so that
rules which fire on events do not depend on how text arrives. A grammar cannot replace it: where a slip breaks
the code, the grammar's tree of earlier brackets changes as text arrives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from completion_engine.languages.marks import Action, Mode
from completion_engine.languages.modes import mode_of, raw_element
from completion_engine.languages.open_marks import (
    MAX_SKIPPED,
    Event,
    Open,
    OpenParts,
    Stack,
    close_bracket,
    cut_stack,
    index_in,
    language_at,
    text_at,
)
from completion_engine.languages.syntax import Markup, Pair
from completion_engine.languages.table import identifier_of, language_of

_MAX_OPEN = 100  # the least number of recently opened entries that are kept
_MAX_REGIONS = 8  # parts in other languages that stand in each other
_MAX_TAG_CHARS = 80
_ELEMENT = Pair("", kind="element", is_multiline=True)
_NESTED_ELEMENT = Pair("", kind="nested-element", is_multiline=True)
_TAG_NAME = re.compile(r"[\w:.$!-]*")
_NAMED_BY_TAG = frozenset({
    "css", "graphql", "html", "javascript", "json", "lua", "markdown", "perl", "php-code", "python", "ruby",
    "shellscript", "sql", "toml", "xml", "yaml",
})  # fmt: skip


def scan(  # noqa: PLR0913 - two independent shortcuts
    language: str,
    text: str,
    stack: Stack,
    *,
    before: str = "",
    is_quick: bool = False,
    skips_leaves: bool = False,
) -> Iterator[Event]:
    """Events of `text`, which follows `before` with `stack` open, outermost first; `stack` changes with them.

    A quick scan finds the strings, comments and parts that run over line ends, and leaves out the rest. One
    that skips leaves has no events of elements and attributes that begin and end on one line.
    """
    return _Scan(language, text, stack, before, is_quick=is_quick, skips_leaves=skips_leaves).events()


class _Scan:
    def __init__(  # noqa: PLR0913 - as `scan`
        self, language: str, text: str, stack: Stack, before: str, *, is_quick: bool, skips_leaves: bool
    ) -> None:
        self.language = language
        self.text = before + text if before else text
        self.shift = len(before)
        self.position = self.shift
        self.line_start = self.text.rfind("\n", 0, self.shift) + 1 - self.shift
        self.stack = stack
        self.is_quick = is_quick
        self.skips_leaves = skips_leaves
        self.regions = OpenParts(self.text, self.shift, stack)
        self.num_pending = sum(entry.is_pending for entry in stack)

    def events(self) -> Iterator[Event]:
        text, stack, regions, shift = self.text, self.stack, self.regions, self.shift
        inside, mode = self._state()
        while True:
            match = mode.find(text, self.position, regions.limit)
            if match is None:
                if regions.ending is None:
                    return
                yield from self._end_region()
                inside, mode = self._state()
                continue
            action, pair = mode.actions[match.lastindex]  # type: ignore[index]
            start, self.position = match.start() - shift, match.end()
            if action is Action.SKIP:
                continue
            if action is Action.NEWLINE:
                if not self.num_pending and not self._has_begun_here():
                    self.line_start = start + 1
                    yield Event("newline", start, start + 1, text_at(stack))
                    continue
                yield self._end_line(start)
            elif action is Action.BRACKET:
                entry = Open(match[0], start, pair, inside)  # type: ignore[arg-type]
                self._push(entry)
                yield Event("open", start, start + 1, entry)
            elif action is Action.CLOSING:
                yield close_bracket(match[0], start, stack)
            elif action is Action.CLOSE or pair is not None:
                event = self._open(pair, match, mode) if pair else self._close(match, mode)
                if event is None:
                    continue
                yield event
            else:
                yield from self._markup(action, start, match)
            inside, mode = self._state()

    def _state(self) -> tuple[str, Mode]:
        """The language at the position of the scan, and what to look for there."""
        for entry in reversed(self.stack):
            if not entry.is_pending:
                return entry.language, self._mode(entry.language, entry.pair)
        return self.language, self._mode(self.language, None)

    def _mode(self, language: str, pair: Pair | None) -> Mode:
        templates = self.regions.templates
        if not self.is_quick:
            return mode_of(language, pair, templates, skips_leaves=self.skips_leaves)
        finds_lines = self.num_pending > 0 or (pair is not None and pair.ends_with_line)
        return mode_of(language, pair, templates, is_quick=True, finds_lines=finds_lines)

    def _may_open(self, pair: Pair) -> bool:
        """Whether a mark may open one more: no person writes many parts in each other."""
        return pair.kind != "region" or len(self.regions) + self.num_pending < _MAX_REGIONS

    def _push(self, entry: Open) -> None:
        """Open an entry; beyond the bound the outer ones are dropped, except parts in other languages."""
        self.stack.append(entry)
        if len(self.stack) > 2 * _MAX_OPEN:
            self.stack[:-_MAX_OPEN] = [
                entry for entry in self.stack[:-_MAX_OPEN] if entry.pair.kind == "region"
            ]

    def _innermost(self) -> Open:
        return next(entry for entry in reversed(self.stack) if not entry.is_pending)

    def _has_begun_here(self) -> bool:
        """Whether what is open begins on this line, or was to end with it."""
        return bool(self.stack) and (
            self.stack[-1].start >= self.line_start or self.stack[-1].pair.ends_with_line
        )

    def _pop(self) -> Open:
        index = len(self.stack) - 1
        while self.stack[index].is_pending:
            index -= 1
        return self.stack.pop(index)

    def _close(self, match: re.Match[str], mode: Mode) -> Event | None:
        """Close the innermost entry, unless the mark is the end of another one."""
        entry = self._innermost()
        end = mode.end_of(match, entry.tag, entry.pair)
        self.position = end if end >= 0 else match.start() + 1
        return Event("close", match.start() - self.shift, end - self.shift, self._pop()) if end >= 0 else None

    def _open(self, pair: Pair, match: re.Match[str], mode: Mode) -> Event | None:
        """Open an entry, if its mark may stand here."""
        tag, named = mode.groups(match)
        if len(tag) > _MAX_TAG_CHARS or not self._may_open(pair) or not pair.allows(self.text, match.start()):
            return None
        found, start = match[0], match.start() - self.shift
        named = named or pair.name_above(self.text, match.start())
        pair = pair if named or pair.otherwise is None else pair.otherwise
        entry = Open(found, start, pair, self._language_in(pair, tag, named), tag, pair.begins_below)
        self._push(entry)
        self.num_pending += pair.begins_below
        if pair.kind == "region" and not pair.begins_below:
            self.regions.begin(entry, self.position)
        return Event("open", start, start + len(found), entry)

    def _language_in(self, pair: Pair, tag: str, named: str) -> str:
        if pair.holds == "<lang>":
            return identifier_of(named.lower()) if named else "plaintext"
        if pair.holds == "<tag>":
            found = identifier_of(tag.lower())
            return found if found in _NAMED_BY_TAG else "plaintext"
        return pair.holds or language_at(self.stack, self.language)

    def _end_region(self) -> Iterator[Event]:
        """Close the part that ends here, unless the line closed what it stood in.

        Three braces in a row first close a brace that was opened in the part.
        """
        brace = self.regions.limit
        if self._innermost().pair.closing == "}" and self.text.startswith("}}}", brace):
            self.position = brace + 1
            self.regions.search_again(self.position)
            yield close_bracket("}", brace - self.shift, self.stack)
            return
        entry, start, end = self.regions.end()
        index = index_in(entry, self.stack)
        if index >= 0:
            num_dropped = cut_stack(self.stack, index)
            self.position = max(self.position, end)
        self.regions.forget(entry, self.position)
        if index >= 0:
            yield Event("close", max(start - self.shift, 0), max(end - self.shift, 0), entry, num_dropped)

    def _end_line(self, start: int) -> Event:
        """At a newline, close parts that end with the line, and open those that begin with the next one."""
        stack, inside = self.stack, text_at(self.stack)
        if self.is_quick:
            self.line_start = self.text.rfind("\n", 0, start + self.shift) + 1 - self.shift
        is_continued = self.text[self.position - 2 : self.position - 1] == "\\"
        pending: list[Open] = []
        index = keep = len(stack)
        while index and (stack[index - 1].start >= self.line_start or stack[index - 1].pair.ends_with_line):
            index -= 1
            entry = stack[index]
            if entry.is_pending:
                pending.append(entry)
            elif entry.pair.ends_with_line and not (is_continued and entry.pair.kind == "string"):
                keep = index
        num_dropped = cut_stack(stack, keep)
        if pending:
            stack[index:] = [entry for entry in stack[index:] if not entry.is_pending]
            self.num_pending = 0
            for entry in pending:
                begun = entry._replace(is_pending=False)
                self._push(begun)
                self.regions.begin(begun, self.position)
        self.line_start = start + 1
        return Event("newline", start, start + 1, inside, num_dropped)

    def _markup(self, action: Action, start: int, match: re.Match[str]) -> Iterator[Event]:
        end = self.position - self.shift
        if action is Action.END_TAG:
            yield self._end_tag(match[match.lastindex + 1] or "", start, end)  # type: ignore[operator]
        elif action is Action.ENDS:
            entry = next((entry for entry in reversed(self.stack) if entry.pair.kind == "region"), None)
            if entry is not None:
                num_dropped = cut_stack(self.stack, index_in(entry, self.stack))
                self.regions.forget(entry, self.position)
                yield Event("close", start, end, entry, num_dropped)
        else:
            tag = self._pop()
            yield Event("close", start, end, tag)
            tag = tag._replace(tag=self._name_of(tag))
            markup = language_of(tag.language).markup
            if action is Action.TAG_END and markup and tag.tag.lower() not in markup.void:
                yield self._open_element(tag, end, markup)

    def _name_of(self, tag: Open) -> str:
        """The whole name of a tag; the scanned text may begin in the middle of it."""
        start = tag.start + self.shift
        named = _TAG_NAME.match(self.text, start + 1) if start >= 0 else None
        return named[0] if named else tag.tag

    def _open_element(self, tag: Open, end: int, markup: Markup) -> Event:
        raw = markup.raw.get(tag.tag.lower())
        if raw is None or len(self.regions) + self.num_pending >= _MAX_REGIONS:
            pair = _NESTED_ELEMENT if markup.is_nested_in_code else _ELEMENT
            entry = tag._replace(pair=pair)
        else:
            attributes = self.text[max(0, tag.start + self.shift) : end + self.shift]
            pair, language = raw_element(tag.tag, raw, attributes, tag.language)
            entry = tag._replace(pair=pair, language=language)
            self.regions.begin(entry, self.position)
        self._push(entry)
        return Event("open", end, end, entry)

    def _end_tag(self, name: str, start: int, end: int) -> Event:
        for depth in range(len(self.stack) - 1, max(-1, len(self.stack) - 1 - MAX_SKIPPED), -1):
            entry = self.stack[depth]
            if not entry.is_element:
                break
            if entry.tag.lower() == name.lower():
                return Event("close", start, end, entry, cut_stack(self.stack, depth) - entry.is_bracket)
        return Event("unmatched", start, end)
