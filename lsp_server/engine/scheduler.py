"""Passes one window's newest request to the engine; older requests are cancelled and answered at once.

Holds the pending requests and their futures, on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from completion_engine.errors import SlipstreamError
from completion_engine.next_edit.edits import EditAnswer, EditRequest
from completion_engine.request import CancelledError, Completion, CompletionRequest
from lsp_server.engine.engine_types import (
    CloseJob,
    CompletionJob,
    EditJob,
    EngineStatus,
    EngineUser,
    NoEngineError,
    OnTokens,
    PrefetchJob,
    empty,
)
from lsp_server.engine.pool import EnginePool, engine_key
from lsp_server.engine.remote_first import RemoteFirst
from lsp_server.engine.shared_engine import EngineKey, SharedEngine
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.settings import Settings

logger = logging.getLogger(__name__)


class SupersededError(Exception):
    """A newer request replaced this one."""


class Scheduler:
    """Passes an engine one request at a time, the newest. Used on the event loop only.

    `window` receives all events of the engine on the loop; its `on_failure` also gets each error that the
    user can fix. `on_tokens` receives the engine's tokenizer, on any thread.
    """

    def __init__(
        self,
        measurements: Measurements,
        engines: EnginePool,
        window: EngineUser,
        on_tokens: OnTokens,
    ) -> None:
        self._measurements = measurements
        self._engines = engines
        self._on_tokens = on_tokens
        self._loop = asyncio.get_running_loop()
        self._current: tuple[CompletionJob, asyncio.Future[Completion]] | None = None
        self._current_edit: tuple[EditJob, asyncio.Future[EditAnswer]] | None = None
        self._num_turns = self._newest_turn = 0
        self._engine: SharedEngine | RemoteFirst | None = None
        self._key: EngineKey = ()
        self._user = EngineUser(
            on_status=lambda status: self._call(window.on_status, status),
            on_failure=lambda error: self._call(window.on_failure, error),
            on_notice=lambda notice: self._call(window.on_notice, notice),
            on_grown=lambda request: self._call(window.on_grown, request),
        )

    @property
    def status(self) -> EngineStatus:
        """The engine's present state."""
        return self._engine.status if self._engine is not None else EngineStatus()

    @property
    def is_quiet(self) -> bool:
        """Whether the engine has nothing to do, as far as that is known."""
        return not isinstance(self._engine, SharedEngine) or self._engine.thread.is_quiet

    @property
    def _refusal(self) -> str:
        """The rule by which requests are refused now; empty if they are accepted."""
        return self._engine.refusal if self._engine is not None else EngineStatus().refusal

    def use(self, settings: Settings) -> None:
        """Use the engine for these settings; if it is another one, cancel pending requests."""
        if (key := engine_key(settings)) != self._key:
            self._supersede()
            self.supersede_edit()
            self._leave(is_local_next=not settings.remote.url)
            self._engine, self._key = None, ()
            self._engine = self._engine_of(settings)
            self._key = key

    def take_turn(self) -> int:
        """Return a number for an incoming request, in the order in which requests arrive."""
        self._num_turns += 1
        return self._num_turns

    async def complete(self, request: CompletionRequest, turn: int = 0) -> Completion:
        """Return the engine's answer; empty with a rule as the reason if there is no engine or it fails.

        Raises SupersededError if a newer request came; `turn` orders requests, because a newer one may get
        here first. If the awaiting task is cancelled, the engine stops at its next step.
        """
        turn = turn or self.take_turn()
        if turn < self._newest_turn:
            self._measurements.num_superseded += 1
            raise SupersededError
        self._newest_turn = turn
        self._supersede()
        refusal = self._refusal
        if self._engine is None or refusal:
            return empty(refusal)
        future: asyncio.Future[Completion] = self._loop.create_future()
        job = CompletionJob(
            request,
            self._user,
            resolve=lambda answer: self._call(_settle, future, answer),
            on_idle_after_cancel=lambda ms: self._call(self._measurements.add_cancellation, ms),
        )
        self._current = (job, future)
        self._engine.submit(job)
        try:
            return await future
        except asyncio.CancelledError:
            job.cancel()
            self._measurements.num_cancelled += 1
            raise
        except SlipstreamError:
            return empty("engine-error")
        finally:
            if self._current is not None and self._current[0] is job:
                self._current = None

    async def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return the next edit, or none and the rule that is the reason. Completions come first.

        Raises SupersededError if a newer request came or a document changed.
        """
        self.supersede_edit()
        refusal = self._refusal
        if self._engine is None or refusal:
            return EditAnswer(rule=refusal)
        future: asyncio.Future[EditAnswer] = self._loop.create_future()
        job = EditJob(request, self._user, lambda answer: self._call(_settle_edit, future, answer))
        self._current_edit = job, future
        self._engine.submit(job)
        try:
            return await future
        finally:
            job.cancel()
            if self._current_edit is not None and self._current_edit[0] is job:
                self._current_edit = None

    def supersede_edit(self) -> None:
        """Cancel the pending edit request, and answer it now."""
        if self._current_edit is not None:
            job, future = self._current_edit
            self._current_edit = None
            job.cancel()
            if not future.done():
                future.set_exception(SupersededError())

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Predict a request: an idle engine prepares for it, and with `writes` writes its completion."""
        if self._engine is not None:
            self._engine.submit(PrefetchJob(request, self._user, writes))

    def forget(self, document: str) -> None:
        """Drop everything for a closed document, here and in the engine."""
        if self._current is not None and self._current[0].request.document == document:
            self._supersede()
        self.supersede_edit()
        if self._engine is not None:
            self._engine.submit(CloseJob(document))

    def close(self) -> None:
        """Cancel pending requests and stop using the engine."""
        self._supersede()
        self.supersede_edit()
        self._leave()
        self._engine = None

    def _engine_of(self, settings: Settings) -> SharedEngine | RemoteFirst:
        if settings.remote.url:
            return RemoteFirst(self._engines, settings, self._user, self._on_tokens)
        return self._engines.use(settings, self._user, self._on_tokens)

    def _leave(self, *, is_local_next: bool = False) -> None:
        """Stop using the present engine; the pool does so itself if it provides the next one."""
        if isinstance(self._engine, RemoteFirst):
            self._engine.close()
        elif not is_local_next:
            self._engines.release(self._user)

    def _supersede(self) -> None:
        """Cancel the pending request, and answer it now."""
        if self._current is None:
            return
        job, future = self._current
        self._current = None
        job.cancel()
        if not future.done():
            self._measurements.num_superseded += 1
            future.set_exception(SupersededError())

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call `function` on the loop, from any thread; nothing once the loop has ended."""
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            logger.debug("The event loop has ended before %s", function)


def _settle(future: asyncio.Future[Completion], answer: Completion | BaseException) -> None:
    if future.done():
        return
    if isinstance(answer, Completion):
        future.set_result(answer)
    elif isinstance(answer, SlipstreamError):
        future.set_exception(answer)
    elif isinstance(answer, NoEngineError):
        future.set_result(empty("engine-error"))
    elif isinstance(answer, CancelledError):
        future.set_exception(SupersededError())
    else:
        future.set_result(empty("engine-failed"))


def _settle_edit(future: asyncio.Future[EditAnswer], answer: EditAnswer | BaseException) -> None:
    if future.done():
        return
    if isinstance(answer, EditAnswer):
        future.set_result(answer)
    elif isinstance(answer, CancelledError):
        future.set_exception(SupersededError())
    else:
        future.set_result(EditAnswer(rule="engine-failed"))
