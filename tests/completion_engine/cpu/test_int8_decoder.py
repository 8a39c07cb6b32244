"""Weights in bytes: the results of a pass, and that other rows change no bit of a row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from completion_engine.cpu.int8_decoder import Int8Decoder
from completion_engine.cpu.linear import can_quantise
from completion_engine.errors import UserError
from completion_engine.gpu.reference import reference_logits
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.threads import num_threads_here, use_threads
from tests.completion_engine.cpu.passes import CAPACITY, TOKENS, model_of, new_cache, run

FAMILIES = {
    "qwen2": {},
    "qwen3 of one key head": {"family": "qwen3", "num_key_value_heads": 1},
    "llama, tied, of sizes that fill no tile": {
        "family": "llama", "hidden_size": 72, "intermediate_size": 100, "tie_word_embeddings": True,
    },
}  # fmt: skip

pytestmark = pytest.mark.skipif(
    not can_quantise(torch.device("cpu")), reason="this machine does not multiply bytes fast"
)


@pytest.fixture(scope="module")
def decoder() -> Int8Decoder:
    return Int8Decoder(model_of(), CAPACITY)


@pytest.fixture(scope="module")
def wanted(decoder: Int8Decoder) -> Tensor:
    return run(decoder, new_cache(decoder), TOKENS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("family", FAMILIES)
def test_it_comes_near_what_weights_as_they_are_compute(family: str, dtype: torch.dtype) -> None:
    model = model_of(**{"dtype": dtype} | FAMILIES[family])
    decoder = Int8Decoder(model, CAPACITY)
    found = run(decoder, new_cache(decoder, dtype), TOKENS[:24])
    exact = reference_logits(model, TOKENS[:24], torch.device("cpu"), 16, 24)
    assert (found - exact).norm() < 0.04 * exact.norm()


@pytest.mark.parametrize("sizes", [(1,) * 60, (3, 5, 7, 9, 36), (17, 33, 10), (2, 58)])
def test_any_way_to_cut_a_text_into_passes_gives_the_same_bits(
    decoder: Int8Decoder, wanted: Tensor, sizes: tuple[int, ...]
) -> None:
    cache, found, first = new_cache(decoder), [], 0
    for size in sizes:
        found.append(run(decoder, cache, TOKENS[first : first + size]))
        first += size
    assert torch.equal(torch.cat(found), wanted)


def test_every_path_of_a_tree_gives_a_chains_bits(decoder: Int8Decoder) -> None:
    parents = [-1, 0, 1, 2, 1, 4, 0, 6, 7]
    cache = new_cache(decoder)
    run(decoder, cache, TOKENS)
    together = run(decoder, cache, [*range(1, 10)], parents, num_branches=3)
    for path in ([0, 1, 2, 3], [0, 1, 4, 5], [0, 6, 7, 8]):
        chain = new_cache(decoder)
        run(decoder, chain, TOKENS)
        assert torch.equal(run(decoder, chain, [row + 1 for row in path]), together[path])


def test_the_trunk_holds_what_its_own_rows_wrote(decoder: Int8Decoder) -> None:
    caches = [new_cache(decoder) for _ in range(2)]
    for cache in caches:
        run(decoder, cache, TOKENS)
    run(decoder, caches[0], [1, 2, 3, 4], [-1, 0, 0, 2], num_branches=2)
    run(decoder, caches[1], [1, 2])
    for part in ("keys", "values"):
        tree, chain = (getattr(cache, part)[:, :, :62] for cache in caches)
        assert torch.equal(tree, chain)
    assert torch.equal(caches[0].hidden[:62], caches[1].hidden[:62])


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_threads_change_no_bit(decoder: Int8Decoder, wanted: Tensor, num_threads: int) -> None:
    before = num_threads_here()
    use_threads(num_threads)
    try:
        assert torch.equal(run(decoder, new_cache(decoder), TOKENS), wanted)
    finally:
        use_threads(before)


def test_caches_of_another_size_are_served_too(decoder: Int8Decoder, wanted: Tensor) -> None:
    sizes = decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size
    shape = CacheShape(*sizes, CAPACITY // 2, torch.float32, torch.device("cpu"), keys_by_channel=True)
    assert torch.equal(run(decoder, KVCache(shape), TOKENS), wanted)


def test_heads_that_fill_no_vector_are_refused_with_advice() -> None:
    with pytest.raises(UserError, match="heads of 24") as caught:
        Int8Decoder(model_of(head_dim=24), CAPACITY)
    assert "auto" in caught.value.advice
