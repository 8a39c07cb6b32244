"""Tokens a second that a team's servers write, for one stream and for several beside each other.

Each stream has a connection and a session of its own, so they spread over the replicas. One that
breaks off is gone on with as the completer does; one that cannot is lost, and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from completion_engine.decoding.ending import Limits, NoRules
from completion_engine.decoding.reuse import Continuation
from completion_engine.errors import RemoteError
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.remote_writing import RemoteWriting
from completion_engine.remote.vllm_client import CompletionQuery, QueryNames, VllmClient
from completion_engine.request import Cancellation, CompletionStats

PATIENCE_S = 120.0
_LOOK_MS = 2.0  # then the next stream is looked at


@dataclass(frozen=True, slots=True)
class Pace:
    """`num_streams` beside each other wrote `num_tokens` in all.

    `first_s` is the last one's first token, None where none came. `num_resumed` counts interrupted streams
    that were requested again; `lost` holds the reason of each stream that did not end.
    """

    num_streams: int
    num_tokens: int
    first_s: float | None
    whole_s: float
    num_resumed: int = 0
    lost: tuple[str, ...] = ()

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of all streams together, their prompts included."""
        return self.num_tokens / self.whole_s


class _Written:
    """One stream's text, when it began to come, and why there is no more of it."""

    def __init__(self, writing: RemoteWriting, num_tokens: int) -> None:
        self.writing, self._num_tokens = writing, num_tokens
        self.begun_s: float | None = None
        self.fault = ""
        self.is_open = True
        self._try(writing.begin)

    def look(self) -> None:
        """Take in what has come."""
        self._try(lambda: self.writing.step(_LOOK_MS))
        if self.writing.finish(NoRules(), Limits(self._num_tokens)) is not None:
            self._end()
        if self.begun_s is None and self.writing.tokens:
            self.begun_s = time.perf_counter()

    def lose(self, why: str) -> None:
        """It is given up."""
        self.fault = why
        self._end()

    def _end(self) -> None:
        self.is_open = False
        self.writing.close()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except RemoteError as error:
            self.lose(error.message)


def paces(
    servers: VllmClient,
    model: str,
    tokenizer: Tokenizer,
    prompts: Sequence[Sequence[int]],
    nums_streams: Sequence[int],
    num_tokens: int,
    progress: Callable[[int], None],
    patience_s: float = PATIENCE_S,
) -> Iterator[Pace]:
    """For each number of streams in turn. No prompt is asked for twice under one salt, so none is cached."""
    for num_streams in nums_streams:
        progress(num_streams)
        names = QueryNames("")
        begin_s = time.perf_counter()
        limits = Limits(num_tokens, patience_at=begin_s + patience_s)
        streams = [
            _Written(
                RemoteWriting(
                    partial(servers.complete, model=model),
                    CompletionQuery((), 0, salt=f"{names.salt}{at}", session=names.session(str(at))),
                    servers.endpoint.authority,
                    Prompt(tuple(prompts[at % len(prompts)]), b""),
                    Written(tokenizer, b""),
                    Continuation(),
                    limits=limits,
                    cancellation=Cancellation(),
                    stats=CompletionStats(),
                ),
                num_tokens,
            )
            for at in range(num_streams)
        ]
        yield _read(streams, begin_s, patience_s)


def _read(streams: Sequence[_Written], begin_s: float, patience_s: float) -> Pace:
    """All of them read to their ends, or until patience ends."""
    while open_ones := [stream for stream in streams if stream.is_open]:
        is_over = time.perf_counter() > begin_s + patience_s
        for stream in open_ones:
            if is_over:
                stream.lose(f"It has not ended after {patience_s:g} s.")
            else:
                stream.look()
    firsts = [stream.begun_s - begin_s for stream in streams if stream.begun_s is not None]
    return Pace(
        len(streams),
        sum(len(stream.writing.tokens) for stream in streams),
        max(firsts, default=None),
        time.perf_counter() - begin_s,
        sum(stream.writing.num_resumes for stream in streams),
        tuple(stream.fault for stream in streams if stream.fault),
    )
