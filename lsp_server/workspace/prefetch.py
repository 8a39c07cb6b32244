"""Work before a request: on its prompt a moment after a key, on its context once the cursor rests.

Editors wait for a pause in typing before they request a suggestion, VS Code for about 60 ms. Text that is
written during this pause is ready sooner. Other threads choose the contexts of documents.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from completion_engine.context.snippet_choice import CursorLocation, RepositoryView, choose, stable
from completion_engine.request import CompletionRequest, RepositoryContext
from completion_engine.text_window import TextWindow
from lsp_server.sharing.supervision import on_own_thread
from lsp_server.workspace.documents import Edit, LineColumn, PositionEncoding, units_of
from ngram_cache import NgramIndex
from ngram_cache.overlays import TokenSource

logger = logging.getLogger(__name__)

# A client that does not wait for a pause has sent its request by then.
PAUSE_S = 0.01
# After more keys than this without a request, the client is not expected to send one.
MAX_KEYS_WITHOUT_REQUEST = 20
# Longer text was pasted, and no editor requests a suggestion there.
MAX_TYPED_CHARS = 256

# Editors that close brackets insert both as one edit; the cursor stands between them.
_PAIRS = ("()", "[]", "{}", "''", '""', "``")

# A cursor that has not moved for this time rests.
REST_S = 0.7

MAX_DOCUMENTS = 64
MAX_RECENT = 4
NOTHING = RepositoryContext("", ())
CHARS_OF_TOKEN = 3.6  # the smallest number in code; the engine drops the excess


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


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """A cursor position that needs context: that of `request`, which names an index, in `folder`.

    At most about `num_tokens` tokens are wanted, without the text in `window`, which the target sees anyway.
    `is_current` returns whether the document is unchanged.
    """

    request: CompletionRequest
    folder: Path
    tokens: TokenSource
    num_tokens: int
    window: TextWindow
    is_current: Callable[[], bool]


class ContextJobs:
    """Chooses contexts, one at a time, each on a thread of its own. Used on the event loop only.

    `on_chosen` is called when a document's context has changed. Only the newest query is served. If choosing
    fails, the document keeps its context.
    """

    def __init__(self, on_chosen: Callable[[ContextQuery], None]) -> None:
        self._on_chosen = on_chosen
        self._query: ContextQuery | None = None
        self._chosen: OrderedDict[str, _Chosen] = OrderedDict()
        self._asked: OrderedDict[str, None] = OrderedDict()
        self._recent: deque[tuple[Path, str]] = deque(maxlen=MAX_RECENT)
        self._timer: asyncio.TimerHandle | None = None
        self._serving: asyncio.Task[None] | None = None
        self._has_stopped = False

    def of(self, request: CompletionRequest) -> RepositoryContext | None:
        """Return the context in front of a document; None if a part of it may no longer be read."""
        chosen = self._chosen.get(request.document)
        if chosen is None or request.index is None or not chosen.holds_in(request.index):
            return None
        return chosen.context

    def want(self, query: ContextQuery) -> None:
        """Choose a context when the cursor has rested at this position; at once for a new document."""
        if self._timer is not None:
            self._timer.cancel()
        document = query.request.document
        delay_s = REST_S if document in self._asked else 0.0
        self._asked[document] = None
        self._asked.move_to_end(document)
        while len(self._asked) > MAX_DOCUMENTS:
            self._asked.popitem(last=False)
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._begin, query)

    def forget(self, document: str) -> None:
        """Drop the context of a closed document, and the one that is being chosen."""
        self._asked.pop(document, None)
        self._chosen.pop(document, None)

    def clear(self) -> None:
        """Drop all contexts, because folders are indexed by other rules."""
        self._query = None
        self._asked.clear()
        self._chosen.clear()

    async def stop(self, timeout_s: float = 1.0) -> bool:
        """Choose nothing more; return True if the last choice ended within `timeout_s`."""
        self._has_stopped = True
        self.clear()
        serving = self._serving
        return serving is None or not (await asyncio.wait([serving], timeout=timeout_s))[1]

    def _begin(self, query: ContextQuery) -> None:
        self._timer = None
        if query.request.document not in self._asked or self._has_stopped:
            return
        here = query.folder, query.request.indexed_as
        if here in self._recent:
            self._recent.remove(here)
        self._recent.appendleft(here)
        self._query = query
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        while (query := self._query) is not None:
            self._query = None
            recent = tuple(path for folder, path in self._recent if folder == query.folder)
            try:
                chosen = await on_own_thread(_choose, query, recent)
            except Exception:
                logger.exception("No context can be chosen for %s", query.request.indexed_as)
            else:
                self._take(query, chosen)

    def _take(self, query: ContextQuery, chosen: RepositoryContext) -> None:
        document, before = query.request.document, self.of(query.request)
        if document not in self._asked or stable(before, chosen) is before:
            return
        self._chosen[document] = _Chosen(chosen, query.request.indexed_as)
        self._chosen.move_to_end(document)
        while len(self._chosen) > MAX_DOCUMENTS:
            self._chosen.popitem(last=False)
        self._on_chosen(query)


def _choose(query: ContextQuery, recent: tuple[str, ...]) -> RepositoryContext:
    request = query.request
    if request.index is None:
        return NOTHING
    path, document = request.indexed_as, (request.prefix, request.suffix)
    location = CursorLocation(path, request.language, *document, query.window, recent)
    view = RepositoryView(request.index, query.tokens, query.folder.name, path)
    return choose(location, view, int(query.num_tokens * CHARS_OF_TOKEN))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A document's context. `own_path` is the path of the document, which may be in no index."""

    context: RepositoryContext
    own_path: str

    def holds_in(self, index: NgramIndex) -> bool:
        """Return whether all of it may still be read."""
        return all(
            snippet.path == self.own_path or index.holds(snippet.path) for snippet in self.context.snippets
        )
