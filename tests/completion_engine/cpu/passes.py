"""Small random models of our families, and passes of a decoder over a cache that keeps what is a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from completion_engine.target_model.decoder import Decoder, lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.llama_family import FamilyModel
from completion_engine.target_model.weights import Weights

NUM_TOKENS, CAPACITY = 300, 128
TOKENS = torch.randint(0, NUM_TOKENS, (60,), generator=torch.Generator().manual_seed(0)).tolist()


class HeldWeights(dict[str, Tensor], Weights):
    """Tensors in memory."""


def model_of(family: str = "qwen2", dtype: torch.dtype = torch.float32, **options: Any) -> FamilyModel:
    """The parts of `built`."""
    made, config = built(family, dtype, **options)
    return FamilyModel(config.to_dict(), HeldWeights(made.state_dict()))


def built(family: str = "qwen2", dtype: torch.dtype = torch.float32, **options: Any) -> tuple[Any, Any]:
    """A random model in transformers' modules, always the same, and its configuration."""
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_key_value_heads": 2, "head_dim": 16}
    config = AutoConfig.for_model(
        family, vocab_size=NUM_TOKENS, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=CAPACITY, initializer_range=0.1, **sizes | options,
    )  # fmt: skip
    torch.manual_seed(1)
    made = AutoModelForCausalLM.from_config(config, dtype=dtype)
    for name, weight in made.named_parameters():
        if weight.ndim == 1:
            torch.nn.init.uniform_(weight, 0.5 if "norm" in name else -1.0, 1.5)
    return made, config


def new_cache(decoder: Decoder, dtype: torch.dtype = torch.float32) -> KVCache:
    sizes = decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size
    return KVCache(CacheShape(*sizes, CAPACITY, dtype, torch.device("cpu"), keys_by_channel=True))


def run(
    decoder: Decoder,
    cache: KVCache,
    tokens: Sequence[int],
    parents: Sequence[int] = (),
    num_branches: int = 1,
) -> Tensor:
    """Logits of all rows, which are kept where they are a chain."""
    layout = lay_out(parents or range(-1, len(tokens) - 1))
    branches = [new_cache(decoder, cache.shape.dtype) for _ in range(num_branches - 1)]
    for branch in branches:
        branch.keys[:], branch.values[:] = cache.keys, cache.values
        branch.keep(cache.tokens)
    found = decoder.forward(torch.tensor(tokens), layout, [cache, *branches], len(tokens))
    if not parents:
        cache.keep(tokens)
    return found
