"""The scan of text for open brackets, strings, comments, elements, and parts in other languages.

It works on any cut of a file and on unfinished text. Each event depends only on the text before it, so that
rules which fire on events do not depend on how text arrives. A grammar cannot replace it: where a slip breaks
the code, the grammar's tree of earlier brackets changes as text arrives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from completion_engine.languages.marks import Action, Mode
from completion_engine.languages.modes import mode_of, raw_element, reach_of
from completion_engine.languages.syntax import Markup, Pair
from completion_engine.languages.table import identifier_of, language_of

CLOSING = frozenset(")]}")
_MAX_SKIPPED = 64  # brackets that one closing bracket may close with its own
_MAX_OPEN = 100  # the least number of recently opened entries that are kept
_MAX_REGIONS = 8  # parts in other languages that stand in each other
_MAX_TAG_CHARS = 80
_ELEMENT = Pair("<>", "", kind="element", is_multiline=True)
_NESTED_ELEMENT = Pair("<>", "", kind="nested-element", is_multiline=True)
_TAG_NAME = re.compile(r"[\w:.$!-]*")
_NAMED_BY_TAG = frozenset({
    "css", "graphql", "html", "javascript", "json", "lua", "markdown", "perl", "php-code", "python", "ruby",
    "shellscript", "sql", "toml", "xml", "yaml",
})  # fmt: skip


class Open(NamedTuple):
    """Something not yet closed: `mark` opened it at `start`. Offsets before the scanned text are negative.

    `language` is that of what stands inside. `tag` is what its end repeats: a word, a name. A part that
    `is_pending` begins with the next line.
    """

    mark: str
    start: int
    pair: Pair
    language: str
    tag: str = ""
    is_pending: bool = False

    @property
    def is_bracket(self) -> bool:
        """Whether this is a bracket, a tag, or an element that is an expression: code goes on in it."""
        return self.pair.is_code

    @property
    def is_text(self) -> bool:
        """Whether this is a string or comment."""
        return self.pair.is_text

    @property
    def is_comment(self) -> bool:
        """Whether this is a comment."""
        return self.pair.kind == "comment"

    @property
    def is_lasting_text(self) -> bool:
        """Whether this is a string or comment that may run over line ends."""
        return self.pair.is_text and self.pair.is_multiline

    @property
    def is_element(self) -> bool:
        """Whether this is an element, after its opening tag."""
        return self.pair.kind in ("element", "nested-element")


class Event(NamedTuple):
    """`open`, `close` (of `entry`), `unmatched` closing mark or `newline` at `text[start:end]`.

    At a newline `entry` is the string or comment that the newline stands in, whether it ends there or not.
    `num_dropped` brackets were still open in what the event closed.
    """

    kind: Literal["open", "close", "unmatched", "newline"]
    start: int
    end: int
    entry: Open | None = None
    num_dropped: int = 0


Stack = list[Open]


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


def text_at(stack: Stack) -> Open | None:
    """The string or comment that the end of a scan stands in."""
    return stack[-1] if stack and stack[-1].pair.is_text else None


def language_at(stack: Stack, language: str) -> str:
    """The language at the end of a scan of a document in `language`."""
    for entry in reversed(stack):
        if not entry.is_pending:
            return entry.language
    return language


def num_brackets(stack: Stack) -> int:
    """Number of open brackets, without strings and comments."""
    return sum(entry.pair.is_code for entry in stack)


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
        self.regions = _Regions(self.text, self.shift, stack)
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
        index = _index_of(entry, self.stack)
        if index >= 0:
            num_dropped = _cut(self.stack, index)
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
        num_dropped = _cut(stack, keep)
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
                num_dropped = _cut(self.stack, _index_of(entry, self.stack))
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
        for depth in range(len(self.stack) - 1, max(-1, len(self.stack) - 1 - _MAX_SKIPPED), -1):
            entry = self.stack[depth]
            if not entry.is_element:
                break
            if entry.tag.lower() == name.lower():
                return Event("close", start, end, entry, _cut(self.stack, depth) - entry.is_bracket)
        return Event("unmatched", start, end)


class _Regions:
    """Where the parts in other languages that are open end, whatever is open in them.

    `limit` is how far the scan may go before the first of them ends, which is `ending`. Without one it ends
    before what may become an end as more text arrives. `templates` may open anywhere in the innermost part.
    """

    def __init__(self, text: str, shift: int, stack: Stack) -> None:
        self.text = text
        self.limit = len(text)
        self.ending: Open | None = None
        self.templates: tuple[Pair, ...] = ()
        self._spans: list[tuple[Open, int, int]] = []
        self._known: dict[tuple[Pair, str], tuple[int, int, int]] = {}
        for entry in stack:
            if entry.pair.kind == "region" and not entry.is_pending:
                self.begin(entry, max(0, entry.start + shift + len(entry.mark)))

    def __len__(self) -> int:
        return len(self._spans)

    def begin(self, entry: Open, position: int) -> None:
        """A part begins at a position of the text."""
        self._put(entry, *self._end_of(entry, position))

    def end(self) -> tuple[Open, int, int]:
        """The part that ends first, with the span of what ends it."""
        return min((span for span in self._spans[::-1] if span[2] >= 0), key=lambda span: span[1])

    def forget(self, ended: Open, position: int) -> None:
        """Forget a part and those within it; ends that lie before `position` ended another."""
        del self._spans[next(at for at, span in enumerate(self._spans) if span[0] is ended) :]
        self.search_again(position)

    def search_again(self, position: int) -> None:
        """Search for the ends that are known to lie before `position`, from there on."""
        kept, self._spans = self._spans, []
        self.limit, self.ending, self.templates = len(self.text), None, ()
        for entry, start, end in kept:
            if start < position or (end < 0 and start < self.limit):
                self.begin(entry, position)
            else:
                self._put(entry, start, end)

    def _put(self, entry: Open, start: int, end: int) -> None:
        self._spans.append((entry, start, end))
        self.templates = entry.pair.inner
        if start < self.limit or (start == self.limit and end >= 0):
            self.limit = start
            self.ending = entry if end >= 0 else None

    def _end_of(self, entry: Open, position: int) -> tuple[int, int]:
        """The span of an entry's end within what it stands in; known spans are not searched again."""
        key = entry.pair, entry.tag
        start, end, limit = self._known.get(key, (-1, -1, -1))
        if start < position or (end < 0 and limit < self.limit) or entry.pair.is_template:
            start, end = reach_of(entry.pair, entry.tag).end_in(self.text, position, self.limit)
            self._known[key] = start, end, self.limit
        return (start, end) if start <= self.limit else (self.limit, -1)


def close_bracket(found: str, start: int, stack: Stack) -> Event:
    """Take the closing bracket `found` off the stack; an unmatched one drops what it skips, if anything."""
    top = len(stack) - 1
    while top >= 0 and stack[top].is_pending:
        top -= 1
    if top >= 0 and stack[top].pair.closing == found:
        return Event("close", start, start + 1, stack.pop(top))
    for depth in range(top, max(-1, top - _MAX_SKIPPED), -1):
        kind = stack[depth].pair.kind
        if kind != "bracket" and not (found == "}" and stack[depth].pair.is_code):
            break
        if stack[depth].pair.closing == found:
            return Event("unmatched", start, start + 1, None, _cut(stack, depth))
    return Event("unmatched", start, start + 1)


def _index_of(entry: Open, stack: Stack) -> int:
    """Return the index of an entry in a stack, near the end; -1 if it is missing."""
    return next((at for at in range(len(stack) - 1, -1, -1) if stack[at] is entry), -1)


def _cut(stack: Stack, size: int) -> int:
    """Leave that many entries open, and pending ones; return the number of brackets that were closed."""
    cut = stack[size:]
    stack[size:] = [entry for entry in cut if entry.is_pending]
    return num_brackets(cut)
