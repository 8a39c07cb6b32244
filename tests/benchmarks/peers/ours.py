"""Slipstream's own engines as peers: plain, with each drafter alone, with several. One shared target."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from completion_engine.config import DEFAULT_DRAFTERS, DRAFTERS
from completion_engine.decoding.ending import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.errors import SlipstreamError
from completion_engine.prompting.prompt import Prompt
from completion_engine.request import CompletionRequest
from completion_engine.target_model.threads import thread_counts, use_threads
from ngram_cache import NgramIndex
from tests.benchmarks.peers.runs import Absent, Peer, PeerTask, Run, up_to_end

PLAIN = "Slipstream plain"


@dataclass(slots=True)
class _Clock(NoRules):
    """Text rules that stop nothing and note when the first tokens were there."""

    first_at: float = 0.0

    def stop(self, generated: str) -> None:
        """Never stops."""
        self.first_at = self.first_at or time.perf_counter()


@dataclass(frozen=True, slots=True)
class OurPeer:
    """One engine."""

    name: str
    engine: CompletionEngine
    index: NgramIndex | None = None

    def write(self, task: PeerTask, max_tokens: int) -> Run:
        """See `Peer.write`. A task's own file is never drafted from."""
        clock = _Clock()
        request = CompletionRequest(
            "", "", document=task.document, index=self.index, deadline_ms=0, repository_memory="off"
        )
        self.engine.target.governor._free_cores()  # the peer before used all cores, and is done
        time.sleep(0.1)
        begin = time.perf_counter()
        decoding = self.engine.write(request, clock, max_tokens, Prompt(task.tokens, b""))
        end = time.perf_counter()
        use_threads(max(thread_counts()))  # peers in this process take their own number of threads
        first_at = clock.first_at or end
        tokens = up_to_end(decoding.tokens, max_tokens, self.engine.tokenizer.end_ids)
        sources = decoding.sources  # every pass closes with a token of the target's own
        num_first = sources.index(None) + 1 if None in sources else len(sources)
        return Run(
            tokens,
            min(num_first, len(tokens)),
            (first_at - begin) * 1e3,
            (end - first_at) * 1e3,
            max(0, decoding.stats.num_forwards - 1),
        )


def our_peers(
    plain: CompletionEngine, index: NgramIndex | None = None, *, few: bool = False
) -> list[Peer | Absent]:
    """Engines on the target of `plain`: plain, one per drafter, as configured by default, with everything.

    One more peer drafts from `index` too. `few` are plain and default alone.
    """
    alone = {name: _drafted(plain, name, (name,)) for name in DRAFTERS}
    usable = {name for name, peer in alone.items() if not isinstance(peer, Absent)}
    default = tuple(name for name in DEFAULT_DRAFTERS if name in usable)
    everything = tuple(name for name in DRAFTERS if name in usable)
    if few:
        return [OurPeer(PLAIN, plain), _drafted(plain, "default", default)]
    found: list[Peer | Absent] = [OurPeer(PLAIN, plain), *alone.values()]
    if len(default) > 1:
        found.append(_drafted(plain, "default", default))
    if len(everything) > len(default):
        found.append(_drafted(plain, "all", everything))
    if index is not None:
        found.append(_drafted(plain, "default with index", default, index))
    return found


def _drafted(
    plain: CompletionEngine,
    name: str,
    drafters: tuple[str, ...],
    index: NgramIndex | None = None,
    **changes: Any,
) -> Peer | Absent:
    name = f"Slipstream {name}"
    try:
        engine = plain.beside(drafters=drafters, **changes)
    except SlipstreamError as error:
        return Absent(name, str(error))
    if set(engine.describe()["drafters"]) != set(drafters):
        return Absent(name, "this target has no such drafter")
    return OurPeer(name, engine, index)
