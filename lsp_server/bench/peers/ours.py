"""Slipstream's own engines as peers: plain, with each drafter alone, with several. One shared target."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.config import DEFAULT_DRAFTERS, DRAFTERS, EngineConfig
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


def our_peers(plain: CompletionEngine, draft_model: str = "") -> list[Peer | Absent]:
    """Engines on the target of `plain`: plain, one per drafter, as configured by default, with everything.

    `draft_model` is a smaller model of the same family: it drafts for a peer of its own, and takes the
    neural drafter's place where the target has no trained one.
    """
    alone = {name: _drafted(plain, name, (name,)) for name in DRAFTERS}
    if draft_model:
        alone["draft model"] = _drafted(plain, "draft model", ("neural",), draft_model)
    usable = {name for name, peer in alone.items() if not isinstance(peer, Absent)}
    stand_in = draft_model if "neural" not in usable and "draft model" in usable else ""
    if stand_in:
        usable.add("neural")
    together = {
        "default": tuple(name for name in DEFAULT_DRAFTERS if name in usable),
        "all": tuple(name for name in DRAFTERS if name in usable),
    }
    found: list[Peer | Absent] = [OurPeer(PLAIN, plain), *alone.values()]
    seen: set[tuple[str, ...]] = set()
    for name, drafters in together.items():
        if len(drafters) > 1 and drafters not in seen:
            found.append(_drafted(plain, name, drafters, stand_in))
            seen.add(drafters)
    return found


def _drafted(
    plain: CompletionEngine, name: str, drafters: tuple[str, ...], draft_model: str = ""
) -> Peer | Absent:
    name = f"Slipstream {name}"
    try:
        config = EngineConfig(plain.config.target, drafters, draft_model, num_slots=1)
        engine = CompletionEngine(config, plain.target, plain.tokenizer)
    except SlipstreamError as error:
        return Absent(name, str(error))
    if set(engine.describe()["drafters"]) != set(drafters):
        return Absent(name, "this target has no such drafter")
    return OurPeer(name, engine)
