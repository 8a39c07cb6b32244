"""Distilled drafters: their inputs, their trees, and the files that they refuse."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from completion_engine.cpu.linear import QuantisedLinear, can_quantise, packed
from completion_engine.drafting import drafter_network
from completion_engine.drafting.distilled import (
    CONFIG,
    WEIGHTS,
    DistilledDrafter,
    DrafterFiles,
    load_distilled,
)
from completion_engine.drafting.drafter_network import (
    DistilledNetwork,
    DrafterShape,
    Preview,
    PreviewedHead,
)
from completion_engine.drafting.drafts import Draft
from completion_engine.errors import DataError, UserError
from completion_engine.loading.model import load_language_model
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from scripts.distillation.trained_network import Batch, DrafterNetwork

needs_bytes = pytest.mark.skipif(
    not can_quantise(torch.device("cpu")), reason="no fast products of bytes here"
)
PROMPT = [40 + 7 * at % 200 for at in range(30)]


@pytest.fixture(scope="module")
def shape(target: LanguageModel) -> DrafterShape:
    cache = target.cache_shape
    return DrafterShape(
        num_layers=cache.num_layers,
        num_kv_heads=cache.num_kv_heads,
        head_size=cache.head_size,
        hidden_size=cache.hidden_size,
        vocab_size=target.vocab_size,
        memory_layer=1,
        num_heads=4,
        mlp_size=64,
        num_tokens=200,
    )


@pytest.fixture(scope="module")
def files(shape: DrafterShape) -> DrafterFiles:
    generator = torch.Generator().manual_seed(3)
    weights = {name: torch.randn(size, generator=generator) * 0.2 for name, size in shape.sizes.items()}
    weights["output_norm"] = torch.full((shape.hidden_size,), 2.0)  # a network that is sure of itself
    tokens = torch.randperm(shape.vocab_size, generator=generator)[: shape.num_tokens].int()
    all_of_it = torch.eye(shape.hidden_size)
    return DrafterFiles("tiny", shape, (1.0, 0.8), tokens, weights, Preview(all_of_it, all_of_it))


@pytest.fixture
def folder(files: DrafterFiles, tmp_path: Path) -> Path:
    files.save(tmp_path / "drafter")
    return tmp_path / "drafter"


@pytest.fixture
def cache(target: LanguageModel) -> KVCache:
    cache = KVCache(target.cache_shape)
    target.forward(PROMPT, cache, 0)
    cache.keep(PROMPT)
    return cache


@pytest.fixture
def drafter(folder: Path, target: LanguageModel) -> DistilledDrafter:
    return load_distilled(folder, target)


def drafts_after(
    drafter: DistilledDrafter,
    cache: KVCache,
    written: list[int],
    max_tokens: int = 4,
    min_probability: float = 0.0,
    allowed: Callable[[int], bool] = bool,
) -> list[Draft]:
    drafter.begin(PROMPT, cache)
    drafter.extend(written)
    return drafter.drafts(max_tokens, allowed, min_probability)


def depths_of(draft: Draft) -> list[int]:
    depths: list[int] = []
    for guess in draft:
        depths.append(depths[guess.parent] + 1 if guess.parent >= 0 else 0)
    return depths


def test_parents_stand_before_their_children_and_depths_grow_by_one(
    drafter: DistilledDrafter, cache: KVCache
) -> None:
    (draft,) = drafts_after(drafter, cache, [5])
    assert all(guess.parent < at for at, guess in enumerate(draft))
    assert depths_of(draft) == [guess.match_length for guess in draft]
    assert {(guess.source, guess.read_from) for guess in draft} == {("neural", "distilled")}


def test_no_two_guesses_behind_one_place_are_the_same(drafter: DistilledDrafter, cache: KVCache) -> None:
    (draft,) = drafts_after(drafter, cache, [5])
    places = [(guess.parent, guess.token) for guess in draft]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("max_tokens", [1, 2, 3])
def test_a_draft_is_at_most_as_deep_as_asked(
    drafter: DistilledDrafter, cache: KVCache, max_tokens: int
) -> None:
    (draft,) = drafts_after(drafter, cache, [5], max_tokens)
    assert max(depths_of(draft)) < max_tokens


def test_nothing_is_drafted_behind_a_path_that_hardly_survives(
    drafter: DistilledDrafter, cache: KVCache
) -> None:
    (draft,) = drafts_after(drafter, cache, [5], min_probability=1.1)
    assert set(depths_of(draft)) == {0}


def test_guesses_are_tokens_of_its_own_vocabulary(
    drafter: DistilledDrafter, cache: KVCache, files: DrafterFiles
) -> None:
    (draft,) = drafts_after(drafter, cache, [5])
    assert {guess.token for guess in draft} <= set(files.tokens.tolist())


def test_shares_behind_one_place_are_a_distribution(drafter: DistilledDrafter, cache: KVCache) -> None:
    (draft,) = drafts_after(drafter, cache, [5])
    for place in {guess.parent for guess in draft}:
        assert 0 < sum(guess.probability for guess in draft if guess.parent == place) <= 1 + 1e-4


def test_first_guesses_are_allowed_and_share_what_is_allowed(
    drafter: DistilledDrafter, cache: KVCache
) -> None:
    (free,) = drafts_after(drafter, cache, [5], 1)
    forbidden = free[0].token
    (draft,) = drafts_after(drafter, cache, [5], 1, allowed=lambda token: token != forbidden)
    assert forbidden not in {guess.token for guess in draft}
    assert draft[0].token == free[1].token
    assert draft[0].probability > free[1].probability


def test_nothing_allowed_gives_no_draft(drafter: DistilledDrafter, cache: KVCache) -> None:
    assert drafts_after(drafter, cache, [5], allowed=lambda _: False) == []


def test_a_draft_depends_on_what_is_cached_and_written_alone(
    drafter: DistilledDrafter, cache: KVCache, target: LanguageModel
) -> None:
    first = drafts_after(drafter, cache, [5])
    other = KVCache(target.cache_shape)
    other.keep(PROMPT[:12])
    drafts_after(drafter, other, PROMPT[12:14])
    assert drafts_after(drafter, cache, [5]) == first


def test_drafts_go_on_from_the_target_own_state_once_it_is_cached(
    drafter: DistilledDrafter, cache: KVCache, target: LanguageModel
) -> None:
    before = drafts_after(drafter, cache, [5, 9])
    target.forward([5], cache, 0)
    cache.keep([5])
    after = drafts_after(drafter, cache, [5, 9])
    assert [guess.probability for guess in before[0]] != [guess.probability for guess in after[0]]


@pytest.mark.parametrize("written", [[], [1] * 9])
def test_an_empty_or_long_run_of_uncached_tokens_is_not_drafted_from(
    drafter: DistilledDrafter, cache: KVCache, written: list[int]
) -> None:
    assert drafts_after(drafter, cache, written) == []


def test_an_empty_cache_is_not_drafted_from(drafter: DistilledDrafter, target: LanguageModel) -> None:
    drafter.begin([5], KVCache(target.cache_shape))
    assert drafter.drafts(4, bool, 0.0) == []


def test_a_draft_stops_at_the_end_of_the_cache(drafter: DistilledDrafter, target: LanguageModel) -> None:
    cache = KVCache(target.cache_shape)
    cache.keep([1] * (cache.capacity - 2))
    drafter.begin(cache.tokens, cache)
    drafter.extend([5])
    (draft,) = drafter.drafts(16, bool, 0.0)
    assert max(depths_of(draft)) <= 1


def test_measuring_a_step_leaves_no_trace(drafter: DistilledDrafter) -> None:
    assert drafter.step_ms > 0
    assert drafter.num_bytes > 0
    assert drafter.drafts(4, bool, 0.0) == []


@torch.no_grad()
def test_the_trained_network_and_the_fast_one_guess_alike(
    files: DrafterFiles, target: LanguageModel, cache: KVCache
) -> None:
    """Training and drafting have their own code for the same products; three steps in a row compare them."""
    fast = DistilledNetwork(files.weights, files.tokens, files.shape, target)
    trained = DrafterNetwork(files.shape, target)
    for name, weight in files.weights.items():
        trained.weights[name].copy_(weight)
    num = cache.num_cached
    layer = files.shape.memory_layer
    batch = Batch(
        torch.tensor([PROMPT]),
        cache.hidden[None, :num].float(),
        cache.keys[None, layer, :, :num].float(),
        cache.values[None, layer, :, :num].float(),
        torch.ones(1, num, dtype=torch.bool),
    )
    slow_states, fast_states = batch.hidden, cache.hidden[num - 1 : num]
    for depth, token in enumerate([5, 9, 11]):
        row = torch.full((1, num), token)
        slow_states = trained.step(row, slow_states, batch, torch.arange(num) + 1 + depth)
        fast_states, _ = fast.step(torch.tensor([token]), fast_states, cache, num + depth)
        expected = slow_states[0, -1]
        distance = (fast_states[0].float() - expected).norm() / expected.norm()
        assert distance < 0.08  # bf16 or bytes against float32


@pytest.mark.parametrize("change", [{"num_layers": 9}, {"hidden_size": 32}, {"vocab_size": 77}])
def test_a_drafter_of_another_target_is_refused(
    target: LanguageModel, shape: DrafterShape, change: dict[str, int]
) -> None:
    with pytest.raises(UserError, match="another target"):
        dataclasses.replace(shape, **change).check_target(target)


@needs_bytes
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_rows_of_a_laid_out_weight_can_be_read_back(dtype: torch.dtype) -> None:
    """The drafter takes the head's rows from the target, which holds them in the machine's own layout."""
    weight = torch.randn(96, 64, generator=torch.Generator().manual_seed(2)).to(dtype)
    chosen = torch.tensor([5, 80, 0])
    found = QuantisedLinear(packed(weight)).rows(chosen)
    torch.testing.assert_close(found.to(dtype), weight[chosen], atol=0.02, rtol=0.02)


@needs_bytes
def test_a_preview_finds_what_the_whole_head_finds() -> None:
    """States in few directions; other differences may be lost."""
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(4000, 64, generator=generator)
    directions = torch.linalg.qr(torch.randn(64, 8, generator=generator)).Q
    states = torch.randn(50, 8, generator=generator) @ directions.T
    head = PreviewedHead(rows, Preview(directions.T, directions))
    exact = states @ rows.T
    best, places = head(states).topk(4)
    torch.testing.assert_close(best, exact.gather(1, places), atol=0.1, rtol=0.01)  # weights in bytes
    torch.testing.assert_close(best, exact.topk(4).values, atol=0.1, rtol=0.01)


@needs_bytes
def test_a_step_by_torch_is_near_the_compiled_one(
    files: DrafterFiles, target: LanguageModel, cache: KVCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step() -> tuple[torch.Tensor, torch.Tensor]:
        network = DistilledNetwork(files.weights, files.tokens, files.shape, target)
        states = cache.hidden[cache.num_cached - 1 : cache.num_cached].expand(2, -1)
        return network.step(torch.tensor([5, 9]), states, cache, cache.num_cached)

    with torch.inference_mode():
        compiled = step()
        monkeypatch.setattr(drafter_network, "can_quantise", lambda _device: False)
        for found, wanted in zip(step(), compiled, strict=True):
            assert (found.float() - wanted).norm() < 0.08 * wanted.norm()


def test_what_was_saved_is_read_back(files: DrafterFiles, folder: Path) -> None:
    read = DrafterFiles.read(folder)
    assert (read.target, read.shape, read.temperatures) == ("tiny", files.shape, (1.0, 0.8))
    assert torch.equal(read.tokens, files.tokens)
    assert all(torch.equal(read.weights[name], w.bfloat16()) for name, w in files.weights.items())
    assert torch.equal(read.preview.widen, files.preview.widen.bfloat16())
    assert torch.equal(read.preview.narrow, files.preview.narrow.bfloat16())


def _zero_weights(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:-64] + bytes(64))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / WEIGHTS).unlink(),
        lambda folder: (folder / WEIGHTS).write_bytes(b"\x10"),
        _zero_weights,
        lambda folder: (folder / CONFIG).write_text("{"),
        lambda folder: _change(folder, "format", 99),
        lambda folder: _change(folder, "temperatures", []),
        lambda folder: _change(folder, "temperatures", [0.0]),
        lambda folder: _change(folder, "shape", {}),
        lambda folder: _change_shape(folder, "mlp_size", 65),
        lambda folder: _change_shape(folder, "vocab_size", 3),
        lambda folder: _change_weights(folder, lambda weights: weights.pop("preview_narrow")),
        lambda folder: _change_weights(folder, lambda weights: weights["preview_widen"].resize_(3, 5)),
    ],
)
def test_damaged_files_are_named_with_advice(folder: Path, damage: Callable[[Path], object]) -> None:
    damage(folder)
    with pytest.raises(DataError, match="cannot be read") as caught:
        DrafterFiles.read(folder)
    assert "train your own" in caught.value.advice


def _change(folder: Path, key: str, value: object) -> None:
    told = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(told | {key: value}))


def _change_shape(folder: Path, key: str, value: int) -> None:
    told = json.loads((folder / CONFIG).read_text())
    _change(folder, "shape", told["shape"] | {key: value})


def _change_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS)


def test_a_target_whose_rotation_is_not_known_is_refused(folder: Path, tmp_path: Path) -> None:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=512,
    )  # fmt: skip
    GPTNeoXForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path / "neox")
    target = load_language_model(tmp_path / "neox", "cpu", "auto", 256)
    files = DrafterFiles.read(folder)
    shape = dataclasses.replace(
        files.shape, num_kv_heads=target.cache_shape.num_kv_heads, vocab_size=target.vocab_size
    )
    with pytest.raises(UserError, match="architecture"):
        DistilledNetwork(files.weights, files.tokens, shape, target)
