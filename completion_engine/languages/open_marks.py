"""What is open in a scanned text: marks and the events that change them, and parts in other languages."""

from __future__ import annotations

from typing import Literal, NamedTuple

from completion_engine.languages.modes import reach_of
from completion_engine.languages.syntax import Pair

CLOSING = frozenset(")]}")
SYMMETRIC = "*_~`$"  # signs that stand on both sides of marked text
MAX_SKIPPED = 64  # brackets that one closing bracket may close with its own


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


def close_bracket(found: str, start: int, stack: Stack) -> Event:
    """Take the closing bracket `found` off the stack; an unmatched one drops what it skips, if anything."""
    top = len(stack) - 1
    while top >= 0 and stack[top].is_pending:
        top -= 1
    if top >= 0 and stack[top].pair.closing == found:
        return Event("close", start, start + 1, stack.pop(top))
    for depth in range(top, max(-1, top - MAX_SKIPPED), -1):
        kind = stack[depth].pair.kind
        if kind != "bracket" and not (found == "}" and stack[depth].pair.is_code):
            break
        if stack[depth].pair.closing == found:
            return Event("unmatched", start, start + 1, None, cut_stack(stack, depth))
    return Event("unmatched", start, start + 1)


def index_in(entry: Open, stack: Stack) -> int:
    """Return the index of an entry in a stack, near the end; -1 if it is missing."""
    return next((at for at in range(len(stack) - 1, -1, -1) if stack[at] is entry), -1)


def cut_stack(stack: Stack, size: int) -> int:
    """Leave that many entries open, and pending ones; return the number of brackets that were closed."""
    cut = stack[size:]
    stack[size:] = [entry for entry in cut if entry.is_pending]
    return num_brackets(cut)


class OpenParts:
    """The ends of the open parts in other languages, whatever is open in them.

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
