"""When and where the next request is foreseen: a moment after a key, where the client asks later than that.

Editors wait for a pause before they ask, VS Code for some 60 ms. What is written meanwhile need not be waited
for. Owns the timer and what says that it pays. Must not know the protocol, nor the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsp_server.workspace.documents import Edit, LineColumn
from lsp_server.workspace.positions import PositionEncoding, units_of

# A client that does not wait for a pause has asked by then.
PAUSE_S = 0.01
# Keys in a row for which the client asked nothing: more of them, and it is not expected to.
MAX_UNASKED = 20
# More than this was pasted, and no editor asks there.
MAX_TYPED_CHARS = 256

# Typed as one edit by editors that close what is opened; the cursor stands between the two.
_PAIRS = ("()", "[]", "{}", "''", '""', "``")


def cursor_after(edit: Edit, encoding: PositionEncoding) -> LineColumn | None:
    """Where the cursor stands after an edit, if that was typed, in the client's units."""
    if len(edit.text) > MAX_TYPED_CHARS:
        return None
    typed = edit.text[0] if edit.text in _PAIRS else edit.text
    above, _, last = typed.replace("\r\n", "\n").replace("\r", "\n").rpartition("\n")
    num_units = units_of(last, encoding)
    line, column = edit.start
    if last == typed:
        return line, column + num_units
    return line + above.count("\n") + 1, num_units


class Foresight:
    """One window's keys and requests. Used on the event loop only."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._num_unasked = MAX_UNASKED  # until it asks for the first time

    def changed(self, foresee: Callable[[], None] | None) -> None:
        """A document changed: call `foresee`, if a key did that, unless a key or a request comes before."""
        self.stop()
        self._num_unasked += 1
        if foresee is not None and self._num_unasked <= MAX_UNASKED:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_S, foresee)

    def asked(self, *, by_itself: bool, has_selection: bool = False) -> None:
        """The client asked; what it does by itself it may be expected to do again.

        Nothing is foreseen while an item of its own list is selected. The next request goes on from an item
        too, and what is written for the bare place would replace what is known of that.
        """
        self.stop()
        if has_selection:
            self._num_unasked = MAX_UNASKED
        elif by_itself:
            self._num_unasked = 0

    def stop(self) -> None:
        """Foresee nothing until the next key."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
