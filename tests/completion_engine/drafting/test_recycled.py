"""Drafts from the target's own earlier logits."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from completion_engine.decoding.ending import Finish
from completion_engine.decoding.loop import Decoding
from completion_engine.drafting import recycled
from completion_engine.drafting.drafts import Draft, Pass
from completion_engine.drafting.recycled import NUM_SUCCESSORS, RecycledDrafter, successors
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

NUM_TOKENS = 64
Write = Callable[..., tuple[Decoding, Finish]]


def anything(token: int) -> bool:
    return token >= 0


def logits_of(*rows: dict[int, float]) -> Tensor:
    """Logits under which each row's tokens have the probabilities given, and all others next to none."""
    logits = torch.full((len(rows), NUM_TOKENS), -30.0)
    for at, row in enumerate(rows):
        for token, probability in row.items():
            logits[at, token] = torch.tensor(probability).log()
    return logits


@pytest.fixture
def drafter(target: LanguageModel) -> RecycledDrafter:
    drafter = RecycledDrafter()
    drafter.begin([1, 2, 3], KVCache(target.cache_shape))
    return drafter


def see(
    drafter: RecycledDrafter,
    rows: Sequence[tuple[int, int]],
    *said: dict[int, float],
    path: Sequence[int] = (0,),
) -> None:
    """One pass with rows of (token, parent), and what the target says after each."""
    tokens, parents = [token for token, _ in rows], [parent for _, parent in rows]
    picked = [max(row, key=lambda token: row[token]) for row in said]
    drafter.observe(Pass(tokens, parents, logits_of(*said), picked, path))


def paths_of(tree: Draft) -> set[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = []
    for guess in tree:
        paths.append((*(paths[guess.parent] if guess.parent >= 0 else ()), guess.token))
    return set(paths)


def drafted(drafter: RecycledDrafter, max_tokens: int = 8) -> Draft:
    (tree,) = drafter.drafts(max_tokens, anything, 0.0)
    return tree


@settings(deadline=None)  # the first call compiles the kernel
@given(
    st.integers(1, 700), st.integers(1, 4), st.sampled_from([torch.float32, torch.bfloat16]), st.integers()
)
def test_successors_are_the_best_tokens_with_about_their_probabilities(
    vocab_size: int, num_rows: int, dtype: torch.dtype, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed % 2**31)
    logits = (torch.randn(num_rows, vocab_size, generator=generator) * 4).to(dtype)
    exact = logits.float().softmax(-1)
    for row, found in enumerate(successors(logits)):
        best = exact[row].topk(min(NUM_SUCCESSORS, vocab_size)).values.tolist()
        assert [exact[row, token].item() for token, _ in found] == best[: len(found)]
        assert all(probability < 0.02 for probability in best[len(found) :])
        assert all(exact[row, token].item() <= share + 1e-5 for token, share in found)
        assert sum(share for _, share in found) < 1 + 1e-5


def test_probabilities_are_close_where_the_target_is_sure() -> None:
    logits = torch.randn(1, 50_000, generator=torch.Generator().manual_seed(0))
    logits[0, 49_999], logits[0, 7] = 14.0, 13.0
    (found,) = successors(logits)
    exact = logits.softmax(-1)[0]
    assert [token for token, _ in found[:2]] == [49_999, 7]
    assert [share for _, share in found[:2]] == pytest.approx(exact[[49_999, 7]].tolist(), rel=0.1)


def test_nothing_was_seen_so_nothing_is_drafted(drafter: RecycledDrafter) -> None:
    assert drafter.drafts(8, anything, 0.0) == []


def test_what_followed_the_last_token_is_drafted_with_its_probability(drafter: RecycledDrafter) -> None:
    see(drafter, [(3, -1)], {4: 0.75, 5: 0.25})
    drafter.extend([4, 3])
    first, second = drafted(drafter)[:2]
    assert (first.token, first.source, first.read_from, first.match_length) == (
        4,
        "recycled",
        "successors",
        1,
    )
    assert (first.probability, second.probability) == (pytest.approx(0.75), pytest.approx(0.25))
    assert second.token == 5


def test_the_longest_known_context_speaks(drafter: RecycledDrafter) -> None:
    see(drafter, [(3, -1)], {4: 1.0})
    drafter.extend([9, 3])
    see(drafter, [(3, -1)], {5: 1.0})
    drafter.extend([1, 2, 3])
    guess = drafted(drafter)[0]
    assert (guess.token, guess.match_length) == (4, 3)
    drafter.extend([7, 3])
    guess = drafted(drafter)[0]
    assert (guess.token, guess.match_length) == (5, 1)


def test_rejected_rows_teach_too_and_grow_a_tree(drafter: RecycledDrafter) -> None:
    see(drafter, [(3, -1), (10, 0), (11, 1), (20, 0)], {30: 1.0}, {11: 0.9}, {12: 0.9, 13: 0.1}, {21: 0.9})
    drafter.extend([30])
    see(drafter, [(30, -1)], {10: 0.6, 20: 0.4})
    drafter.extend([30])
    assert paths_of(drafted(drafter)) == {
        (10,),
        (10, 11),
        (10, 11, 12),
        (10, 11, 13),
        (20,),
        (20, 21),
    }
    assert paths_of(drafted(drafter, 1)) == {(10,), (20,)}


def test_what_a_true_row_says_outlives_what_a_rejected_one_says(drafter: RecycledDrafter) -> None:
    see(drafter, [(3, -1), (6, 0), (3, 1)], {4: 1.0}, {3: 1.0}, {5: 1.0})
    drafter.extend([4, 8, 3])
    assert drafted(drafter)[0].token == 4


def test_only_allowed_tokens_come_first(drafter: RecycledDrafter) -> None:
    see(drafter, [(3, -1)], {3: 0.6, 5: 0.4})
    drafter.extend([3])
    (tree,) = drafter.drafts(8, lambda token: token == 5, 0.0)
    assert paths_of(tree) == {(5,)}
    assert drafter.drafts(8, lambda token: token == 6, 0.0) == []


def test_what_was_learned_serves_the_next_completion(drafter: RecycledDrafter, target: LanguageModel) -> None:
    see(drafter, [(3, -1)], {4: 1.0})
    drafter.end()
    drafter.begin([2, 3], KVCache(target.cache_shape))
    guess = drafted(drafter)[0]
    assert (guess.token, guess.match_length) == (4, 2)


def test_memory_is_bounded_and_forgets_the_oldest(
    drafter: RecycledDrafter, target: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recycled, "_MAX_ENTRIES", 8)
    for token in range(10, 30):
        drafter.begin([token], KVCache(target.cache_shape))
        see(drafter, [(token, -1)], {token + 1: 1.0})
    for token in range(10, 30):
        drafter.begin([token], KVCache(target.cache_shape))
        assert bool(drafter.drafts(1, anything, 0.0)) == (token >= 22)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_texts_in_fewer_passes(write: Write, seed: int) -> None:
    """A single text may take more passes: after the same three tokens it may go on in two ways."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    num_plain = num_again = 0
    for _ in range(8):
        prompt = [rng.randrange(9, 900) for _ in range(rng.randrange(1, 60))]
        plain, _ = write(prompt)
        drafter = RecycledDrafter()
        first, _ = write(prompt, [drafter])
        again, _ = write(prompt, [drafter])
        assert first.tokens[: len(plain.tokens)] == again.tokens[: len(plain.tokens)] == plain.tokens
        num_plain += plain.stats.num_forwards
        num_again += again.stats.num_forwards
    assert num_again < num_plain
