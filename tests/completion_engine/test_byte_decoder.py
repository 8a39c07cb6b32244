"""Weights in bytes: what a pass computes, and that nothing beside a row changes a bit of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from completion_engine.byte_decoder import ByteDecoder
from completion_engine.cpu import team
from completion_engine.decoder import Decoder, FusedDecoder
from completion_engine.errors import UserError
from completion_engine.kv_cache import CacheShape, KVCache
from completion_engine.lanes import lay_out
from completion_engine.llama_family import FamilyModel
from completion_engine.quantised import can_quantise

NUM_TOKENS, CAPACITY = 300, 128
TOKENS = torch.randint(0, NUM_TOKENS, (60,), generator=torch.Generator().manual_seed(0)).tolist()
FAMILIES = {
    "qwen2": {},
    "qwen3 of one key head": {"family": "qwen3", "num_key_value_heads": 1},
    "llama, tied, of sizes that fill no strip": {
        "family": "llama", "hidden_size": 72, "intermediate_size": 100, "tie_word_embeddings": True,
    },
}  # fmt: skip

pytestmark = pytest.mark.skipif(
    not can_quantise(torch.empty(1, 1)), reason="this machine does not multiply bytes fast"
)


def model_of(family: str = "qwen2", dtype: torch.dtype = torch.float32, **options: Any) -> FamilyModel:
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
    return FamilyModel(config.to_dict(), made.state_dict())


def new_cache(decoder: Decoder, dtype: torch.dtype = torch.float32) -> KVCache:
    sizes = decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size
    return KVCache(CacheShape(*sizes, CAPACITY, dtype, torch.device("cpu"), keys_by_channel=True))


def run(
    decoder: Decoder, cache: KVCache, tokens: Sequence[int], parents: Sequence[int] = (), num_lanes: int = 1
) -> Tensor:
    """Logits of all rows, which are kept where they are a chain."""
    layout = lay_out(parents or range(-1, len(tokens) - 1))
    branches = [new_cache(decoder, cache.shape.dtype) for _ in range(num_lanes - 1)]
    for branch in branches:
        branch.keys[:], branch.values[:] = cache.keys, cache.values
        branch.keep(cache.tokens)
    found = decoder.forward(torch.tensor(tokens), layout, [cache, *branches], len(tokens))
    if not parents:
        cache.keep(tokens)
    return found


@pytest.fixture(scope="module")
def decoder() -> ByteDecoder:
    return ByteDecoder(model_of(), CAPACITY)


@pytest.fixture(scope="module")
def wanted(decoder: ByteDecoder) -> Tensor:
    return run(decoder, new_cache(decoder), TOKENS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("family", FAMILIES)
def test_it_comes_near_what_weights_as_they_are_compute(family: str, dtype: torch.dtype) -> None:
    model = model_of(**{"dtype": dtype} | FAMILIES[family])
    found, exact = (
        run(kind(model, CAPACITY), new_cache(kind(model, CAPACITY), dtype), TOKENS[:24])
        for kind in (ByteDecoder, FusedDecoder)
    )
    assert (found - exact.float()).norm() < 0.03 * exact.float().norm()


@pytest.mark.parametrize("sizes", [(1,) * 60, (3, 5, 7, 9, 36), (17, 33, 10), (2, 58)])
def test_any_way_to_cut_a_text_into_passes_gives_the_same_bits(
    decoder: ByteDecoder, wanted: Tensor, sizes: tuple[int, ...]
) -> None:
    cache, found, first = new_cache(decoder), [], 0
    for size in sizes:
        found.append(run(decoder, cache, TOKENS[first : first + size]))
        first += size
    assert torch.equal(torch.cat(found), wanted)


def test_every_path_of_a_tree_gives_a_chains_bits(decoder: ByteDecoder) -> None:
    parents = [-1, 0, 1, 2, 1, 4, 0, 6, 7]
    cache = new_cache(decoder)
    run(decoder, cache, TOKENS)
    together = run(decoder, cache, [*range(1, 10)], parents, num_lanes=3)
    for path in ([0, 1, 2, 3], [0, 1, 4, 5], [0, 6, 7, 8]):
        chain = new_cache(decoder)
        run(decoder, chain, TOKENS)
        assert torch.equal(run(decoder, chain, [row + 1 for row in path]), together[path])


def test_the_trunk_holds_what_its_own_rows_wrote(decoder: ByteDecoder) -> None:
    caches = [new_cache(decoder) for _ in range(2)]
    for cache in caches:
        run(decoder, cache, TOKENS)
    run(decoder, caches[0], [1, 2, 3, 4], [-1, 0, 0, 2], num_lanes=2)
    run(decoder, caches[1], [1, 2])
    for part in ("keys", "values"):
        tree, chain = (getattr(cache, part)[:, :, :62] for cache in caches)
        assert torch.equal(tree, chain)
    assert torch.equal(caches[0].hidden[:62], caches[1].hidden[:62])


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_threads_change_no_bit(decoder: ByteDecoder, wanted: Tensor, num_threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        assert torch.equal(run(decoder, new_cache(decoder), TOKENS), wanted)
    finally:
        torch.set_num_threads(before)


def test_neither_do_pythons_threads_where_openmp_is_not(
    decoder: ByteDecoder, wanted: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team, "openmp", lambda: None)
    assert torch.equal(run(decoder, new_cache(decoder), TOKENS), wanted)


def test_caches_of_another_size_are_served_too(decoder: ByteDecoder, wanted: Tensor) -> None:
    sizes = decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size
    shape = CacheShape(*sizes, CAPACITY // 2, torch.float32, torch.device("cpu"), keys_by_channel=True)
    assert torch.equal(run(decoder, KVCache(shape), TOKENS), wanted)


def test_heads_that_fill_no_vector_are_refused_with_advice() -> None:
    with pytest.raises(UserError, match="heads of 24") as caught:
        ByteDecoder(model_of(head_dim=24), CAPACITY)
    assert "auto" in caught.value.advice
