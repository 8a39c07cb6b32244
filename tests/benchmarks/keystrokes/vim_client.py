"""llama.vim as a client: when it requests completions, what it sends, what it caches and shows.

Owns the clock of one editor. Follows the behaviour of llama.vim at a1c8e6e with its default settings, without
Neovim's own time and without a `curl` process for each request.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from completion_engine.errors import MachineError
from tests.benchmarks.keystrokes.vim_context import Cursor, Hint, LocalContext, hint_of, local_context
from tests.benchmarks.keystrokes.vim_ring import Ring

Infill = Callable[[Mapping[str, Any]], dict[str, Any]]

NUM_PREDICTED = 128
MAX_PROMPT_MS = 500
MAX_FIRST_MS, MAX_NEXT_MS = 250, 1000  # time to write: at the cursor, and after what is shown there
MAX_LINE_REST = 8  # right of the cursor; more, and nothing is requested
NUM_CACHED = 250
NUM_LOOKED_BACK = 128  # characters typed since a cached answer was requested
_RETRY_S = 0.1
_RING_S, _RING_PAUSE_S = 1.0, 3.0
_FIELDS = ("content", "timings/prompt_n", "timings/prompt_ms", "timings/predicted_n", "timings/predicted_ms")


class LlamaVim:
    """One editor with one file; `infill` sends a request and may be called in any thread.

    `hint` is what is shown, `shown_at` since when (`time.perf_counter`). `settled_at` is when it became clear
    that nothing is shown at the cursor: its own answer had nothing, or nothing was requested.
    """

    def __init__(self, infill: Infill, file_name: str, *, stop: Sequence[str] = (), seed: int = 0) -> None:
        self.hint: Hint | None = None
        self.shown_at: float | None = None
        self.settled_at: float | None = None
        self.num_requests = 0
        self.ring = Ring(seed)
        self._infill, self._file_name, self._stop = infill, file_name, list(stop)
        self._lines: Sequence[str] = [""]
        self._cursor = Cursor(0, 0)
        self._cache: OrderedDict[str, str] = OrderedDict()
        self._job: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._picked_row, self._last_indent, self._moved_at = -9999, 0, time.perf_counter()
        self._failure: MachineError | None = None

    async def visit(self, lines: Sequence[str], row: int, file_name: str) -> None:
        """Open a file and look at it for long enough that its chunk is in use and computed."""
        self.ring.pick_at_entry(lines, row, file_name)
        while self.ring.use_next():
            await asyncio.to_thread(self._infill, self._ring_body())

    def moved(self, lines: Sequence[str], cursor: Cursor) -> None:
        """A key was pressed: the buffer and the cursor after it."""
        if self._failure is not None:
            raise self._failure
        self._lines, self._cursor, self._moved_at = lines, cursor, time.perf_counter()
        self.hint = self.shown_at = self.settled_at = None
        self._try_hint()
        context = local_context(lines, cursor)
        if not self._shows_text and (context.key in self._cache or len(context.line_rest) > MAX_LINE_REST):
            self.settled_at = time.perf_counter()
        self._request()

    async def tend_ring(self) -> None:
        """Use waiting chunks while the user pauses; runs until it is cancelled."""
        while True:
            await asyncio.sleep(_RING_S)
            if time.perf_counter() - self._moved_at >= _RING_PAUSE_S and self.ring.use_next():
                await asyncio.to_thread(self._infill, self._ring_body())

    async def finish(self) -> None:
        """Wait until nothing is requested any more. Raises MachineError when a request failed."""
        while self._job is not None or self._retry is not None:
            if self._retry is not None:
                self._retry.cancel()
                self._retry = None
            if self._job is not None:
                await asyncio.wait([self._job])
        if self._failure is not None:
            raise self._failure

    @property
    def _shows_text(self) -> bool:
        return self.hint is not None and self.hint.is_acceptable and bool(self.hint.text)

    def _request(self, after: Sequence[str] = ()) -> None:
        """Request a completion at the cursor, or at the end of the ghost text `after`."""
        if self._job is not None:
            if self._retry is not None:
                self._retry.cancel()
            self._retry = asyncio.get_running_loop().call_later(_RETRY_S, self._request_again, after)
            return
        context = local_context(self._lines, self._cursor, after, self._last_indent)
        if len(context.line_rest) > MAX_LINE_REST or any(key in self._cache for key in context.keys):
            return
        self._last_indent = context.num_indent
        self.ring.drop_near(self._lines, self._cursor.row)
        self.num_requests += 1
        body = self._body(context, MAX_NEXT_MS if after else MAX_FIRST_MS)
        self._job = asyncio.create_task(self._run(body, context.keys))
        if abs(self._cursor.row - self._picked_row) > 32:
            self.ring.pick_around(self._lines, self._cursor.row, self._file_name)
            self._picked_row = self._cursor.row

    def _request_again(self, after: Sequence[str]) -> None:
        self._retry = None
        self._request(after)

    async def _run(self, body: Mapping[str, Any], keys: Sequence[str]) -> None:
        try:
            content = str((await asyncio.to_thread(self._infill, body)).get("content", ""))
        except MachineError as error:
            self._failure, self._job = error, None
            return
        for key in keys:
            self._store(key, content)
        if self.hint is None or not self.hint.is_acceptable:
            self._try_hint()
            if not self._shows_text and local_context(self._lines, self._cursor).key in self._cache:
                self.settled_at = self.settled_at or time.perf_counter()
        self._job = None

    def _store(self, key: str, content: str) -> None:
        if len(self._cache) >= NUM_CACHED:
            self._cache.popitem(last=False)
        self._cache[key] = content
        self._cache.move_to_end(key)

    def _cached(self, key: str) -> str | None:
        with suppress(KeyError):
            self._cache.move_to_end(key)
        return self._cache.get(key)

    def _try_hint(self) -> None:
        """Show what the cache has for the cursor, and request what follows it."""
        content = self._found(local_context(self._lines, self._cursor))
        if content is None:
            return
        self.hint = hint_of(content, self._lines, self._cursor)
        if self._shows_text:
            self.shown_at = time.perf_counter()
        else:
            self.settled_at = time.perf_counter()
        self._request(self.hint.lines)

    def _found(self, context: LocalContext) -> str | None:
        """The cached answer for this text, or the longest rest of one whose beginning was typed since."""
        content = self._cached(context.key)
        if content is not None:
            return content
        text = context.prefix + context.middle
        best: str | None = None
        for num_typed in range(1, min(NUM_LOOKED_BACK, len(text)) + 1):
            earlier = self._cached(f"{text[:-num_typed]}Î{context.suffix}")
            if not earlier or not earlier.startswith(text[-num_typed:]):
                continue
            rest = earlier[num_typed:]
            if rest and (best is None or len(rest) > len(best)):
                best = rest
        return best

    def _body(self, context: LocalContext, max_predict_ms: int) -> dict[str, Any]:
        return {
            "id_slot": 0,
            "input_prefix": context.prefix,
            "input_suffix": context.suffix,
            "input_extra": [chunk.as_extra() for chunk in self.ring.chunks],
            "prompt": context.middle,
            "n_predict": NUM_PREDICTED,
            "stop": self._stop,
            "n_indent": context.num_indent,
            "top_k": 40,
            "top_p": 0.90,
            "samplers": ["top_k", "top_p", "infill"],
            "stream": False,
            "cache_prompt": True,
            "t_max_prompt_ms": MAX_PROMPT_MS,
            "t_max_predict_ms": max_predict_ms,
            "response_fields": list(_FIELDS),
        }

    def _ring_body(self) -> dict[str, Any]:
        return {
            "id_slot": 0,
            "input_prefix": "",
            "input_suffix": "",
            "input_extra": [chunk.as_extra() for chunk in self.ring.chunks],
            "prompt": "",
            "n_predict": 0,
            "temperature": 0.0,
            "samplers": [],
            "stream": False,
            "cache_prompt": True,
            "t_max_prompt_ms": 1,
            "t_max_predict_ms": 1,
            "response_fields": [""],
        }
