"""The loop that stays on the device as a peer: the target's own distilled drafter and nothing else."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion_engine.drafting.distilled import DrafterFiles
from completion_engine.engine import CompletionEngine
from completion_engine.gpu.loading import as_graphed
from completion_engine.kv_cache import KVCache
from completion_engine.language_model import LanguageModel
from completion_engine.sources import trained_folder
from lsp_server.bench.peers.runs import Absent, Peer, Run, Task, up_to_end

if TYPE_CHECKING:
    from completion_engine.drafting.device_loop import DeviceLoop

NAME = "Slipstream on the device"


@dataclass(frozen=True, slots=True)
class DevicePeer:
    """Greedy decoding by `DeviceLoop`."""

    name: str
    target: LanguageModel
    loop: DeviceLoop
    end_ids: frozenset[int]

    def write(self, task: Task, max_tokens: int) -> Run:
        """See `Peer.write`."""
        begin = time.perf_counter()
        cache = KVCache(self.target.cache_shape)
        *known, last = task.tokens
        while cache.num_cached < len(known):
            chunk = known[cache.num_cached :][: self.target.prefill_rows]
            self.target.forward(chunk, cache, 0)
            cache.keep(chunk)
        first = self.loop.write(cache, last, 1)
        first_at = time.perf_counter()
        written, num_passes, more = list(first), 0, first
        while more and len(written) < max_tokens and not self.end_ids.intersection(more):
            more = self.loop.proceed(cache)
            written += more
            num_passes += 1
        decode_ms = (time.perf_counter() - first_at) * 1e3
        tokens = up_to_end(written, max_tokens, self.end_ids)
        return Run(tokens, min(len(first), len(tokens)), (first_at - begin) * 1e3, decode_ms, num_passes)


def device_peer(engine: CompletionEngine) -> Peer | Absent:
    """The peer on the engine's target, or why there is none."""
    target = engine.target
    folder = trained_folder(engine.config.target)
    if folder is None:
        return Absent(NAME, "this target has no trained drafter")
    decoder = as_graphed(target.decoder)
    if decoder is None:
        return Absent(NAME, "the target does not run on our kernels for GPUs here")
    from completion_engine.drafting.device_beams import BeamSearch  # noqa: PLC0415 - needs triton
    from completion_engine.drafting.device_loop import COMB, DeviceLoop  # noqa: PLC0415 - as above
    from completion_engine.drafting.device_network import DeviceNetwork  # noqa: PLC0415 - as above

    files = DrafterFiles.read(folder)
    network = DeviceNetwork(files, target, decoder, num_beams=1)
    search = BeamSearch(network, [1.0] * len(COMB.num_beside))
    loop = DeviceLoop(decoder, search, engine.tokenizer.num_tokens)
    return DevicePeer(NAME, target, loop, engine.tokenizer.end_ids)
