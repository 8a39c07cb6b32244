"""Passes one window's newest request to the engine; older requests are cancelled and answered at once.

Holds the pending requests and their futures, on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

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
    PrefetchJob,
    empty,
)
from lsp_server.engine.pool import EngineKey, EnginePool, engine_key
from lsp_server.engine.remote_first import RemoteFirst
from lsp_server.engine.thread import EngineThread
from lsp_server.sharing.supervision import on_loop
from lsp_server.workspace.measurements import Measurements
from lsp_server.workspace.settings import Settings

_RequestJob = CompletionJob | EditJob


class SupersededError(Exception):
    """A newer request replaced this one."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A request that waits for its answer, or for the error in place of it."""

    job: _RequestJob
    future: asyncio.Future[Any]

    def supersede(self) -> bool:
        """Cancel the request, and answer it now. Return whether it had no answer yet."""
        self.job.cancel()
        is_open = not self.future.done()
        self.answer(CancelledError())
        return is_open

    def answer(self, answer: object) -> None:
        """Answer the request, unless it is answered."""
        if not self.future.done():
            self.future.set_result(answer)


class Scheduler:
    """Passes an engine one request of each kind at a time, the newest. Used on the event loop only.

    `window` receives all events of the engine on the loop, but the tokenizer on any thread; its `on_failure`
    also gets each error that the user can fix.
    """

    def __init__(self, measurements: Measurements, engines: EnginePool, window: EngineUser) -> None:
        self._measurements = measurements
        self._engines = engines
        self._loop = asyncio.get_running_loop()
        self._pending: dict[type[_RequestJob], _Pending] = {}
        self._num_turns = self._newest_turn = 0
        self._engine: EngineThread | RemoteFirst | None = None
        self._key: EngineKey = ()
        self._user = EngineUser(
            on_status=partial(on_loop, self._loop, window.on_status),
            on_failure=partial(on_loop, self._loop, window.on_failure),
            on_notice=partial(on_loop, self._loop, window.on_notice),
            on_grown=partial(on_loop, self._loop, window.on_grown),
            on_tokens=window.on_tokens,
        )

    @property
    def status(self) -> EngineStatus:
        """The engine's present state."""
        return self._engine.status if self._engine is not None else EngineStatus()

    @property
    def is_quiet(self) -> bool:
        """Whether the engine has nothing to do, as far as that is known."""
        return not isinstance(self._engine, EngineThread) or self._engine.is_quiet

    def use(self, settings: Settings) -> None:
        """Use the engine for these settings; if it is another one, cancel pending requests."""
        if (key := engine_key(settings)) != self._key:
            self._supersede_all()
            self._leave(is_local_next=not settings.remote.url)
            self._engine, self._key = None, ()
            if settings.remote.url:
                self._engine = RemoteFirst(self._engines, settings, self._user)
            else:
                self._engine = self._engines.use(settings, self._user)
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
        report = partial(on_loop, self._loop, self._measurements.add_cancellation)
        answer = await self._ask(lambda resolve: CompletionJob(request, self._user, resolve, report))
        return empty(answer) if isinstance(answer, str) else answer

    async def propose_edit(self, request: EditRequest) -> EditAnswer:
        """Return the next edit, or none and the rule that is the reason. Completions come first.

        Raises SupersededError if a newer request came or a document changed.
        """
        answer = await self._ask(lambda resolve: EditJob(request, self._user, resolve))
        return EditAnswer(rule=answer) if isinstance(answer, str) else answer

    async def _ask(self, job_with: Callable[[Callable[[Any], None]], _RequestJob]) -> Any:
        """Return the engine's answer to a job, or the rule that is the reason for none. Errors as above."""
        pending = _Pending(
            job_with(lambda answer: on_loop(self._loop, pending.answer, answer)), self._loop.create_future()
        )
        job, kind = pending.job, type(pending.job)
        self._supersede(kind)
        refusal = self.status.refusal
        if self._engine is None or refusal:
            return refusal
        self._pending[kind] = pending
        self._engine.submit(job)
        try:
            answer = await pending.future
        except asyncio.CancelledError:
            job.cancel()
            self._measurements.num_cancelled += kind is CompletionJob
            raise
        finally:
            if self._pending.get(kind) is pending:
                del self._pending[kind]
        if isinstance(answer, CancelledError):
            raise SupersededError
        if isinstance(answer, BaseException):
            is_known = isinstance(answer, SlipstreamError | NoEngineError)
            return "engine-error" if is_known else "engine-failed"
        return answer

    def supersede_edit(self) -> None:
        """Cancel the pending edit request, and answer it now."""
        self._supersede(EditJob)

    def prefetch(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Predict a request: an idle engine prepares for it, and with `writes` writes its completion."""
        if self._engine is not None:
            self._engine.submit(PrefetchJob(request, self._user, writes))

    def forget(self, document: str) -> None:
        """Drop everything for a closed document, here and in the engine."""
        match self._pending.get(CompletionJob):
            case _Pending(CompletionJob(CompletionRequest() as request)) if request.document == document:
                self._supersede(CompletionJob)
        self.supersede_edit()
        if self._engine is not None:
            self._engine.submit(CloseJob(document))

    def close(self) -> None:
        """Cancel pending requests and stop using the engine."""
        self._supersede_all()
        self._leave()
        self._engine = None

    def _leave(self, *, is_local_next: bool = False) -> None:
        """Stop using the present engine; the pool does so itself if it provides the next one."""
        if isinstance(self._engine, RemoteFirst):
            self._engine.close()
        elif not is_local_next:
            self._engines.release(self._user)

    def _supersede_all(self) -> None:
        for kind in tuple(self._pending):
            self._supersede(kind)

    def _supersede(self, kind: type[_RequestJob]) -> None:
        """Cancel the pending request of a kind, and answer it now."""
        pending = self._pending.pop(kind, None)
        if pending is not None and pending.supersede():
            self._measurements.num_superseded += kind is CompletionJob
