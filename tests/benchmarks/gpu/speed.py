"""One model's passes and plain decoding, beside transformers on the very same weights.

transformers goes first: our decoder then takes the weights over, so that nothing lies in memory twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from completion_engine.cpu.int8_decoder import Int8Decoder
from completion_engine.gpu.memory import BITS, Geometry, plan_memory, why_not_model
from completion_engine.loading.backends import choose_precision
from completion_engine.target_model.decoder import BranchStorage, Decoder, InPlaceBranches
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel
from completion_engine.target_model.weights import WeightKind
from completion_engine.transformers_decoder import TransformersDecoder
from tests.benchmarks.gpu.ceilings import Ceilings
from tests.benchmarks.gpu.clock import time_ms, wait
from tests.benchmarks.gpu.random_models import HandedOver, random_model
from tests.benchmarks.peers.reference import COMPILED, GREEDY, TransformersPeer
from tests.benchmarks.peers.runs import PeerTask

_TREE = [*range(-1, 7), 0, 1, 2, 0, 1, 2, 3, 4]  # 16 rows


@dataclass(frozen=True, slots=True)
class Trial:
    """Amount of work: positions already cached, tokens written, positions of a cache."""

    num_prompt: int = 1024
    num_tokens: int = 64
    capacity: int = 8192


def measure_geometry(
    geometry: Geometry, dtype: str, device: torch.device, ceilings: Ceilings, trial: Trial
) -> dict[str, Any]:
    """Figures of a model with random weights; `absent` says why there are none."""
    found: dict[str, Any] = {}
    precision = choose_precision(dtype, device)
    bits = {"float": 16, "int8": 8}[precision.kind]
    if device.type == "cuda":
        free_bytes, _ = torch.cuda.mem_get_info(device)
        if shortage := plan_memory(geometry, 16, trial.capacity, 1).shortage(free_bytes):
            return found | {"absent": shortage}
    model = random_model(geometry, device, precision.dtype)
    if precision.kind == "float":
        found["peers"] = _peers(model, trial, geometry, on_gpu=device.type == "cuda")
    begin = time.perf_counter()
    if device.type == "cuda" and (why_not := why_not_model(model.config.to_dict())):
        return found | {"absent": why_not}
    runs_modules = device.type == "cpu" and precision.kind == "float"
    held = HandedOver(model) if not runs_modules else None
    ours = family_decoder(held, trial.capacity, precision.kind, device) if held else None
    decoder: Decoder = ours[0] if ours else TransformersDecoder(model, trial.capacity)
    target = LanguageModel(decoder, device, precision, trial.capacity, ours and ours[1])
    found["ready_s"] = round(time.perf_counter() - begin, 2)  # kernels compiled, graphs captured, checks done
    num_bytes = geometry.pass_bytes(bits)  # type: ignore[arg-type]  # one of three
    return found | describe(target, num_bytes, ceilings, trial)


def family_decoder(
    model: FamilyModel, num_positions: int, kind: WeightKind, device: torch.device
) -> tuple[Decoder, BranchStorage | None]:
    """The decoder of a model on the engine's own kernels, and the place of a tree's branches.

    On a GPU its passes are captured. Raises UserError for weights of a `kind` that it cannot hold.
    """
    if device.type == "cuda":
        from completion_engine.gpu.decoder import GraphedDecoder

        graphed = GraphedDecoder(model, num_positions, device, BITS[kind])
        graphed.rehearse()
        return graphed, InPlaceBranches()
    return Int8Decoder(model, num_positions), None


def describe(target: LanguageModel, num_pass_bytes: int, ceilings: Ceilings, trial: Trial) -> dict[str, Any]:
    """Milliseconds of its passes by stage and of a token written plainly, and the share of the bandwidth."""
    floor_ms = ceilings.floor_ms(num_pass_bytes)
    plain_ms = _plain_ms(target, trial)
    stages = {name: time_ms(work, target.device) for name, work in _stages(target, trial).items()}
    return {
        "exactness": target.exactness,
        "verifies_trees": target.verifies_trees,
        "stages_ms": {name: round(ms, 4) for name, ms in stages.items()},
        "plain_ms": round(plain_ms, 4),
        "floor_ms": round(floor_ms, 4),
        "share_of_bandwidth": round(floor_ms / plain_ms, 3),
        "price_of_16": round(stages["16 rows"] / stages["8 rows"], 3),
        "num_weight_bytes": target.num_weight_bytes,
        "num_gpu_bytes": torch.cuda.max_memory_allocated() if target.device.type == "cuda" else 0,
    }


def _peers(model: Any, trial: Trial, geometry: Geometry, *, on_gpu: bool) -> Mapping[str, float]:
    """Milliseconds per token of transformers, in eager mode and (on a GPU) compiled over a static cache."""
    task = PeerTask(tuple(_prompt(trial, geometry.vocab_size)))
    ways = {GREEDY: ""} | ({COMPILED: "static"} if on_gpu else {})
    found: dict[str, float] = {}
    for name, cache in ways.items():
        peer = TransformersPeer(name, model, frozenset(), cache_implementation=cache)
        for _ in range(2):  # the first compiles
            found[name] = round(peer.write(task, trial.num_tokens).ms_per_token, 4)
    return found


def _prompt(trial: Trial, vocab_size: int) -> list[int]:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, vocab_size, (trial.num_prompt,), generator=generator).tolist()


def _primed(target: LanguageModel, trial: Trial) -> KVCache:
    cache = KVCache(target.cache_shape)
    prompt = _prompt(trial, target.vocab_size)
    while cache.num_cached < len(prompt):
        chunk = prompt[cache.num_cached :][: target.chunks.num_rows]
        target.forward(chunk, cache, 0)
        cache.keep(chunk)
    return cache


def _plain_ms(target: LanguageModel, trial: Trial) -> float:
    """Milliseconds per token of a greedy loop, each token read back before the next pass."""
    for _ in range(2):  # the first captures
        cache, token = _primed(target, trial), 1
        wait(target.device)
        begin = time.perf_counter()
        for _ in range(trial.num_tokens):
            logits = target.forward([token], cache, 1)
            cache.keep([token])
            token = int(logits[0].max(-1).indices)
        taken = time.perf_counter() - begin
    return taken * 1e3 / trial.num_tokens


def _stages(target: LanguageModel, trial: Trial) -> dict[str, Callable[[], object]]:
    """Passes that differ in one thing each, so that differences show its cost."""
    cache, short = _primed(target, trial), KVCache(target.cache_shape)
    short.keep([0] * 8)

    def run(
        num_rows: int, num_logits: int, at: KVCache, parents: list[int] | None = None
    ) -> Callable[[], object]:
        return lambda: target.forward([1] * num_rows, at, num_logits, parents)

    return {
        **{f"{width} rows": run(width, width, cache) for width in (8, 16, 24)},
        "16 rows, a tree": run(16, 16, cache, _TREE if target.verifies_trees else None),
        "8 rows without the head": run(8, 0, cache),
        "8 rows behind 8 positions": run(8, 8, short),
        f"{target.chunks.num_rows} rows of a prompt": run(target.chunks.num_rows, 0, cache),
    }
