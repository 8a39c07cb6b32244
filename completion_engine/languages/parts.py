"""The ends of the parts of a document in other languages."""

from __future__ import annotations

from completion_engine.languages.modes import reach_of
from completion_engine.languages.open_marks import Open, Stack
from completion_engine.languages.syntax import Pair


class OpenParts:
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
