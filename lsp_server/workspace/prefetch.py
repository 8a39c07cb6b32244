"""When and where to prefetch: a moment after a keystroke, for clients that wait longer before a request.

Editors wait for a pause in typing before they request a suggestion, VS Code for about 60 ms. Text that is
written during this pause is ready sooner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsp_server.workspace.documents import Edit, LineColumn, PositionEncoding, units_of

# A client that does not wait for a pause has sent its request by then.
PAUSE_S = 0.01
# After more keys than this without a request, the client is not expected to send one.
MAX_KEYS_WITHOUT_REQUEST = 20
# Longer text was pasted, and no editor requests a suggestion there.
MAX_TYPED_CHARS = 256

# Editors that close brackets insert both as one edit; the cursor stands between them.
_PAIRS = ("()", "[]", "{}", "''", '""', "``")


def cursor_after(edit: Edit, encoding: PositionEncoding) -> LineColumn | None:
    """Return the cursor after a typed edit, in the client's units; None if the text was pasted."""
    if len(edit.text) > MAX_TYPED_CHARS:
        return None
    typed = edit.text[0] if edit.text in _PAIRS else edit.text
    above, _, last = typed.replace("\r\n", "\n").replace("\r", "\n").rpartition("\n")
    num_units = units_of(last, encoding)
    line, column = edit.start
    if last == typed:
        return line, column + num_units
    return line + above.count("\n") + 1, num_units


class PrefetchTimer:
    """Starts a prefetch after a key, unless another key or a request comes first. For the event loop only."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._num_keys = MAX_KEYS_WITHOUT_REQUEST  # keys since the last request; no request came yet

    def document_changed(self, prefetch: Callable[[], None] | None) -> None:
        """Call `prefetch` in a moment, unless a key or a request comes first; None for a change by no key."""
        self.stop()
        self._num_keys += 1
        if prefetch is not None and self._num_keys <= MAX_KEYS_WITHOUT_REQUEST:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_S, prefetch)

    def requested(self, *, by_itself: bool, has_selection: bool = False) -> None:
        """Record a request. A client that sends one `by_itself` will probably do so again.

        Nothing is prefetched while an item of the client's own list is selected: the next request then
        continues an item too, and text for the cursor alone would replace the item's.
        """
        self.stop()
        if has_selection:
            self._num_keys = MAX_KEYS_WITHOUT_REQUEST
        elif by_itself:
            self._num_keys = 0

    def stop(self) -> None:
        """Prefetch nothing until the next keystroke."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
