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
from lsp_server.engine_thread import EngineStatus, Load
from lsp_server.folder_worker import FolderReport, TokenSource
from lsp_server.indexing_job import IndexingJobs
from lsp_server.progress import WorkDone
from lsp_server.protocol import SlipstreamProtocol
from lsp_server.scheduling import Scheduler
from lsp_server.session import Session
from lsp_server.settings import Settings
from lsp_server.transport import Writer, start_reader

logger = logging.getLogger(__name__)

# A way to load the engine that the settings ask for; says which tokens it speaks as soon as it knows.
LoadFor = Callable[[Settings, Callable[[TokenSource], None]], Load]


class SlipstreamServer(LanguageServer):
    """One editor's server. `has_stopped` once all its threads have ended."""

    protocol: SlipstreamProtocol
    scheduler: Scheduler
    indexing: IndexingJobs
    has_stopped = False

    def __init__(self, version: str, load_for: LoadFor) -> None:
        super().__init__(
            "slipstream", version, protocol_cls=SlipstreamProtocol, converter_factory=default_converter
        )
        self.session = Session()
        self._load_for = load_for
        self._loaded: tuple[object, ...] | None = None
        self._progress: dict[object, WorkDone] = {}
        self._shown_status: dict[str, Any] = {}
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, stdin: BinaryIO, stdout: BinaryIO) -> int:
        """Answer messages until the client goes; returns the exit code, 0 after a proper `shutdown`."""
        inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        deliver = self._from_thread(inbox.put_nowait)
        writer = Writer(stdout, on_broken=lambda: deliver(None))
        self.protocol.set_writer(writer)
        self.scheduler = Scheduler(self.session.measurements, self._on_engine_status, self._on_failure)
        self.indexing = IndexingJobs(
            on_report=self._from_thread(self._on_index_report),
            is_engine_busy=lambda: self.scheduler.is_busy,
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
        wanted = (
            settings.target,
            settings.drafters,
            settings.draft_model,
            settings.device,
            settings.dtype,
        )
        if wanted != self._loaded:
            self._loaded = wanted
            self.scheduler.load(self._load_for(settings, self.indexing.set_tokens))
        of = self.session.configuration.of
        self.indexing.set_folders({folder: of(folder).index for folder in self.session.folders.values()})

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
        shown = conversion.shown_status(status)
        if shown != self._shown_status:
            self._shown_status = shown
            self.protocol.notify("didChangeStatus", shown)
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
        for task in tuple(self._tasks):
            task.cancel()
        stopped = await asyncio.gather(self.scheduler.stop(), asyncio.to_thread(self.indexing.stop))
        self.has_stopped = all(stopped)
