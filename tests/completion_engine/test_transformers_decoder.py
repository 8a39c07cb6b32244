"""A model in transformers' modules: the results of a pass, and what their bits depend on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from completion_engine import transformers_decoder
from completion_engine.cpu.linear import computes_bf16
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.passes import ROWS, pad_rows
from completion_engine.target_model.threads import num_threads_here, use_threads
from completion_engine.transformers_decoder import TransformersDecoder
from tests.completion_engine.cpu.passes import CAPACITY, TOKENS, built, new_cache, run

TYPES = [torch.float32, torch.bfloat16]


@pytest.fixture(scope="module", params=TYPES, ids=str)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    found: torch.dtype = request.param
    return found


@pytest.fixture(scope="module")
def decoder(dtype: torch.dtype) -> TransformersDecoder:
    return TransformersDecoder(built(dtype=dtype)[0].eval().requires_grad_(False), CAPACITY)


@pytest.fixture(scope="module")
def wanted(decoder: TransformersDecoder, dtype: torch.dtype) -> Tensor:
    return run_fixed(decoder, new_cache(decoder, dtype), TOKENS, (ROWS,) * 7)


def run_fixed(
    decoder: TransformersDecoder, cache: KVCache, tokens: Sequence[int], sizes: Sequence[int]
) -> Tensor:
    """Logits of `tokens` in passes of the fixed width, with this number of rows in use."""
    found, first = [], 0
    for size in sizes:
        rows = [*tokens[first : first + size], *[0] * (pad_rows(size) - size)]
        found.append(run(decoder, cache, rows)[:size])
        cache.rewind(first + size)
        first += size
    return torch.cat(found)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_it_computes_what_the_modules_compute(family: str) -> None:
    model = built(family)[0].eval().requires_grad_(False)
    with torch.inference_mode():
        wanted = model(torch.tensor([TOKENS[:24]])).logits[0]
        decoder = TransformersDecoder(model, CAPACITY)
        found = run(decoder, new_cache(decoder), TOKENS[:24])
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_weights_in_bf16_are_laid_out_and_give_the_same_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for does in (True, False):
        monkeypatch.setattr(transformers_decoder, "computes_bf16", lambda does=does: does and computes_bf16())
        decoder = TransformersDecoder(built(dtype=torch.bfloat16)[0].eval().requires_grad_(False), CAPACITY)
        found.append(run(decoder, new_cache(decoder, torch.bfloat16), TOKENS[:24]).float())
    assert (found[0] - found[1]).norm() < 0.02 * found[1].norm()


@pytest.mark.parametrize(
    "sizes", [(1,) * 56, (3, 5, 7, 1, 8, 8, 8, 8, 8), (8, 2, 6, 4, 4, 8, 8, 8, 8), (7,) * 8], ids=len
)
def test_any_way_to_fill_passes_of_one_width_gives_the_same_bits(
    decoder: TransformersDecoder, dtype: torch.dtype, wanted: Tensor, sizes: tuple[int, ...]
) -> None:
    cache, other = new_cache(decoder, dtype), new_cache(decoder, dtype)
    assert torch.equal(run_fixed(decoder, cache, TOKENS, sizes), wanted)
    run_fixed(decoder, other, TOKENS, (ROWS,) * 7)
    for part in ("keys", "values"):
        one, two = (getattr(held, part)[:, :, :56] for held in (cache, other))
        assert torch.equal(one, two)
    assert torch.equal(cache.hidden[:56], other.hidden[:56])


def test_every_path_of_a_tree_gives_a_chains_bits(decoder: TransformersDecoder, dtype: torch.dtype) -> None:
    parents = [-1, 0, 1, 2, 1, 4, 0, 6]
    cache = new_cache(decoder, dtype)
    run_fixed(decoder, cache, TOKENS, (ROWS,) * 7)
    together = run(decoder, cache, [*range(1, 9)], parents, num_branches=3)
    for path in ([0, 1, 2, 3], [0, 1, 4, 5], [0, 6, 7]):
        chain = new_cache(decoder, dtype)
        run_fixed(decoder, chain, TOKENS, (ROWS,) * 7)
        alone = run(decoder, chain, [*(row + 1 for row in path), *[0] * (ROWS - len(path))])
        assert torch.equal(alone[: len(path)], together[path])


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_the_same_passes_give_the_same_bits_again(
    decoder: TransformersDecoder, dtype: torch.dtype, num_threads: int
) -> None:
    """Whether numbers of threads agree is asked at load; each has to agree with itself."""
    before = num_threads_here()
    use_threads(num_threads)
    try:
        first, again = (run_fixed(decoder, new_cache(decoder, dtype), TOKENS, (ROWS,) * 7) for _ in range(2))
    finally:
        use_threads(before)
    assert torch.equal(first, again)
