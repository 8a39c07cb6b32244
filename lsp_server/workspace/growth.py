"""The suggestion on the screen: it stays while the user types it, and grows while the user looks at it.

After an answer that the deadline or a cold prompt cut, the engine writes on. A client that wants to know is
notified when there is more, asks again, and gets a text that begins with the one on the screen. Used on the
event loop only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from completion_engine.request import Completion, CompletionRequest, CompletionSegment
from lsp_server.workspace.documents import DocumentSnapshot, LineColumn
from lsp_server.workspace.session import Session

GREW = "slipstream/suggestionGrew"
REPLACE_S = 0.5  # a text that has been on the screen for longer is read, so it is not replaced
# The rules by which nothing belongs at a cursor, whatever is on the screen.
_SUPPRESSED = "in-comment", "in-string", "just-deleted", "no-change"
MAX_NOTICES = 2  # for each pause: each one moves text on the screen


@dataclass(slots=True)
class _Pause:
    """A cursor that rests, the last request there, and the completion on the screen since `shown_s`."""

    snapshot: DocumentSnapshot
    place: LineColumn
    request: CompletionRequest
    shown: Completion
    shown_s: float
    num_notices: int = 0
    is_expected: bool = False  # the client was notified, so that it asks again


class SuggestionGrowth:
    """One window's suggestion that may grow. `notify` sends the parameters of `GREW`.

    It `is_wanted` if the client announced that it asks again.
    """

    def __init__(self, session: Session, notify: Callable[[dict[str, Any]], None]) -> None:
        self._session, self._notify = session, notify
        self._pause: _Pause | None = None
        self.is_wanted = False

    def answered(
        self, snapshot: DocumentSnapshot, place: LineColumn, request: CompletionRequest, found: Completion
    ) -> Completion:
        """Return what is shown of the engine's answer at a cursor.

        The text on the screen goes on where the user types its beginning, and where the client asks again
        after a notification. Then it is replaced only within `REPLACE_S`, by the answer to a better prompt or
        of a larger model.
        """
        pause, now_s = self._pause, time.monotonic()
        is_same = pause is not None and pause.snapshot == snapshot and request.is_at(pause.request)
        if pause is None or not is_same or request.is_explicit:  # a menu's selected item is text, too
            if pause is not None and not request.is_explicit:
                found = _going_on(pause, request, found)
            self._pause = _Pause(snapshot, place, request, found, now_s)
            return found
        if pause.is_expected and not found.text.startswith(pause.shown.text):
            is_new = pause.shown.stats.is_provisional and now_s - pause.shown_s <= REPLACE_S
            if not (is_new and found.text):
                found = pause.shown
        pause.is_expected, pause.request, pause.shown = False, request, found
        return found

    def may_grow(self, snapshot: DocumentSnapshot) -> bool:
        """Return whether the cursor still rests at an answer that was cut short."""
        pause = self._pause
        return pause is not None and pause.snapshot == snapshot and pause.shown.stats.is_unfinished

    def grew(self, request: CompletionRequest) -> None:
        """Notify the client, if it still waits at the cursor of this request and the document is the same."""
        pause = self._pause
        if pause is None or not self.is_wanted or pause.is_expected or pause.num_notices >= MAX_NOTICES:
            return
        uri, version = pause.snapshot.uri, pause.snapshot.version
        if (
            self._session.version_of(uri) != version
            or not request.is_at(pause.request)
            or pause.request.is_explicit
        ):
            return
        pause.num_notices += 1
        pause.is_expected = True
        line, character = pause.place
        position = {"line": line, "character": character}
        self._notify({"textDocument": {"uri": uri, "version": version}, "position": position})


def _going_on(pause: _Pause, request: CompletionRequest, found: Completion) -> Completion:
    """Return the rest of what is on the screen where the user typed its beginning and `found` differs."""
    typed, shown = request.typed_since(pause.request), pause.shown
    rest = shown.text[len(typed) :] if typed and shown.text.startswith(typed) else ""
    if not rest or found.text.startswith(rest) or found.rule in _SUPPRESSED:
        return found
    segments, num_typed = list[CompletionSegment](), len(typed or "")
    for segment in shown.segments:
        if left := segment.text[num_typed:]:
            segments.append(replace(segment, text=left))
        num_typed = max(0, num_typed - len(segment.text))
    return replace(shown, text=rest, segments=tuple(segments), stats=found.stats, alternatives=())
