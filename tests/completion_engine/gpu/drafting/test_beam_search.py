"""The drafter on our kernels computes what its formula says, and drafts the likeliest paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from completion_engine.drafting.distilled import NUM_BEAMS, DrafterFiles
from completion_engine.drafting.drafter_network import EPS
from completion_engine.drafting.drafts import Draft
from completion_engine.gpu.weights import hold
from completion_engine.loading.drafters import load_trained
from completion_engine.target_model.decoder import InPlaceBranches
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import rotate
from completion_engine.target_model.weights import Precision

PROMPT = [3, 14, 15, 9, 26, 5, 35, 8]
NUM_DEPTHS = 3  # that the random drafter has temperatures for


@pytest.fixture(scope="module")
def drafter(
    random_drafter: DrafterFiles, target: LanguageModel, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    folder = tmp_path_factory.mktemp("drafter")
    random_drafter.save(folder)
    return load_trained(folder, target)


@pytest.fixture
def primed(target: LanguageModel) -> Callable[[int], KVCache]:
    """A cache that holds all of the prompt but its last few tokens."""

    def prime(num_left: int) -> KVCache:
        cache = KVCache(target.cache_shape)
        target.forward(PROMPT[:-num_left], cache, 0)
        cache.keep(PROMPT[:-num_left])
        return cache

    return prime


class Formula:
    """The step of a drafter in float64, word for word as the network is defined."""

    def __init__(self, files: DrafterFiles, target: LanguageModel, cache: KVCache) -> None:
        self.w = {name: weight.bfloat16().double() for name, weight in files.weights.items()}
        self.embedding, self.head = (
            target.decoder.embedding.cpu().double(),
            target.decoder.head_rows(files.tokens).cpu().double(),
        )
        cos, sin = target.decoder.rotary or (torch.empty(0), torch.empty(0))
        self.cos, self.sin = cos.cpu().double(), sin.cpu().double()
        self.shape, end = files.shape, cache.num_cached
        self.keys = cache.keys[files.shape.memory_layer, :, :end].cpu().double()
        self.values = cache.values[files.shape.memory_layer, :, :end].cpu().double()

    def normed(self, x: Tensor, name: str) -> Tensor:
        return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * self.w[name]

    def step(self, token: int, state: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """The state [hidden_size] and logits [num_tokens] after `token`."""
        w, size = self.w, self.shape.head_size
        x = w["embedding"] @ self.normed(self.embedding[token], "embedding_norm")
        x = x + w["state"] @ self.normed(state, "state_norm")
        query = w["query"] @ self.normed(x, "attention_norm") + w["query_bias"]
        query = rotate(query.view(1, -1, size), self.cos[position], self.sin[position])[0]
        keys, values = (
            part.repeat_interleave(len(query) // len(part), 0) for part in (self.keys, self.values)
        )
        shares = (torch.einsum("hd,hkd->hk", query, keys) * size**-0.5).softmax(-1)
        x = x + w["attended"] @ torch.einsum("hk,hkd->hd", shares, values).flatten()
        gate, up = (w["gate_up"] @ self.normed(x, "mlp_norm")).chunk(2)
        x = x + w["down"] @ (torch.nn.functional.silu(gate) * up)
        state = self.normed(x, "output_norm")
        return state, self.head @ state

    def follow(self, tokens: Sequence[int], state: Tensor, position: int) -> Tensor:
        """Logits after several tokens; `position` is that of the first."""
        for at, token in enumerate(tokens):
            state, logits = self.step(token, state, position + at)
        return logits


def paths_of(draft: Draft) -> list[list[int]]:
    """For each guess the tokens on the way to it, itself included."""
    found: list[list[int]] = []
    for guess in draft:
        above = found[guess.parent] if guess.parent >= 0 else []
        found.append([*above, guess.token])
    return found


def ask(drafter: Any, cache: KVCache, *, allowed: Any = bool, min_probability: float = 0.0) -> Draft:
    drafter.begin(PROMPT, cache)
    found = drafter.drafts(8, lambda token: allowed(token + 1), min_probability)
    return found[0] if found else ()


@pytest.mark.parametrize("num_left", [1, 3])
def test_shares_are_those_of_the_formula(
    num_left: int,
    random_drafter: DrafterFiles,
    drafter: Any,
    target: LanguageModel,
    primed: Callable[[int], KVCache],
) -> None:
    """After one token that is not cached yet and after several, at every depth and in every beam."""
    cache = primed(num_left)
    draft = ask(drafter, cache)
    formula = Formula(random_drafter, target, cache)
    state = cache.hidden[cache.num_cached - 1].cpu().double()
    tolerance = 2e-2 if target.device.type == "cuda" else 2e-3
    for guess, path in zip(draft, paths_of(draft), strict=True):
        logits = formula.follow([*PROMPT[-num_left:], *path[:-1]], state, cache.num_cached)
        shares = (logits / random_drafter.temperatures[guess.match_length]).softmax(-1)
        assert guess.probability == pytest.approx(float(shares[guess.token // 2]), rel=tolerance)
    assert {guess.match_length for guess in draft} == {0, 1, 2}


def in_bytes(files: DrafterFiles) -> DrafterFiles:
    """The drafter with its matrices rounded as the kernels hold them in 8 bits."""

    def rounded(weight: Tensor) -> Tensor:
        return hold(weight.bfloat16(), 8).dense(torch.float32) if weight.ndim == 2 else weight

    weights = {name: rounded(weight) for name, weight in files.weights.items()}
    joined = rounded(torch.cat([files.weights["embedding"], files.weights["state"]], 1))
    weights["embedding"], weights["state"] = joined.chunk(2, 1)
    return replace(files, weights=weights)


def test_beside_layers_in_bytes_it_is_held_in_bytes(
    random_drafter: DrafterFiles,
    drafter: Any,
    graphed: Callable[..., Any],
    device: torch.device,
    tmp_path: Path,
) -> None:
    decoder = graphed("qwen2", 8)
    dtype, branches = decoder.embedding.dtype, InPlaceBranches(decoder.move)
    target = LanguageModel(decoder, device, Precision("int8", dtype, "int8"), 300, branches)
    random_drafter.save(tmp_path)
    small: Any = load_trained(tmp_path, target)
    assert small.search.network.num_bytes < 0.6 * drafter.search.network.num_bytes
    cache = KVCache(target.cache_shape)
    target.forward(PROMPT[:-1], cache, 0)
    cache.keep(PROMPT[:-1])
    draft = ask(small, cache)
    formula = Formula(in_bytes(random_drafter), target, cache)
    state, tolerance = cache.hidden[-1 + cache.num_cached].cpu().double(), 2e-2
    for guess, path in zip(draft, paths_of(draft), strict=True):
        logits = formula.follow([PROMPT[-1], *path[:-1]], state, cache.num_cached)
        shares = (logits / random_drafter.temperatures[guess.match_length]).softmax(-1)
        assert guess.probability == pytest.approx(float(shares[guess.token // 2]), rel=tolerance)


def test_the_likeliest_token_of_the_likeliest_paths_is_found(
    random_drafter: DrafterFiles, drafter: Any, target: LanguageModel, primed: Callable[[int], KVCache]
) -> None:
    cache = primed(1)
    draft = ask(drafter, cache)
    formula = Formula(random_drafter, target, cache)
    state = cache.hidden[cache.num_cached - 1].cpu().double()
    best = PROMPT[-1:]
    for depth in range(NUM_DEPTHS):
        logits = formula.follow(best, state, cache.num_cached)
        best.append(int(random_drafter.tokens[logits.argmax()]))
        assert best[1:] in [path for path in paths_of(draft) if len(path) == depth + 1]


def test_paths_that_go_on_are_the_likeliest_of_their_depth(
    drafter: Any, primed: Callable[[int], KVCache]
) -> None:
    draft = ask(drafter, primed(1))
    survivals: list[float] = []
    for guess in draft:
        survivals.append(guess.probability * (survivals[guess.parent] if guess.parent >= 0 else 1.0))
    for depth in range(NUM_DEPTHS - 1):
        here = [at for at, guess in enumerate(draft) if guess.match_length == depth]
        followed = {guess.parent for guess in draft if guess.match_length == depth + 1}
        assert followed <= set(sorted(here, key=lambda at: -survivals[at])[:NUM_BEAMS])


def test_nothing_but_what_is_allowed_comes_first(drafter: Any, primed: Callable[[int], KVCache]) -> None:
    cache = primed(1)
    first = next(guess.token for guess in ask(drafter, cache))
    draft = ask(drafter, cache, allowed=lambda token: token - 1 != first)
    assert draft
    assert all(path[0] != first for path in paths_of(draft))
    assert ask(drafter, cache, allowed=lambda _: False) == ()


def test_unlikely_paths_are_not_followed(drafter: Any, primed: Callable[[int], KVCache]) -> None:
    draft = ask(drafter, primed(1), min_probability=0.9999)
    assert {guess.match_length for guess in draft} == {0}


def test_nothing_is_guessed_where_the_cache_ends(drafter: Any, target: LanguageModel) -> None:
    cache = KVCache(target.cache_shape)
    cache.keep([0] * (cache.capacity - 3))
    drafter.begin([0] * (cache.capacity - 2), cache)
    assert drafter.drafts(8, bool, 0.0) == []


def test_work_that_is_captured_may_run_twice(drafter: Any, primed: Callable[[int], KVCache]) -> None:
    """Before a graph is captured its work runs a few times, and leaves its input as it was."""
    cache = primed(3)
    once = ask(drafter, cache)

    class Thrice:
        captures = False

        def run(self, _key: object, work: Callable[[], None]) -> None:
            for _ in range(3):
                work()

    drafter._runner, runner = Thrice(), drafter._runner
    try:
        assert ask(drafter, cache) == once
    finally:
        drafter._runner = runner
