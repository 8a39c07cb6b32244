"""The server: one session, one scheduler, the repositories' indexes, and the conversation with the editor.

Owns their life from `initialized` to the end, and what the editor is told outside of answers. Must not
know how a request is answered: that is the handlers' part.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from completion_engine.errors import SlipstreamError
from lsp_server import conversion
from lsp_server.engine_pool import EnginePool
from lsp_server.engine_work import EngineStatus
from lsp_server.folder_worker import FolderReport
from lsp_server.indexing_job import IndexingJobs
from lsp_server.progress import WorkDone
from lsp_server.protocol import SlipstreamProtocol
from lsp_server.scheduling import Scheduler
from lsp_server.session import Session
from lsp_server.status_line import StatusLine
from lsp_server.transport import ByteSink, Writer, start_reader

logger = logging.getLogger(__name__)


class SlipstreamServer(LanguageServer):
    """One editor's server, on an engine out of `engines`. `has_stopped` once all its threads have ended.

    `window` tells its documents from those of other servers on the same engine.
    """

    protocol: SlipstreamProtocol
    scheduler: Scheduler
    indexing: IndexingJobs
    has_stopped = False

    def __init__(self, version: str, engines: EnginePool, window: int = 0) -> None:
        super().__init__(
            "slipstream", version, protocol_cls=SlipstreamProtocol, converter_factory=default_converter
        )
        self.session = Session(window=window)
        self._engines = engines
        self._progress: dict[object, WorkDone] = {}
        self._status_line = StatusLine(lambda status: self.protocol.notify("didChangeStatus", status))
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, stdin: BinaryIO, stdout: ByteSink) -> int:
        """Answer messages until the client goes; returns the exit code, 0 after a proper `shutdown`."""
        inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        deliver = self._from_thread(inbox.put_nowait)
        writer = Writer(stdout, on_broken=lambda: deliver(None))
        self.protocol.set_writer(writer)
        self.indexing = IndexingJobs(
            on_report=self._from_thread(self._on_index_report),
            is_engine_busy=lambda: self._engines.is_busy,
        )
        self.scheduler = Scheduler(
            self.session.measurements,
            self._engines,
            self._on_engine_status,
            self._on_failure,
            self.indexing.set_tokens,
        )
        start_reader(stdin, deliver)
        while (body := await inbox.get()) is not None:
            self.protocol.receive(body)
            if self.protocol.has_exited:
                break
            # An async handler takes its snapshot in its first step: before the next message changes it.
            await asyncio.sleep(0)
        await self._end()
        writer.close()
        return 0 if self.protocol.is_shut_down else 1

    def _from_thread(self, function: Callable[[Any], None]) -> Callable[[Any], None]:
        """`function`, to be called on the loop when it is called on any other thread."""
        loop = asyncio.get_running_loop()

        def call(value: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended
                loop.call_soon_threadsafe(function, value)

        return call

    def apply_settings(self) -> None:
        """Bring engine and indexes in line with the settings as they are now."""
        settings = self.session.configuration.settings
        self.scheduler.use(settings)
        of = self.session.configuration.of
        self.indexing.set_folders({folder: of(folder).index for folder in self.session.folders.values()})
        self.show_status()

    def show_status(self) -> None:
        """Bring the editor's status line in line with the engine, the settings and the focused document."""
        refusal = self.session.refusal_of_focused()
        self._status_line.show(conversion.shown_status(self.scheduler.status, refusal))

    def tell(self, problems: tuple[str, ...] | list[str], kind: types.MessageType) -> None:
        """Show each sentence to the user, once in this server's life."""
        for problem in problems:
            logger.warning("%s", problem)
            if problem not in self._told:
                self._told.add(problem)
                self.window_show_message(types.ShowMessageParams(type=kind, message=f"Slipstream: {problem}"))

    def run_task(self, coroutine: Any) -> None:
        """Run a coroutine beside the messages; its failure is logged."""
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A handler failed, or a message could not be sent: that is ours to look at, not the user's."""
        logger.error("%s: %s", getattr(source, "__name__", source), error)

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    def _on_engine_status(self, status: EngineStatus) -> None:
        self.show_status()
        if status.state == "loading":
            self._report_progress("engine", "Slipstream: model", status.message, status.done, status.total)
            return
        self._end_progress("engine", status.message)
        if status.state == "error":
            self.tell([f"{status.message} {status.advice}".strip()], types.MessageType.Error)

    def _on_failure(self, error: BaseException) -> None:
        """An error that should not be: the log gets all of it, once per kind."""
        if isinstance(error, SlipstreamError):
            self.tell([str(error)], types.MessageType.Error)
            return
        self.session.measurements.num_failures += 1
        trace = "".join(traceback.format_exception(error))
        if trace not in self._told:
            self._told.add(trace)
            logger.error("A bug of ours, the server goes on:\n%s", trace)
            self.window_log_message(
                types.LogMessageParams(type=types.MessageType.Error, message=f"Slipstream: {trace}")
            )

    def _on_index_report(self, report: FolderReport) -> None:
        if report.problem:
            self.tell([report.problem], types.MessageType.Warning)
        if report.state == "building":
            title = f"Slipstream: {report.folder.name}"
            self._report_progress(report.folder, title, report.path, report.done, report.total)
        else:
            self._end_progress(report.folder, "")

    def _report_progress(self, key: object, title: str, message: str, done: int, total: int) -> None:
        if key not in self._progress:
            self._progress[key] = WorkDone(self, title)
        self._progress[key].report(message, done, total)

    def _end_progress(self, key: object, message: str) -> None:
        if (progress := self._progress.pop(key, None)) is not None:
            progress.end(message)

    async def _end(self) -> None:
        """Stop everything that works, within seconds."""
        self._status_line.stop()
        for task in tuple(self._tasks):
            task.cancel()
        for uri in self.session.documents:
            self.scheduler.forget(self.session.document_key(uri))
        self.scheduler.close()
        self.has_stopped = await asyncio.to_thread(self.indexing.stop)
