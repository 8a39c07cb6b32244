"""The engines of one window with a team's servers: the servers answer first, the local engine is the
fallback.

The servers' engine belongs to the window, because a round trip blocks its thread. The local engine is shared
with other windows, and loaded when it is needed. Used on the event loop only.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from completion_engine.errors import RemoteError
from completion_engine.next_edit.edits import EditAnswer
from completion_engine.request import Completion
from lsp_server.engine.engine_types import (
    CloseJob,
    CompletionJob,
    EditJob,
    EngineStatus,
    EngineUser,
    Job,
    Notice,
    PrefetchJob,
    empty,
)
from lsp_server.engine.pool import EnginePool
from lsp_server.engine.thread import EngineThread
from lsp_server.sharing.supervision import on_loop
from lsp_server.workspace.settings import RemoteSettings, Settings

# Time after its last use for which the local engine is kept while the servers answer.
KEEP_LOCAL_S = 300.0
MAX_FAILURES = 3
FIRST_PROBE_S, LAST_PROBE_S = 1.0, 60.0
FIRST_BUSY_S, LAST_BUSY_S = 0.5, 8.0


class Availability:
    """Whether to use one window's servers, by their failures and probes. Times are of any one clock."""

    def __init__(self) -> None:
        self.is_down = False
        self._num_failures = 0
        self._busy_s = FIRST_BUSY_S
        self._busy_until_s = 0.0
        self._probe_s = FIRST_PROBE_S

    def may_ask(self, now_s: float) -> bool:
        """Return whether a request may be sent to the servers now."""
        return not self.is_down and now_s >= self._busy_until_s

    def answered(self) -> None:
        """Record that the servers answered a request."""
        self._num_failures, self._busy_s, self._probe_s = 0, FIRST_BUSY_S, FIRST_PROBE_S

    def failed(self, fault: RemoteError, now_s: float) -> None:
        """Record a failed request. Servers without capacity get time, and do not count as down."""
        if fault.kind == "busy":
            self._busy_until_s = now_s + max(self._busy_s, fault.retry_s)
            self._busy_s = min(2 * self._busy_s, LAST_BUSY_S)
            return
        self._num_failures += 1
        self.is_down = self.is_down or fault.is_lasting or self._num_failures >= MAX_FAILURES

    def go_down(self) -> float:
        """Record that the servers are down; return the seconds until the next probe."""
        self.is_down = True
        pause_s, self._probe_s = self._probe_s, min(2 * self._probe_s, LAST_PROBE_S)
        return pause_s

    def come_back(self) -> None:
        """Record a successful probe. The next answers decide how long the servers stay in use."""
        self.is_down, self._num_failures, self._busy_until_s = False, 0, 0.0


