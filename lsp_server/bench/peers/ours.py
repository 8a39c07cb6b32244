"""Slipstream's own engines as peers: plain, with each drafter alone, with all of them. One shared target."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.config import DRAFTERS, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.errors import SlipstreamError
from completion_engine.prompt import Prompt
from completion_engine.request import CompletionRequest
from lsp_server.bench.peers.runs import Absent, Peer, Run, up_to_end

PLAIN = "Slipstream plain"


@dataclass(slots=True)
class _Clock:
    """Text rules that stop nothing and note when the first tokens were there."""

    first_at: float = 0.0

    def check(self, generated: str) -> None:  # noqa: ARG002 - the protocol of rules
        """Never stops."""
        self.first_at = self.first_at or time.perf_counter()

    def boundary(self, generated: str) -> int:
        """All of it counts."""
        return len(generated)


@dataclass(frozen=True, slots=True)
class OurPeer:
    """One engine."""

    name: str
    engine: CompletionEngine
    _request: CompletionRequest = field(default_factory=lambda: CompletionRequest("", "", deadline_ms=0))

    def write(self, prompt: Sequence[int], max_tokens: int) -> Run:
        """See `Peer.write`. No index is attached: drafts come from the prompt and what was written before."""
        clock = _Clock()
        begin = time.perf_counter()
        decoding = self.engine.write(self._request, clock, max_tokens, Prompt(tuple(prompt), b""))
        end = time.perf_counter()
        first_at = clock.first_at or end
        tokens = up_to_end(decoding.tokens, max_tokens, self.engine.tokenizer.end_ids)
        origins = decoding.origins  # every pass closes with a token of the target's own
        num_first = origins.index(None) + 1 if None in origins else len(origins)
        return Run(
            tokens,
            min(num_first, len(tokens)),
            (first_at - begin) * 1e3,
            (end - first_at) * 1e3,
            max(0, decoding.stats.num_forwards - 1),
        )


def our_peers(plain: CompletionEngine, drafters: Sequence[str] = DRAFTERS) -> list[Peer | Absent]:
    """Plain, one engine per drafter and, where there are several, one with all; on the target of `plain`."""
    found: list[Peer | Absent] = [OurPeer(PLAIN, plain)]
    usable: list[str] = []
    for name in drafters:
        peer = _drafted(plain, f"Slipstream {name}", (name,))
        found.append(peer)
        if not isinstance(peer, Absent):
            usable.append(name)
    if len(usable) > 1:
        found.append(_drafted(plain, "Slipstream all", tuple(usable)))
    return found


def _drafted(plain: CompletionEngine, name: str, drafters: tuple[str, ...]) -> Peer | Absent:
    try:
        config = EngineConfig(target=plain.config.target, drafters=drafters, num_slots=1)
        return OurPeer(name, CompletionEngine(config, plain.target, plain.tokenizer))
    except SlipstreamError as error:
        return Absent(name, str(error))
