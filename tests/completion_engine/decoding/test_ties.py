"""One order everywhere: the largest first, of equals the lowest token; so a re-used pick stays the pick."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from completion_engine.config import EngineConfig
from completion_engine.cpu.kernels import top_k
from completion_engine.cpu.kernels.language import array_of
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.picking import likeliest_of, likeliest_tokens
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.target_model import exactness
from completion_engine.target_model.language_model import LanguageModel

NUM_BEST = 4
TYPES = st.sampled_from([torch.bfloat16, torch.float32])
HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"


@st.composite
def tied(draw: st.DrawFn) -> Tensor:
    """A row of logits with many equal ones, as wide as a few of the kernels' blocks."""
    few = draw(st.lists(st.sampled_from([-3.5, -0.0, 0.0, 0.5, 2.0]), min_size=1, max_size=4))
    width, seed = draw(st.integers(NUM_BEST, 700)), draw(st.integers(0, 2**31))
    places = torch.randint(0, len(few), (width,), generator=torch.Generator().manual_seed(seed))
    return torch.tensor(few)[places].to(draw(TYPES))


def in_order(row: Tensor) -> list[int]:
    """Tokens by the one order, spelt out."""
    numbers = row.tolist()
    return sorted(range(len(numbers)), key=lambda token: (-numbers[token], token))


def by_kernel(kernel: Callable[..., None], row: Tensor, *more: float) -> list[int]:
    places, shares = np.empty((1, NUM_BEST), np.int64), np.empty((1, NUM_BEST), np.float32)
    kernel(array_of(row[None]), *more, places, shares)
    return [int(place) for place in places[0]]


@settings(deadline=None)
@given(tied())
def test_every_way_to_look_for_the_best_keeps_the_order(row: Tensor) -> None:
    wanted = in_order(row)[:NUM_BEST]
    assert likeliest_tokens(row[None], len(row)) == wanted[:1]
    assert by_kernel(top_k.likeliest, row, 1.0) == wanted
    assert exactness.first_largest(row.expand(3, -1)).tolist() == wanted[:1] * 3


@settings(deadline=None)
@given(tied(), st.data())
def test_a_bound_pick_keeps_the_order_however_the_choice_is_listed(row: Tensor, data: st.DataObject) -> None:
    tokens = st.integers(0, len(row) - 1)
    allowed = data.draw(st.lists(tokens, min_size=1, max_size=20, unique=True))
    wanted = next(token for token in in_order(row) if token in allowed)
    assert likeliest_of(row, allowed) == wanted


@settings(max_examples=20, deadline=None)
@given(tied(), st.integers(0, 2**31))
def test_a_pick_is_the_pick_of_every_narrower_choice_that_holds_it(row: Tensor, seed: int) -> None:
    (token,) = likeliest_tokens(row[None], len(row))
    rng, choice = random.Random(seed), list(range(len(row)))  # noqa: S311 - reproducible draws, no secrets
    for _ in range(4):
        choice = [token, *rng.sample([other for other in choice if other != token], len(choice) // 2)]
        rng.shuffle(choice)
        assert likeliest_of(row, choice) == token


class Coarse:
    """A decoder with a head of so few levels that many tokens are equally likely, the likeliest too."""

    def __init__(self, decoder: Any) -> None:
        self.decoder = decoder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.decoder, name)

    def forward(self, *arguments: Any) -> Tensor:
        logits: Tensor = self.decoder.forward(*arguments)
        return (logits / 2).round().clamp(-1, 1)


@pytest.fixture(scope="module")
def coarse(target: LanguageModel) -> LanguageModel:
    return LanguageModel(Coarse(target.decoder), target.device, target.precision, 512)  # type: ignore[arg-type]


class Free:
    def stop(self, generated: str) -> None:
        return None

    def boundary(self, generated: str) -> int:
        return len(generated)


@pytest.mark.parametrize("drafters", [(), ("ngram",)])
@pytest.mark.parametrize("prefix", [HEAD * 3, HEAD + "        re", "x = f(", HEAD + "    retu", "#" * 30])
def test_typing_along_equally_likely_tokens_is_answered_as_from_the_start(
    coarse: LanguageModel, tokenizer: Tokenizer, prefix: str, drafters: Sequence[str]
) -> None:
    def engine() -> CompletionEngine:
        config = EngineConfig(target="tiny", prefix_chars=400, suffix_chars=200, drafters=tuple(drafters))  # type: ignore[arg-type]
        return CompletionEngine(config, coarse, tokenizer)

    def write(by: CompletionEngine, text: str) -> Decoding:
        request = CompletionRequest(text, "\n", "python", "a.py", deadline_ms=0.0)
        return by.write(request, Free(), 6)

    kept = engine()
    text = write(kept, prefix).written.text
    for num_typed in range(1, min(9, len(text))):
        typed = prefix + text[:num_typed]
        again, fresh = (write(by, typed).tokens[:6] for by in (kept, engine()))
        assert again == fresh
