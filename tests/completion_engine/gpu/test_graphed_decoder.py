"""A whole target on our kernels: near transformers' modules, and exact whatever is drafted and rewound."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from pathlib import Path

import pytest
import torch

from completion_engine.gpu.passes import shape_for
from completion_engine.target_model.decoder import Branch, Decoder, InPlaceBranches, Layout, lay_out
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel
from completion_engine.transformers_decoder import TransformersDecoder, build_modules

CAPACITY, NUM_TOKENS = 300, 90


def shape_of(decoder: Decoder, device: torch.device) -> CacheShape:
    sizes = (decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size)
    return CacheShape(*sizes, CAPACITY, decoder.embedding.dtype, device)


def test_rows_are_invariant_and_branches_exact(target: LanguageModel) -> None:
    assert target.is_row_invariant
    assert target.verifies_trees
    assert target.max_branches > 16


def modules_of(folder: Path) -> TransformersDecoder:
    return TransformersDecoder(build_modules(folder, torch.float32), CAPACITY)


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_it_computes_what_the_modules_compute(
    kind: str,
    device: torch.device,
    random_folder: Callable[[str], Path],
    graphed: Callable[[str], Decoder],
) -> None:
    ours, theirs = graphed(kind), modules_of(random_folder(kind))
    tolerance = 2e-2 if device.type == "cuda" else 1e-5
    caches = [
        KVCache(shape_of(decoder, place))
        for decoder, place in ((ours, device), (theirs, torch.device("cpu")))
    ]
    generator = torch.Generator().manual_seed(0)
    for num_rows in (40, 8, 16):
        rows = torch.randint(0, NUM_TOKENS, (num_rows,), generator=generator)
        layout = lay_out(range(-1, num_rows - 1))
        found = ours.forward(rows, layout, caches[:1], 2)
        wanted = theirs.forward(rows, layout, caches[1:], 2)
        assert found is not None
        assert wanted is not None
        assert (found.cpu() - wanted).norm() < tolerance * wanted.norm()
        for cache in caches:
            cache.keep(rows.tolist())
    end = caches[0].num_cached
    for left, right in (
        (caches[0].keys[:, :, :end], caches[1].keys[:, :, :end]),
        (caches[0].values[:, :, :end], caches[1].values[:, :, :end]),
        (caches[0].hidden[:end], caches[1].hidden[:end]),
    ):
        assert (left.cpu() - right).norm() < tolerance * right.norm()


@pytest.mark.parametrize(("kind", "num_tables"), [("qwen2", 2), ("qwen3", 1)])
def test_a_head_that_is_the_embedding_is_held_once(
    kind: str, num_tables: int, graphed: Callable[[str], Decoder]
) -> None:
    decoder = graphed(kind)
    num_layer_weights = 32 * 16 * (3 + 2) + 32 * 16 * 3 + 3 * 32 * 48
    num_weights = num_tables * NUM_TOKENS * 32 + num_layer_weights
    assert decoder.num_weight_bytes == num_weights * decoder.embedding.element_size()


def test_a_head_in_bytes_leaves_the_embedding_as_it_is(graphed: Callable[..., Decoder]) -> None:
    decoder = graphed("qwen3", 8)
    num_outputs = NUM_TOKENS + 16 * (3 + 2) + 32 + 2 * 48 + 32  # each has a scale
    num_layer_weights = 32 * 16 * (3 + 2) + 32 * 16 * 3 + 3 * 32 * 48
    table = NUM_TOKENS * 32 * decoder.embedding.element_size()
    assert decoder.num_weight_bytes == table + NUM_TOKENS * 32 + num_layer_weights + 4 * num_outputs


def test_random_trees_kept_and_rewound_leave_the_bits_of_a_plain_run(target: LanguageModel) -> None:
    """Any tree, any true path in it, some of it forgotten again: the cache is that of one long chain."""
    rng = random.Random(1)  # noqa: S311 - as above
    cache, text = KVCache(target.cache_shape), [1, 2, 3]
    target.forward(text, cache, 0)
    cache.keep(text)
    for _ in range(6):
        parents = [-1, *(rng.randrange(max(0, row - 3), row) for row in range(1, rng.randrange(2, 14)))]
        tokens = [rng.randrange(NUM_TOKENS) for _ in parents]
        target.forward(tokens, cache, len(tokens), parents)
        path = [rng.randrange(len(parents))]
        while parents[path[0]] >= 0:
            path.insert(0, parents[path[0]])
        target.keep(cache, parents, path, [tokens[row] for row in path])
        text += [tokens[row] for row in path]
        assert cache.tokens == text
        length = rng.randrange(len(text) - 2, len(text) + 1)
        cache.rewind(length)
        del text[length:]
    plain = KVCache(target.cache_shape)
    target.forward(text, plain, 0)
    plain.keep(text)
    end = len(text)
    assert torch.equal(cache.keys[:, :, :end], plain.keys[:, :, :end])
    assert torch.equal(cache.values[:, :, :end], plain.values[:, :, :end])
    assert torch.equal(cache.hidden[:end], plain.hidden[:end])


def test_two_documents_share_the_captured_passes(target: LanguageModel) -> None:
    texts, caches = ([5, 6, 7], [8, 9, 10]), [KVCache(target.cache_shape) for _ in range(2)]
    for tokens, cache in zip(texts, caches, strict=True):
        target.forward(tokens, cache, 1)
        cache.keep(tokens)
    first = target.forward([1, 2], caches[0], 1)
    alone = KVCache(target.cache_shape)
    target.forward(texts[0], alone, 0)
    alone.keep(texts[0])
    again = target.forward([1, 2], alone, 1)
    assert first is not None
    assert again is not None
    assert torch.equal(first, again)


class Recorder:
    """Captures nothing; remembers what it would have captured."""

    captures = True

    def __init__(self) -> None:
        self.keys: set[Hashable] = set()

    def run(self, key: Hashable, _work: Callable[[], None]) -> None:
        self.keys.add(key)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("num_rows", [1, 8, 9, 24, 31, 33, 200, 256])
def test_no_pass_is_captured_under_a_keystroke(
    num_rows: int, random_model: Callable[[str, torch.dtype], FamilyModel]
) -> None:
    """Whatever the engine may run later was run when the target was made."""
    from completion_engine.gpu.decoder import GraphedDecoder

    recorder = Recorder()
    decoder = GraphedDecoder(random_model("qwen2", torch.float32), CAPACITY, torch.device("cpu"))
    decoder._runner = recorder
    decoder.rehearse()
    chain = lay_out(range(-1, num_rows - 1))
    branched = lay_out([-1, 0, 0, *range(2, num_rows - 1)][:num_rows])
    assert {shape_for(chain, 0), shape_for(chain, 1), shape_for(branched, 3)} <= recorder.keys


@pytest.mark.parametrize("path", [[0, 2], [1, 4, 6], [0, 1, 3, 5], [0, 1]])
def test_what_is_true_moves_into_line_and_nothing_else_moves(path: list[int], target: LanguageModel) -> None:
    layout = Layout((0,) * 7, (Branch(0, 7, tuple(path)),))
    cache, start = KVCache(target.cache_shape), 20
    held = [cache.keys, cache.values, cache.hidden[None, None]]
    for part in held:
        part.copy_(torch.randn(part.shape, generator=torch.Generator().manual_seed(1)))
    cache.keep([0] * start)
    wanted = [part.clone() for part in held]
    for part in wanted:
        part[:, :, start : start + len(path)] = part[:, :, [start + row for row in path]]
    InPlaceBranches().keep(cache, layout, path, [1] * len(path))
    assert cache.num_cached == start + len(path)
    for part, right in zip(held, wanted, strict=True):
        assert torch.equal(part, right)


def test_rows_that_do_not_fit_are_refused(target: LanguageModel) -> None:
    cache = KVCache(target.cache_shape)
    cache.keep([0] * (CAPACITY - 7))
    with pytest.raises(ValueError, match="do not fit"):
        target.forward([1, 2, 3], cache, 1, [-1, 0, 0])
