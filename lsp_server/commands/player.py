"""Starts a server, plays a typist's strokes to it, requests a completion after each, and records the answers.

Owns the clock of one replay. Must not decide what is typed or accepted, nor add
anything up.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from completion_engine.cutting.language_names import language_of_path
from completion_engine.errors import MachineError, UserError
from completion_engine.request import Progress
from lsp_server.commands.language_client import LanguageClient, PendingRequest
from lsp_server.protocol.framing import ResponseError
from lsp_server.scripted_typing.screen import USUAL_PACE_MS, Buffer, ShownSuggestion
from lsp_server.scripted_typing.typing_plan import TypingPlan
from lsp_server.scripted_typing.typist import TYPISTS, How, Step, Typist, TypistName
from lsp_server.workspace.growth import GREW

_MAX_WAIT_S = 120.0  # a server that does not answer within this time is broken
# -P keeps the current folder off the module path: it may hold modules of these names.
SERVER_COMMAND = (sys.executable, "-P", "-m", "lsp_server")
_POLL_S = 0.1
_KNOWS_GROWTH = {"experimental": {"slipstream": {"suggestionGrew": True}}}
_LOADING_S = 1800.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request, as the client received it.

    `ms` is the time from the key press to the answer; for a cancelled request, from the cancellation to the
    answer. `why` is the server's explanation: the rule, the parts, the statistics. `num_taken_chars` were
    accepted: the whole suggestion or its first words.
    """

    outcome: Literal["shown", "empty", "cancelled", "failed"]
    ms: float
    is_first: bool = False
    why: dict[str, Any] = field(default_factory=dict)
    suggestion: ShownSuggestion | None = None
    how: How | None = None
    num_taken_chars: int = 0

    @property
    def stats(self) -> dict[str, Any]:
        """The completion's stats; empty if the server has none."""
        return dict(self.why.get("stats") or {})

    def before(self, step: Step) -> Answer:
        """The answer with what the next key accepted of it."""
        if step.taken is None:
            return self
        return replace(self, how=step.taken.how, num_taken_chars=len(step.taken.text))


Watch = Callable[[Answer, Typist], Awaitable[None]]


