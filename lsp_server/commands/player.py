"""Plays a typist's strokes to a running server, asks for a completion after each, and notes what came.

Owns the clock of one replay. Must not decide what is typed or taken, nor add anything up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lsp_server.commands.language_client import LanguageClient, PendingRequest
from lsp_server.commands.text_buffer import Buffer
from lsp_server.commands.typing_plan import TypingPlan
from lsp_server.commands.typist import AcceptKey, How, ShownSuggestion, Typist
from lsp_server.protocol.framing import ResponseError

AnswerKind = Literal["shown", "empty", "cancelled", "failed"]
AUTOMATIC = 2

# A server that says nothing for this long is broken; nobody would wait.
MAX_WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request brought, at the client's end of the wire.

    `ms` is the time from the key press to the answer; for a cancelled one, from the cancellation to the
    answer. `why` is what the server says about the place: rule, pieces, stats. `num_taken_chars` were
    accepted, all of the suggestion or its first words; `num_wrong_chars` were shown, will not be in the file,
    and did not stand on the screen already. Behind what is shown the file's line has `num_left_chars` more,
    if it is right.
    """

    outcome: AnswerKind
    ms: float
    is_first: bool = False
    why: dict[str, Any] = field(default_factory=dict)
    suggestion: ShownSuggestion | None = None
    how: How | None = None
    num_taken_chars: int = 0
    num_wrong_chars: int = 0
    num_left_chars: int = 0

    @property
    def is_cut(self) -> bool:
        """Whether a deadline cut short what is shown."""
        return self.outcome == "shown" and self.stats.get("finish_reason") == "deadline"

    @property
    def stats(self) -> dict[str, Any]:
        """The completion's stats; empty where the server knows none."""
        return dict(self.why.get("stats") or {})


@dataclass(frozen=True, slots=True)
class Target:
    """The document that is typed into."""

    uri: str
    language: str


Watch = Callable[[Answer, Typist], Awaitable[None]]


async def _look_away(_answer: Answer, _typist: Typist) -> None:
    return


class Player:
    """One file, typed once.

    `pace_ms` is the time between two key presses in the middle of a word; 0 presses the next key as soon
    as the answer is there. `watch` is awaited after every answer, before anything is made of it.
    """

    def __init__(
        self,
        client: LanguageClient,
        target: Target,
        plan: TypingPlan,
        *,
        pace_ms: float = 0.0,
        watch: Watch = _look_away,
    ) -> None:
        self._client = client
        self._target = target
        self._pace_s = pace_ms / 1000
        self._watch = watch
        self._typist = Typist.at_start(plan, Buffer("", ""))
        self._is_first = True
        self._wrong_part = (0, "")
        self._item: dict[str, Any] = {}
        self._cancelled: list[asyncio.Task[Answer]] = []

    async def play(self) -> list[Answer]:
        """Type the plan to its end; returns the answers, the cancelled ones last."""
        answers: list[Answer] = []
        self._client.open(self._target.uri, self._typist.buffer.text, language=self._target.language)
        while (stroke := self._typist.next_stroke) is not None:
            start = time.perf_counter()
            self._send_change(self._typist.press())
            answer = await self._ask(start, wait_s=self._pause_s(stroke.pause))
            while answer is not None:
                taken = answer.suggestion and self._typist.consider(answer.suggestion)
                if not taken:
                    answers.append(answer)
                    break
                answers.append(replace(answer, how=taken.how, num_taken_chars=len(taken.text)))
                start = time.perf_counter()
                self._take(taken)
                answer = await self._ask(start, wait_s=self._pause_s(2.0))
        cancelled = await asyncio.gather(*self._cancelled)
        self._client.close(self._target.uri)
        return answers + cancelled

    def _pause_s(self, pause: float) -> float:
        return self._pace_s * pause or MAX_WAIT_S

    def _send_change(self, change: dict[str, Any] | None) -> None:
        if change is not None:
            self._client.change(self._target.uri, [change])

    async def _ask(self, start: float, *, wait_s: float) -> Answer | None:
        """Ask for a completion at the cursor; None when the next key comes first."""
        place = {"textDocument": {"uri": self._target.uri}, "position": self._typist.buffer.position}
        request = self._client.send(
            "textDocument/inlineCompletion", {**place, "context": {"triggerKind": AUTOMATIC}}
        )
        is_first, self._is_first = self._is_first, False
        done, _ = await asyncio.wait([request.answer], timeout=wait_s)
        ms = (time.perf_counter() - start) * 1000
        if not done:
            self._client.cancel(request.id)
            self._cancelled.append(asyncio.create_task(_cancelled_answer(request)))
            return None
        answer = self._read(request, ms)
        if answer.outcome in {"shown", "empty"}:
            why = await self._client.request("slipstream/why", place)
            answer = replace(answer, why=why or {}, is_first=is_first)
        await self._watch(answer, self._typist)
        if self._pace_s:
            await asyncio.sleep(max(0.0, start + wait_s - time.perf_counter()))
        return answer

    def _read(self, request: PendingRequest, ms: float) -> Answer:
        try:
            result = request.answer.result()
        except ResponseError as error:
            return Answer("cancelled" if error.is_cancelled else "failed", ms)
        items = result["items"] if isinstance(result, dict) else result or []
        suggestion = shown_suggestion(items[0], self._typist.buffer) if items else None
        if suggestion is None:
            return Answer("empty", ms)
        self._item = items[0]
        self._client.notify("textDocument/didShowCompletion", {"item": self._item})
        seen, self._wrong_part = self._wrong_part, self._typist.wrong_part(suggestion)
        num_wrong = len(self._wrong_part[1]) if self._wrong_part != seen else 0
        num_left = self._typist.num_left_of_line(suggestion)
        return Answer("shown", ms, suggestion=suggestion, num_wrong_chars=num_wrong, num_left_chars=num_left)

    def _take(self, taken: AcceptKey) -> None:
        """Accept as an editor does: the change first, then word of it."""
        self._send_change(self._typist.accept(taken))
        if taken.how == "word":
            params = {"item": self._item, "acceptedLength": len(taken.text.encode("utf-16-le")) // 2}
            self._client.notify("textDocument/didPartiallyAcceptCompletion", params)
        elif command := self._item.get("command"):
            arguments = {"command": command["command"], "arguments": command.get("arguments", [])}
            self._client.send("workspace/executeCommand", arguments)


async def _cancelled_answer(request: PendingRequest) -> Answer:
    """Wait for the answer to a request that was cancelled just now."""
    start = time.perf_counter()
    await asyncio.wait([request.answer], timeout=MAX_WAIT_S)
    return Answer("cancelled", (time.perf_counter() - start) * 1000)


def shown_suggestion(item: dict[str, Any], buffer: Buffer) -> ShownSuggestion | None:
    """What an editor shows of an inline completion item; None when it does not fit the text at the cursor.

    A range that begins left of the cursor must be continued by the item's text.
    """
    text = item["insertText"]
    text = text["value"] if isinstance(text, dict) else text
    place = item.get("range")
    cursor = len(buffer.left)
    start = buffer.offset_of(place["start"]) if place else cursor
    end = buffer.offset_of(place["end"]) if place else cursor
    typed = buffer.left[start:]
    if start > cursor or end < cursor or not text.startswith(typed):
        return None
    return ShownSuggestion(text[len(typed) :], end - cursor)
