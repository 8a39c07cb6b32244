"""Whether steps on a device write what the target writes token by token: asked at load, not believed."""

from __future__ import annotations

import torch

from completion_engine.drafting.device_steps import DeviceDecoder
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.ranking import first_largest

_NUM_RANDOM = 12
_NUM_WRITTEN = 24


def steps_agree(
    device_decoder: DeviceDecoder,
    target: LanguageModel,
    num_tokens: int,
    num_written: int = _NUM_WRITTEN,
    seed: int = 4,
) -> bool:
    """Whether text and cache come out the same, bit for bit, after random tokens that are repeated.

    They are repeated to give drafts that can be accepted. `num_tokens` is the size of the vocabulary.
    """
    generator = torch.Generator().manual_seed(seed)
    said = torch.randint(0, num_tokens, (_NUM_RANDOM,), generator=generator).tolist()
    prompt = [*said, *said]
    stepped, plain = KVCache(target.cache_shape), KVCache(target.cache_shape)
    path, wanted = _by_steps(device_decoder, target, stepped, prompt, num_written), [*prompt]
    _prefill(target, plain, prompt)
    while len(wanted) < len(path):
        logits = target.forward(wanted[-1:], plain, 1)
        plain.keep(wanted[-1:])
        wanted.append(int(first_largest(logits[0, :num_tokens])))
    end = plain.num_cached
    pairs = ((stepped.keys, plain.keys), (stepped.values, plain.values))
    is_same = all(torch.equal(left[:, :, :end], right[:, :, :end]) for left, right in pairs)
    return path == wanted and is_same and torch.equal(stepped.hidden[:end], plain.hidden[:end])


def _prefill(target: LanguageModel, cache: KVCache, prompt: list[int]) -> None:
    target.forward(prompt[:-1], cache, 0)
    cache.keep(prompt[:-1])


def _by_steps(
    device_decoder: DeviceDecoder, target: LanguageModel, cache: KVCache, prompt: list[int], num_written: int
) -> list[int]:
    """The prompt and at least `num_written` tokens after it."""
    _prefill(target, cache, prompt)
    path = [*prompt]
    device_decoder.begin(cache, path)
    while len(path) < len(prompt) + num_written:
        written = device_decoder.step().written
        cache.keep([path[-1], *written[:-1]])
        path += written
    return path