class Player:
    """One file, typed once; it need not exist.

    `pace_ms` is the time between two key presses in the middle of a word; 0 presses the next key as soon as
    the answer arrives. `watch` is awaited after each answer, before the `person`, who
    types, reacts to it.
    """

    def __init__(  # noqa: PLR0913 - a person, a file, a plan and its pace
        self,
        client: LanguageClient,
        path: Path,
        plan: TypingPlan,
        *,
        pace_ms: float = 0.0,
        watch: Watch | None = None,
        typist: TypistName = "eager",
    ) -> None:
        self._client = client
        self._uri, self._language = path.as_uri(), language_of_path(path.name)
        self._pace_s = pace_ms / 1000
        self.watch = watch
        self.typist: TypistName = typist
        self.answers: list[Answer] = []
        self.person = TYPISTS[typist].at_start(plan)
        self.person.screen.pace_ms = pace_ms or USUAL_PACE_MS
        self._is_first = True
        self._item: dict[str, Any] = {}
        self._grew = asyncio.Event()
        self._cancelled: list[asyncio.Task[Answer]] = []

    async def play(self, is_over: Callable[[], bool] = lambda: False) -> list[Answer]:
        """Type the plan to its end, or until `is_over`; returns the answers, the cancelled ones last."""
        answers, answer, shown = self.answers, None, None
        stop_listening = self._client.on_notification(GREW, self._on_grown)
        self._client.open(self._uri, self.person.buffer.text, language=self._language)
        try:
            while not is_over() and (step := self.person.step(shown)) is not None:
                if answer is not None:
                    answers.append(answer.before(step))
                start = time.perf_counter()
                self._send(step)
                answer = await self._ask(start, step.pause)
                shown = answer.suggestion if answer is not None else None
            answers += [answer] if answer is not None else []
            answers += await asyncio.gather(*self._cancelled)
        finally:
            stop_listening()
        self._client.close(self._uri)
        return answers

    async def _ask(self, start: float, pause: float) -> Answer | None:
        """Request a completion at the cursor; None when the next key, after `pause`, comes first."""
        wait_s, pause_ms = self._pace_s * pause or _MAX_WAIT_S, self.person.screen.pace_ms * pause
        self._grew.clear()
        request = self._client.ask(self._uri, self.person.buffer.position)
        is_first, self._is_first = self._is_first, False
        done, _ = await asyncio.wait([request.answer], timeout=wait_s)
        ms = (time.perf_counter() - start) * 1000
        if not done:
            self._client.cancel(request.id)
            self._cancelled.append(asyncio.create_task(_cancelled_answer(request)))
            self.person.see(None, pause_ms)
            return None
        answer = self._read(request, ms)
        if answer.outcome in {"shown", "empty"}:
            place = {"textDocument": {"uri": self._uri}, "position": self.person.buffer.position}
            why = await self._client.request("slipstream/why", place)
            answer = replace(answer, why=why or {}, is_first=is_first)
        if self.watch is not None:
            await self.watch(answer, self.person)
        if not self._pace_s:
            self.person.see(answer.suggestion, max(0.0, pause_ms - ms))
            return answer
        return await self._look(answer, start + ms / 1e3, start + wait_s)

    async def _look(self, answer: Answer, since_s: float, until_s: float) -> Answer:
        """Look at an answer until the next key. A longer text takes its place if the suggestion grows."""
        request: PendingRequest | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until_s - time.perf_counter())):
                while await self._grew.wait():
                    self._grew.clear()
                    request = self._client.ask(self._uri, self.person.buffer.position)
                    await asyncio.wait([request.answer])
                    now_s = time.perf_counter()
                    self.person.see(answer.suggestion, (now_s - since_s) * 1e3)
                    grown, since_s = self._read(request, answer.ms), now_s
                    answer = replace(answer, outcome=grown.outcome, suggestion=grown.suggestion)
        if request is not None and not request.answer.done():
            self._client.cancel(request.id)
        self.person.see(answer.suggestion, max(0.0, (until_s - since_s) * 1e3))
        return answer

    def _on_grown(self, params: Mapping[str, Any]) -> None:
        here = self._uri, self.person.buffer.position
        if (params["textDocument"]["uri"], params["position"]) == here:
            self._grew.set()

    def _read(self, request: PendingRequest, ms: float) -> Answer:
        try:
            result = request.answer.result()
        except ResponseError as error:
            return Answer("cancelled" if error.is_cancelled else "failed", ms)
        items = result["items"] if isinstance(result, dict) else result or []
        suggestion = shown_suggestion(items[0], self.person.buffer) if items else None
        if suggestion is None:
            return Answer("empty", ms)
        self._item = items[0]
        self._client.notify("textDocument/didShowCompletion", {"item": self._item})
        return Answer("shown", ms, suggestion=suggestion)

    def _send(self, step: Step) -> None:
        """Send the change of a key; after one that accepts, the notification of it, as an editor does."""
        if step.change is not None:
            self._client.change(self._uri, [step.change])
        if (taken := step.taken) is None:
            return
        if taken.how == "word":
            params = {"item": self._item, "acceptedLength": len(taken.text.encode("utf-16-le")) // 2}
            self._client.notify("textDocument/didPartiallyAcceptCompletion", params)
        elif command := self._item.get("command"):
            arguments = {"command": command["command"], "arguments": command.get("arguments", [])}
            self._client.send("workspace/executeCommand", arguments)


def shown_suggestion(item: dict[str, Any], buffer: Buffer) -> ShownSuggestion | None:
    """Return the shown part of an inline completion item; None if it does not fit the text at the cursor.

    If its range begins left of the cursor, the item's text must begin with the text there.
    """
    text = item["insertText"]
    text = text["value"] if isinstance(text, dict) else text
    span, cursor = item.get("range"), len(buffer.left)
    start, end = (buffer.offset_of(span[side]) if span else cursor for side in ("start", "end"))
    typed = buffer.left[start:]
    if start > cursor or end < cursor or not text.startswith(typed):
        return None
    return ShownSuggestion(text[len(typed) :], end - cursor)


async def _cancelled_answer(request: PendingRequest) -> Answer:
    start = time.perf_counter()
    await asyncio.wait([request.answer], timeout=_MAX_WAIT_S)
    return Answer("cancelled", (time.perf_counter() - start) * 1000)


@asynccontextmanager
async def running_server(
    root: Path,
    *,
    settings: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    command: Sequence[str] = SERVER_COMMAND,
) -> AsyncIterator[LanguageClient]:
    """A client of a new server process that works in `root`; the process ends with the block.

    The client knows that suggestions grow, unless its `capabilities` say otherwise.
    """
    async with await LanguageClient.start(command, cwd=root, env=env) as client:
        await client.initialize(
            root, settings=settings, capabilities={**_KNOWS_GROWTH, **(capabilities or {})}
        )
        yield client


async def stats_of(client: LanguageClient) -> dict[str, Any]:
    """The server's state and counters."""
    return dict(await client.request("slipstream/stats", {}))


async def wait_until_ready(client: LanguageClient, report: Progress = lambda *_: None) -> dict[str, Any]:
    """Wait for the model, and for the indexes; returns the server's last stats.

    Raises UserError with the server's own message when it cannot load, MachineError after half an hour.
    """
    start = time.monotonic()
    while True:
        stats = await stats_of(client)
        if stats["state"] == "error":
            raise UserError(stats["message"] or "The engine failed.", advice=stats["advice"])
        building = [one for one in stats["index"] if one["state"] in {"waiting", "building"}]
        if stats["state"] == "loading":
            if time.monotonic() - start > _LOADING_S:
                raise MachineError(f"The model is not loaded after {_LOADING_S:.0f} s.")
            progress = stats["progress"]
            report(stats["message"] or "Loading the model", progress["done"], progress["total"])
        elif not building:
            return stats
        for index in building:
            progress = index["progress"]
            report(f"Indexing {Path(index['folder']).name}", progress["done"], progress["total"])
        await asyncio.sleep(_POLL_S)
