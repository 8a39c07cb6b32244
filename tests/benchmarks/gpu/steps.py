"""Whole steps on the device and their parts, drafting by a random drafter: for speed only, never for text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import torch

from completion_engine.drafting.device_steps import DeviceDecoder
from completion_engine.drafting.distilled import NUM_BEAMS, DrafterFiles
from completion_engine.drafting.drafter_network import DrafterShape, Preview
from completion_engine.gpu.passes import runner_for
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from tests.benchmarks.gpu.clock import time_ms, wait

if TYPE_CHECKING:
    from completion_engine.gpu.decoder import GraphedDecoder

_MLP_TO_HIDDEN = 2048 / 896  # ratio of the drafter of the 0.5B
_NUM_TOKENS = 16_384
_TEMPERATURES = (0.9,) * 6
_NUM_STEPS = 32


def random_drafter(target: LanguageModel, num_heads: int) -> DrafterFiles:
    """A drafter of the usual proportions for any target."""
    shape, num_tokens = target.cache_shape, min(_NUM_TOKENS, target.vocab_size)
    drafter = DrafterShape(
        shape.num_layers,
        shape.num_kv_heads,
        shape.head_size,
        shape.hidden_size,
        target.vocab_size,
        memory_layer=shape.num_layers * 2 // 3,
        num_heads=num_heads,
        mlp_size=int(shape.hidden_size * _MLP_TO_HIDDEN) // 64 * 64,
        num_tokens=num_tokens,
    )
    generator = torch.Generator().manual_seed(0)
    weights = {name: torch.randn(size, generator=generator) * 0.02 for name, size in drafter.sizes.items()}
    preview = Preview(torch.eye(shape.hidden_size), torch.eye(shape.hidden_size))
    tokens = torch.arange(num_tokens)
    return DrafterFiles("random", drafter, _TEMPERATURES, tokens, weights, preview)


def measure_steps(target: LanguageModel, decoder: GraphedDecoder, cache: KVCache) -> Mapping[str, float]:
    """Milliseconds of each part of a step after the cache, and of a step as the engine takes it."""
    from completion_engine.gpu.beam_search import BeamSearch, DeviceNetwork
    from completion_engine.gpu.device_loop import DeviceLoop

    files = random_drafter(target, decoder.heads.num_heads)
    search = BeamSearch(DeviceNetwork(files, target, decoder, NUM_BEAMS), files.temperatures)
    loop, runner = DeviceLoop(decoder, search, target.vocab_size), runner_for(target.device)
    loop.begin(cache, [*cache.tokens, 1])
    found = {
        f"a step's {name}": time_ms(partial(runner.run, name, part), target.device)
        for name, part in loop.parts.items()
    }
    return found | {"a step": _step_ms(loop, cache, target.device)}


def _step_ms(loop: DeviceDecoder, cache: KVCache, device: torch.device) -> float:
    """Milliseconds of consecutive steps, each read back, as long as there is room for them."""
    num_cached, path, num_steps = cache.num_cached, [*cache.tokens, 1], 0
    loop.begin(cache, path)
    loop.step()  # whatever is captured is captured now
    loop.begin(cache, path)
    wait(device)
    begin = time.perf_counter()
    while num_steps < _NUM_STEPS and loop.can_step(cache):
        stride = loop.step()
        cache.keep([path[-1], *stride.written[:-1]])
        path += stride.written
        num_steps += 1
    taken = time.perf_counter() - begin
    cache.rewind(num_cached)
    return taken * 1e3 / num_steps