class RemoteFirst:
    """The servers in `settings` and the local engine for the same settings; `user` receives both states."""

    def __init__(self, engines: EnginePool, settings: Settings, user: EngineUser) -> None:
        self._engines, self._user = engines, user
        self._local_settings = settings.model_copy(update={"remote": RemoteSettings()})
        self._loop = asyncio.get_running_loop()
        self._availability = Availability()
        self._fault = ""  # the reason that the servers do not answer, for users
        self._probe: asyncio.TimerHandle | None = None
        self._release: asyncio.TimerHandle | None = None
        self._local: EngineThread | None = None
        self._has_closed = False
        self._is_probing = False
        self._remote_user = replace(user, on_status=partial(on_loop, self._loop, self._on_remote))
        self._local_user = replace(user, on_status=lambda _status: on_loop(self._loop, self._publish))
        self._remote = engines.use(settings, self._remote_user)

    @property
    def status(self) -> EngineStatus:
        """The state of the engine that answers, and which one it is."""
        if not self._availability.is_down:
            status = self._remote.status
            if status.state != "ready" or not (servers := status.details.get("remote")):
                return status
            leaves = f"Suggestions come from {servers['servers']}, which receives {servers['leaves']}."
            return replace(status, message=leaves)
        local = self._local.status if self._local else EngineStatus()
        message = local.message or f"{self._fault} Suggestions come from this machine."
        return replace(local, message=message).with_details(remote={"answers": False, "fault": self._fault})

    def submit(self, job: Job) -> None:
        """Send a job to the engine that is to do it.

        The servers complete, unless they are down or must not see the document. They neither prefetch nor
        score edits, so the local engine does that, if it is loaded.
        """
        match job:
            case CompletionJob():
                self._complete(job)
            case PrefetchJob():
                if self._local is not None and (self._availability.is_down or not job.request.may_leave):
                    self._local.submit(replace(job, user=self._local_user))
            case EditJob():
                if self._local is None:
                    job.resolve(EditAnswer(rule="edit-needs-local-model"))
                elif refusal := self._local.status.refusal:
                    job.resolve(EditAnswer(rule=refusal))
                else:
                    self._with_local().submit(replace(job, user=self._local_user))
            case CloseJob():
                for engine in (self._remote, self._local):
                    if engine is not None:
                        engine.submit(job)

    def _complete(self, job: CompletionJob) -> None:
        if self._availability.is_down or not job.request.may_leave:
            self._complete_locally(job)
        elif refusal := self._remote.status.refusal:
            job.resolve(empty(refusal))
        elif not self._availability.may_ask(self._loop.time()):
            job.resolve(empty("servers-busy"))
        else:
            resolve = partial(on_loop, self._loop, self._on_answer, job)
            attempt = replace(job, user=self._remote_user, resolve=resolve)
            job.request.cancellation.when_cancelled(attempt.cancel)
            self._remote.submit(attempt)

    def close(self) -> None:
        """Stop using both engines."""
        self._has_closed = True
        for timer in (self._probe, self._release):
            if timer is not None:
                timer.cancel()
        self._engines.release(self._remote_user)
        self._release_local()

    def _complete_locally(self, job: CompletionJob) -> None:
        local = self._with_local()
        if refusal := local.status.refusal:
            job.resolve(empty(refusal))
            return
        attempt = replace(job, user=self._local_user)
        job.request.cancellation.when_cancelled(attempt.cancel)
        local.submit(attempt)

    def _on_answer(self, job: CompletionJob, answer: Completion | BaseException) -> None:
        """Handle the answer of the servers' engine to a job."""
        if isinstance(answer, RemoteError) and not self._has_closed:
            was_down = self._availability.is_down
            self._availability.failed(answer, self._loop.time())
            if self._availability.is_down and not was_down:
                self._go_down(str(answer))
            if self._availability.is_down and not job.request.cancellation.is_cancelled:
                self._complete_locally(job)
            else:
                job.resolve(empty("servers-busy" if answer.kind == "busy" else "servers-failed"))
            return
        if isinstance(answer, Completion):
            self._availability.answered()
        job.resolve(answer)

    def _on_remote(self, status: EngineStatus) -> None:
        """Handle a new state of the servers' engine: loading, which is also a probe, ready, or an error."""
        if self._has_closed:
            return
        if status.state == "loading":
            self._is_probing = self._availability.is_down
        elif status.state == "error":
            self._go_down(f"{status.message} {status.advice}".strip())
        elif self._is_probing:  # else it only has nothing to do
            self._availability.come_back()
            self._fault, self._is_probing = "", False
            self._user.on_notice(Notice("Suggestions come from your team's servers again."))
            if self._remote.tokens is not None:
                self._user.on_tokens(self._remote.tokens)
            self._keep_local()
        self._publish()

    def _go_down(self, fault: str) -> None:
        """Let the local engine answer from now on, and probe the servers."""
        if fault != self._fault:
            self._fault = fault
            self._user.on_notice(Notice(fault, is_problem=True))
        self._is_probing = False
        self._with_local()
        if self._probe is not None:
            self._probe.cancel()
        self._probe = self._loop.call_later(self._availability.go_down(), self._probe_servers)
        self._publish()

    def _probe_servers(self) -> None:
        """Probe the servers by loading their engine again."""
        self._probe = None
        self._engines.reload(self._remote_user)

    def _keep_local(self) -> None:
        """Keep the local engine while it is used, and for some time after the servers came back."""
        if self._release is not None:
            self._release.cancel()
            self._release = None
        if not self._availability.is_down:
            self._release = self._loop.call_later(KEEP_LOCAL_S, self._release_local)

    def _with_local(self) -> EngineThread:
        """Return the local engine; load it if necessary."""
        self._keep_local()
        if self._local is None:
            self._local = self._engines.use(self._local_settings, self._local_user)
        return self._local

    def _release_local(self) -> None:
        if self._local is not None:
            self._engines.release(self._local_user)
            self._local = self._release = None

    def _publish(self) -> None:
        if not self._has_closed:
            self._user.on_status(self.status)
