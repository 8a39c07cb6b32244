"""The server: one session, one scheduler, the repositories' indexes, and the conversation with the editor.

Owns their life from `initialized` to the end, and all notifications to the editor. The handlers answer
requests.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from completion_engine.errors import SlipstreamError
from completion_engine.request import Cancellation
from completion_engine.text_window import without_surrogates
from lsp_server.engine.engine_types import EngineStatus, EngineUser, Notice
from lsp_server.engine.pool import EnginePool
from lsp_server.engine.scheduler import Scheduler
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.adapter import SlipstreamProtocol
from lsp_server.protocol.client_streams import ByteSink, ClientProcess, Inbox, Writer, start_reader
from lsp_server.protocol.notifications import Messages, ProgressBars, StatusLine
from lsp_server.protocol.parsing import converter, parse
from lsp_server.sharing.supervision import on_loop, on_own_thread
from lsp_server.workspace.folder_indexes import FolderIndexes
from lsp_server.workspace.growth import GREW, SuggestionGrowth
from lsp_server.workspace.leave_rules import LeaveRules
from lsp_server.workspace.measurements import FolderReport
from lsp_server.workspace.open_files import FolderReadings, OpenFiles
from lsp_server.workspace.prefetch import ContextJobs, ContextQuery, PrefetchTimer
from lsp_server.workspace.session import Session
from lsp_server.workspace.usage_by_day import UsageByDay, UsageRecorder, usage_path

logger = logging.getLogger(__name__)

# Handlers end at their next step after a request to end.
END_S = 1.0
# An engine or an index for which the system has no thread is begun again after this.
BEGIN_AGAIN_S = 1.0

_KINDS = {False: types.MessageType.Info, True: types.MessageType.Warning}


class SlipstreamServer(LanguageServer):
    """One editor's server, on an engine out of `engines`. `has_stopped` once all its threads have ended.

    `has_ended` from the moment on that its client is gone: whatever was under way then begins nothing more.
    `window` tells its documents from those of other servers on the same engine.
    """

    protocol: SlipstreamProtocol
    scheduler: Scheduler
    indexes: FolderIndexes
    contexts: ContextJobs
    open_files: OpenFiles
    usage: UsageRecorder | None = None
    has_ended = False
    has_stopped = False

    def __init__(self, version: str, engines: EnginePool, window: int = 0) -> None:
        super().__init__(
            "slipstream",
            version,
            protocol_cls=SlipstreamProtocol,
            converter_factory=converter,
            notebook_document_sync=lsp_conversion.ALL_NOTEBOOKS,
        )
        self.session = Session(window=window)
        self._engines = engines
        self._progress = ProgressBars(self)
        self._status_line = StatusLine(self._send_status)
        self.messages = Messages(self._show)
        self._unfinished: list[Awaitable[None]] = []
        self._hang_up: Callable[[], None] = lambda: None
        self._watch: asyncio.Task[None] | None = None
        self._recording: asyncio.Task[None] | None = None
        self.readings, self.leave_rules = FolderReadings(), LeaveRules()
        self.growth = SuggestionGrowth(self.session, lambda grown: self.protocol.notify(GREW, grown))
        self.prefetch_timer = PrefetchTimer()
        self.when_indexed: Callable[[], None] | None = None  # what waits for an index
        self._following: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None

    async def serve(self, stdin: BinaryIO, stdout: ByteSink) -> int:
        """Answer messages until the client goes; returns the exit code, 0 after a proper `shutdown`."""
        inbox: Inbox[Any] = Inbox()
        self._hang_up = inbox.close
        writer = Writer(stdout, on_broken=inbox.close)
        self.protocol.set_writer(writer)
        self._begin()

        def deliver(body: bytes) -> bool:
            return all(map(inbox.put, parse(body)))

        try:
            start_reader(stdin, deliver, inbox.close)
            while (message := await inbox.get()) is not None:
                self.protocol.receive(message)
                if self.protocol.has_exited:
                    break
                # An async handler takes its snapshot in its first step: before the next message changes it.
                await asyncio.sleep(0)
                if not await self.finish_work():
                    self.protocol.on_unhandled(message)
                await self.protocol.has_room()
        finally:
            inbox.close()
            if self._watch is not None:
                self._watch.cancel()
            try:
                await self._end()
            finally:
                await on_own_thread(writer.close)
                self.protocol.release()
        return 0 if self.protocol.is_shut_down else 1

    def watch_client(self, pid: int) -> None:
        """End the conversation when the client's process ends, although its pipe may stay open."""
        client = ClientProcess.find(pid)
        if client is not None and self._watch is None:
            self._watch = asyncio.create_task(self._hang_up_after(client))

    def keep_usage(self) -> None:
        """Keep this editor's statistics by day."""
        if self.usage is None:
            self.usage = UsageRecorder(self.session.measurements.usage, UsageByDay(usage_path()))
            self._recording = asyncio.create_task(self.usage.run())

    async def _hang_up_after(self, client: ClientProcess) -> None:
        await client.wait()
        logger.info("The client's process %d has ended", client.pid)
        self._hang_up()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self.indexes = FolderIndexes(
            on_report=partial(on_loop, loop, self._on_index_report),
            is_engine_busy=lambda: self._engines.is_busy,
        )
        self.open_files = OpenFiles(
            self.session, self.indexes, self.messages.show_of_file, self._on_file, self.apply_settings
        )
        self.contexts = ContextJobs(self._on_context)
        events = self._on_engine_status, self._on_failure, self._on_notice, self.growth.grew
        user = EngineUser(*events, on_tokens=self.indexes.set_tokens)
        self.scheduler = Scheduler(self.session.measurements, self._engines, user)

    def finish_before_next(self, work: Awaitable[None]) -> None:
        """Do this work, which waits for another thread, before the client's next message is handled."""
        self._unfinished.append(work)

    async def finish_work(self) -> bool:
        """Wait for the work that the last message left; return whether all of it succeeded."""
        has_succeeded = True
        while self._unfinished:
            try:
                await self._unfinished.pop(0)
            except Exception:
                logger.exception("A message could not be handled to its end")
                has_succeeded = False
        return has_succeeded

    def follow_edits(self, uri: str) -> None:
        """Follow the edits of an open document, until a rule is found that keeps it out of the index.

        They are used only after `check_followed`, which needs to know which file the document is.
        """
        if self.session.location_of(uri).is_secret:
            return
        self.session.edits.allow(uri)
        if uri in self.session.unidentified:
            return
        task = asyncio.get_running_loop().create_task(self.check_followed(uri))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def check_followed(self, uri: str) -> None:
        """Follow the edits of a document no more if a rule keeps it out of the index by now."""
        exclude = self.session.settings_for(uri).index.exclude
        if not await self.leave_rules.allow(self.session.location_of(uri), exclude):
            self.session.edits.forget(uri)

    def apply_settings(self) -> None:
        """Bring engine and indexes in line with the settings as they are now; nothing once all has ended.

        Tries again later if the system has no thread for one of them.
        """
        if self.has_ended:
            return
        if self._again is not None:
            self._again.cancel()
        self.contexts.clear()
        wanted = {folder: self.session.index_options(folder) for folder in self.session.folders.paths}
        has_begun = self.indexes.set_folders({folder: it for folder, it in wanted.items() if it})
        try:
            self.scheduler.use(self.session.configuration.settings)
        except RuntimeError as error:
            logger.warning("The engine cannot be started yet: %s", error)
            has_begun = False
        if not has_begun:
            self._again = asyncio.get_running_loop().call_later(BEGIN_AGAIN_S, self.apply_settings)
        self.show_status()

    def show_status(self) -> None:
        """Bring the editor's status line in line with the engine, the settings and the focused document."""
        refusal = self.session.refusal_of_focused()
        self._status_line.show(lsp_conversion.shown_status(self.scheduler.status, refusal))

    def _send_status(self, status: dict[str, Any]) -> None:
        self.protocol.notify("didChangeStatus", status)
        if self.session.is_older_client:
            self.protocol.notify("statusNotification", lsp_conversion.older_status(status))

    def _show(self, kind: types.MessageType, sentence: str) -> None:
        sentence = without_surrogates(sentence)  # it may name a document that the client named so
        logger.warning("%s", sentence)
        self.window_show_message(types.ShowMessageParams(type=kind, message=f"Slipstream: {sentence}"))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A handler failed, or a message could not be sent: that is ours to look at, not the user's."""
        logger.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)

    def _on_engine_status(self, status: EngineStatus) -> None:
        if self.has_ended:
            return
        self.show_status()
        if status.state == "loading":
            self._progress.report("engine", "Slipstream: model", status.message, status.done, status.total)
            return
        self._progress.end("engine", status.message)
        if status.state == "error":
            self.messages.show([f"{status.message} {status.advice}".strip()], types.MessageType.Error)

    def _on_failure(self, error: BaseException) -> None:
        """An error that should not be: the log gets all of it, once per kind."""
        if self.has_ended:
            return
        if isinstance(error, SlipstreamError):
            self.messages.show([str(error)], types.MessageType.Error)
            return
        self.session.measurements.num_failures += 1
        trace = "".join(traceback.format_exception(error))
        if self.messages.is_new(trace):
            logger.error("A bug of ours, the server goes on:\n%s", trace)
            self.window_log_message(
                types.LogMessageParams(type=types.MessageType.Error, message=f"Slipstream: {trace}")
            )

    def _on_notice(self, notice: Notice) -> None:
        if not self.has_ended:
            self.messages.show([notice.message], _KINDS[notice.is_problem])

    def _on_file(self, uri: str) -> None:
        """It is known which file an open document is, or it is another one."""
        self.follow_edits(uri)
        self.show_status()

    def _on_context(self, query: ContextQuery) -> None:
        """A document's context is another one: an idle engine prepares it, unless the user typed."""
        if not self.has_ended and query.is_current():
            context = self.contexts.of(query.request)
            self.scheduler.prefetch(replace(query.request, context=context, cancellation=Cancellation()))

    def _on_index_report(self, report: FolderReport) -> None:
        if self.has_ended:
            return
        if report.problem:
            self.messages.show([report.problem], types.MessageType.Warning)
        if report.state == "building":
            title = f"Slipstream: {report.folder.name}"
            self._progress.report(report.folder, title, report.path, report.done, report.total)
        else:
            self._progress.end(report.folder, "")
            if report.state == "ready" and (call := self.when_indexed) is not None:
                call()

    async def _end(self) -> None:
        """Stop everything that works, within seconds; nothing begins after this."""
        self.has_ended = True
        self.open_files.end()
        self.prefetch_timer.stop()
        self._status_line.stop()
        self.messages.stop()
        await self.protocol.end(END_S)
        for uri in self.session.documents:
            self.scheduler.forget(self.session.document_key(uri))
        self.scheduler.close()
        if self.usage is not None and self._recording is not None:
            self._recording.cancel()
            await self.usage.record()
        has_ended = await self.contexts.stop()
        self.has_stopped = await on_own_thread(self.indexes.stop) and has_ended
