"""With repository bias the target is a mixture, and drafts change nothing about that either."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.decoding.ending import Finish
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.picking import OpenRows, Picker, RepositoryBias, likeliest_of
from completion_engine.decoding.preparation import bias_for
from completion_engine.decoding.reuse import Slot
from completion_engine.drafting.drafts import DraftScope
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from ngram_cache import NgramIndex
from tests.completion_engine.decoding.mixture import mixed
from tests.completion_engine.decoding.plain import complete_checked

Make = Callable[..., CompletionEngine]
NUM_TOKENS = 16
HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
healings = st.sampled_from([b"", b"re", b"    "])


def bias_of(index: NgramIndex, num_tokens: int) -> RepositoryBias:
    return RepositoryBias(index.view(), num_tokens)


@pytest.mark.parametrize(
    ("documents", "context", "weight", "share"),
    [
        ([[1, 2, 3, 4]], [1, 2, 3], 3 / 19 / 1.9, {4: 1.0}),
        ([[1, 2, 3, 4], [9, 1, 2, 3, 5], [1, 2, 3, 5]], [7, 1, 2, 3], 3 / 19 * 3 / 3.9, {4: 1 / 3, 5: 2 / 3}),
        ([[0, 1, 2, 3, 4], [1, 2, 3, 5]], [0, 1, 2, 3], 4 / 20 / 1.9, {4: 1.0}),
        ([[1, 2, 3, 4]], [0, 2, 3], 0.0, {}),
        ([[1, 2, 3, 30]], [1, 2, 3], 0.0, {}),
    ],
    ids=["one", "two tokens", "the longest match alone", "too short a match", "no token of the target"],
)
def test_the_mixture_is_what_its_formula_says(
    documents: list[list[int]], context: list[int], weight: float, share: dict[int, float]
) -> None:
    bias = bias_of(NgramIndex([(str(at), tokens) for at, tokens in enumerate(documents)]), 20)
    logits = torch.randn(32, generator=torch.Generator().manual_seed(1)) * 3
    expected = (1 - weight) * torch.softmax(logits[:20], -1)
    for token, part in share.items():
        expected[token] += weight * part
    found = torch.softmax(mixed(bias, logits, context), -1)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1000), healed=healings)
def test_the_pick_is_the_mixtures_best(tokenizer: Tokenizer, seed: int, healed: bytes) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, tokenizer.num_tokens, generator=generator).round(decimals=1)
    seen = torch.randint(0, tokenizer.num_tokens, (40,), generator=generator).tolist()
    documents = [(str(at), [1, 2, 3, token]) for at, token in enumerate(seen)]
    bias = bias_of(NgramIndex(documents), tokenizer.num_tokens)
    bound = HealingConstraint(tokenizer, healed)
    rows = OpenRows([1, 2, 3], [3], [-1], bound)
    allowed = bound.candidates() if healed else range(tokenizer.num_tokens)
    expected = likeliest_of(mixed(bias, logits[0], [1, 2, 3]), allowed)
    assert Picker(tokenizer.num_tokens, bias).pick(rows, logits).tokens == [expected]


@pytest.fixture(scope="session")
def write_mixed(
    writer: Callable[..., Callable[..., tuple[Decoding, Finish]]], target: LanguageModel, tokenizer: Tokenizer
) -> Callable[..., Decoding]:
    write = writer(target)

    def mixed(
        prompt: Sequence[int],
        bias: RepositoryBias | None,
        drafters: Sequence[object] = (),
        **more: object,
    ) -> Decoding:
        return write(prompt, drafters, bias=bias, num_tokens=NUM_TOKENS, **more)[0]

    return mixed


Write = Callable[..., Decoding]


def wound(tokens: Sequence[int]) -> NgramIndex:
    """An index in which every run of three of the tokens goes on with another one than they do."""
    return NgramIndex(
        (f"{at}.{copy}", [*tokens[max(0, at - 20) : at], (tokens[at] + 1 + at % 7) % 900 + 9])
        for at in range(3, len(tokens))
        for copy in range(9)
    )


@settings(max_examples=40, deadline=None)
@given(
    prompt=st.lists(st.integers(9, 900), min_size=4, max_size=60),
    healed=healings,
    num_right=st.integers(0, NUM_TOKENS),
)
def test_no_draft_changes_what_the_mixture_writes(
    write_mixed: Write,
    scripted: Callable[[object], object],
    tokenizer: Tokenizer,
    prompt: list[int],
    healed: bytes,
    num_right: int,
) -> None:
    """The drafts are the mixture's own text, then the bare target's, then branches of both."""
    options = {"healed": healed}
    bare = write_mixed(prompt, None, **options).tokens
    index = wound([*prompt, *bare])
    bias = bias_of(index, tokenizer.num_tokens)
    plain = write_mixed(prompt, bias, **options).tokens

    def script(path: list[int]) -> list[tuple[int, int]]:
        done = len(path) - len(prompt)
        first = [*plain[done : done + num_right], *bare[done:]][:12]
        other = bare[done : done + 4]
        chained = [(token, at - 1) for at, token in enumerate(first)]
        return chained + [(token, len(first) + at - 1 if at else -1) for at, token in enumerate(other)]

    ngram = NgramDrafter()
    ngram.enter(DraftScope("", "", index))
    drafted = write_mixed(prompt, bias, [scripted(script), ngram], **options).tokens
    assert drafted[:NUM_TOKENS] == plain[:NUM_TOKENS]


def test_a_repository_that_contradicts_the_target_is_heard(write_mixed: Write, tokenizer: Tokenizer) -> None:
    prompt = list(range(40, 80))
    bare = write_mixed(prompt, None).tokens
    mixed = write_mixed(prompt, bias_of(wound([*prompt, *bare]), tokenizer.num_tokens)).tokens
    assert mixed[0] == (bare[0] + 1 + len(prompt) % 7) % 900 + 9


def test_a_text_keeps_its_view_and_the_next_one_has_its_own(
    write_mixed: Write, target: LanguageModel, tokenizer: Tokenizer
) -> None:
    prompt = list(range(40, 80))
    bare = write_mixed(prompt, None).tokens
    index = wound([*prompt, *bare])
    slot = Slot(KVCache(target.cache_shape))
    first = write_mixed(prompt, bias_of(index, tokenizer.num_tokens), slot=slot)
    for path in index.paths:
        index.update(path, [5])
    now = bias_of(index, tokenizer.num_tokens)
    along = write_mixed([*prompt, *first.tokens[:4]], now, slot=slot)
    assert along.bias is first.bias
    assert along.tokens[: NUM_TOKENS - 4] == first.tokens[4:NUM_TOKENS]
    assert write_mixed(prompt[:-1], now, slot=slot).bias is now
    assert write_mixed(prompt, None, slot=slot).tokens == bare


def request(prefix: str, index: NgramIndex, **options: object) -> CompletionRequest:
    options = {"deadline_ms": 0.0, "max_tokens": 32, "repository_memory": "on", **options}
    return CompletionRequest(prefix, "\n", "python", "a.py", index=index, **options)  # type: ignore[arg-type]


def index_of(engine: CompletionEngine, *texts: str) -> NgramIndex:
    """Each text ten times."""
    encoded = [engine.tokenizer.encode(text) for text in texts for _ in range(10)]
    return NgramIndex((f"{at}.py", tokens) for at, tokens in enumerate(encoded))


def test_plain_decoding_with_the_same_bias_writes_the_same(make_engine: Make) -> None:
    engine = make_engine()
    index = index_of(engine, HEAD + "        result.append(argument)\n    return result\n")
    shown = complete_checked(engine, request(HEAD + "        res", index))
    assert shown.text == "ult.append(argument)"
    assert (
        shown.text
        != make_engine().complete(request(HEAD + "        res", index, repository_memory="off")).text
    )


def test_alternatives_are_weighed_by_the_mixture_too(make_engine: Make) -> None:
    engine = make_engine()
    index = index_of(
        engine, HEAD + "        result.append(argument)\n", HEAD + "        result.extend(argument)\n"
    )
    shown = engine.complete(request(HEAD + "        result.", index, num_candidates=2))
    texts = [shown.text, *(other.text for other in shown.alternatives)]
    assert sorted(texts) == ["append(argument)", "extend(argument)"]


@pytest.mark.parametrize(
    ("wish", "is_usual", "has_index", "is_mixed"),
    [
        ("auto", True, True, True),
        ("auto", False, True, False),
        ("on", False, True, True),
        ("off", True, True, False),
        ("on", True, False, False),
    ],
)
def test_the_wish_decides_and_auto_leaves_it_to_the_model(
    wish: str, is_usual: bool, has_index: bool, is_mixed: bool
) -> None:
    index = NgramIndex([("b.py", [1, 2, 3])]) if has_index else NgramIndex()
    asked = request("", index, repository_memory=wish)
    assert (bias_for(asked, 9, is_usual=is_usual) is not None) == is_mixed
