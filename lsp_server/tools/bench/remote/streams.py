"""Tokens a second that a team's servers write, for one stream and for several beside each other.

All streams share one connection, as a window's do. Each has a session of its own, so they spread over the
replicas.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from completion_engine.errors import RemoteError
from completion_engine.remote.answer import TokenStream
from completion_engine.remote.question import Names, Question
from completion_engine.remote.servers import Servers
from completion_engine.remote.transport import Wait

_PATIENCE_S = 120.0
_LOOK_S = 0.002  # then the next stream is looked at


@dataclass(frozen=True, slots=True)
class Pace:
    """`num_streams` beside each other wrote `num_tokens` in all; `first_s` is the last one's first token."""

    num_streams: int
    num_tokens: int
    first_s: float
    whole_s: float

    @property
    def tokens_per_s(self) -> float:
        """Of all streams together, their prompts included."""
        return self.num_tokens / self.whole_s


def paces(  # noqa: PLR0913 - who is asked what, how often
    servers: Servers,
    model: str,
    prompts: Sequence[Sequence[int]],
    nums_streams: Sequence[int],
    num_tokens: int,
    progress: Callable[[int], None],
) -> list[Pace]:
    """For each number of streams in turn. No prompt is asked for twice under one salt, so none is cached."""
    found = []
    for num_streams in nums_streams:
        progress(num_streams)
        names = Names("")
        chosen = [prompts[at % len(prompts)] for at in range(num_streams)]
        begin_s = time.perf_counter()
        streams = [
            servers.complete(
                Question(tuple(prompt), num_tokens, salt=f"{names.salt}{at}", session=names.session(str(at))),
                model,
                Wait.seconds(_PATIENCE_S),
            )
            for at, prompt in enumerate(chosen)
        ]
        found.append(_written(streams, num_streams, begin_s))
    return found


def _written(streams: Sequence[TokenStream], num_streams: int, begin_s: float) -> Pace:
    """All of them read to their ends. Raises RemoteError."""
    firsts: dict[int, float] = {}
    num_tokens, open_ones = 0, dict(enumerate(streams))
    while open_ones:
        if time.perf_counter() - begin_s > _PATIENCE_S:
            raise RemoteError("silent", f"{len(open_ones)} streams do not end.")
        for at, stream in list(open_ones.items()):
            chunk = stream.read(Wait.seconds(_LOOK_S))
            if chunk is not None:
                num_tokens += len(chunk.tokens)
                firsts.setdefault(at, time.perf_counter() - begin_s)
            elif stream.has_ended:
                del open_ones[at]
    return Pace(num_streams, num_tokens, max(firsts.values()), time.perf_counter() - begin_s)
