"""One file typed once with one program: its counts and times (ms), and the typing with llama.vim."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from lsp_server.commands.player import Answer
from lsp_server.scripted_typing.screen import Buffer, ScreenLog, ShownSuggestion
from lsp_server.scripted_typing.typing_plan import TypingPlan
from lsp_server.scripted_typing.typist import TYPISTS, Typist, TypistName
from tests.benchmarks.keystrokes.vim_client import LlamaVim
from tests.benchmarks.keystrokes.vim_context import Cursor
from tests.benchmarks.replay.shown_wrong import ShownWrong


@dataclass(frozen=True, slots=True)
class FileRun:
    """The keys of one file. A key that accepts a suggestion counts as one.

    `shown_ms` are the times from a key to its suggestion, `empty_ms` to the answer that there is none.
    `num_late` keys had no answer when the next one came. `first_ms` is the time from the first key to the
    first suggestion on the screen, None without one. `screen` are the sums of a `ScreenLog`.
    """

    system: str
    file: str
    num_chars: int
    num_not_typed: int
    num_wrong: int
    num_accepted: int
    num_late: int
    first_ms: float | None
    shown_ms: tuple[float, ...]
    empty_ms: tuple[float, ...]
    typist: str = "eager"
    screen: Mapping[str, float] = field(default_factory=dict)

    @property
    def num_keys(self) -> int:
        """Number of keys."""
        return len(self.shown_ms) + len(self.empty_ms) + self.num_late

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> FileRun:
        """The run that `as_dict` wrote."""
        return cls(**{**found, "shown_ms": tuple(found["shown_ms"]), "empty_ms": tuple(found["empty_ms"])})


class Watcher:
    """Adds up what is shown while a file is typed; `watch` fits a `Player`."""

    def __init__(self) -> None:
        self._wrong, self._screen = ShownWrong(), ScreenLog()
        self._first_at: float | None = None
        self._start = time.perf_counter()

    async def watch(self, answer: Answer, typist: Typist) -> None:
        """Count one answer, before the typist reacts to it."""
        self._wrong.add(answer, typist)
        self._screen = typist.screen
        if answer.suggestion is not None and self._first_at is None:
            self._first_at = time.perf_counter()

    def saw_first_at(self, moment: float) -> None:
        """Note when the first suggestion was shown; later calls change nothing."""
        self._first_at = self._first_at or moment

    def run_of(self, system: str, file: str, plan: TypingPlan, answers: Sequence[Answer]) -> FileRun:
        """The counts and times of a file's answers."""
        times = {
            kind: tuple(round(answer.ms, 1) for answer in answers if answer.outcome == kind)
            for kind in ("shown", "empty")
        }
        return FileRun(
            system,
            file,
            plan.num_chars,
            num_not_typed=sum(answer.num_taken_chars for answer in answers),
            num_wrong=self._wrong.num_chars_wrong,
            num_accepted=sum(answer.how is not None for answer in answers),
            num_late=sum(answer.outcome in {"cancelled", "failed"} for answer in answers),
            first_ms=None if self._first_at is None else round((self._first_at - self._start) * 1000, 1),
            shown_ms=times["shown"],
            empty_ms=times["empty"],
            screen=self._screen.sums(),
        )


Screen = Callable[[Typist, float, float], Awaitable[Answer]]


async def type_plan(typist: Typist, pace_ms: float, watcher: Watcher, screen: Screen) -> list[Answer]:
    """Press a plan's keys at their time, whether they are answered or not, and accept what is right.

    `screen` receives each change of the buffer with its time (`time.perf_counter`) and the milliseconds until
    the next key; it returns what is shown at the end of them.
    """
    answers: list[Answer] = []
    answer: Answer | None = None
    typist.screen.pace_ms = pace_ms
    while (step := typist.step(answer.suggestion if answer is not None else None)) is not None:
        answers += [answer.before(step)] if answer is not None else []
        start, pause_ms = time.perf_counter(), step.pause * pace_ms
        answer = await screen(typist, start, pause_ms)
        typist.see(answer.suggestion, max(0.0, pause_ms - answer.ms))
        await watcher.watch(answer, typist)
    return [*answers, answer] if answer is not None else answers


async def rest_of(start: float, pause_ms: float) -> None:
    """Wait until the next key is due."""
    await asyncio.sleep(max(0.0, start + pause_ms / 1000 - time.perf_counter()))


async def type_with_llama_vim(
    client: LlamaVim, plan: TypingPlan, pace_ms: float, watcher: Watcher, typist: TypistName = "eager"
) -> list[Answer]:
    """Type a plan in an editor with llama.vim's requests."""

    async def screen(typist: Typist, start: float, pause_ms: float) -> Answer:
        client.moved(*_screen(typist.buffer))
        await rest_of(start, pause_ms)
        if client.shown_at is not None and client.hint is not None:
            watcher.saw_first_at(client.shown_at)
            suggestion = ShownSuggestion(client.hint.text, 0)
            return Answer("shown", (client.shown_at - start) * 1000, suggestion=suggestion)
        if client.settled_at is not None:
            return Answer("empty", (client.settled_at - start) * 1000)
        return Answer("cancelled", pause_ms)

    ring = asyncio.create_task(client.tend_ring())
    try:
        person = TYPISTS[typist].at_start(plan)
        answers = await type_plan(person, pace_ms, watcher, screen)
        await client.finish()
    finally:
        ring.cancel()
        with suppress(asyncio.CancelledError):
            await ring
    return answers


def _screen(buffer: Buffer) -> tuple[list[str], Cursor]:
    """The lines of an editor's buffer, where a last line end begins no line, and the cursor."""
    before = buffer.left.split("\n")
    cursor = Cursor(len(before) - 1, len(before[-1]))
    lines = buffer.text.split("\n")
    return lines[:-1] if not lines[-1] and cursor.row < len(lines) - 1 else lines, cursor
