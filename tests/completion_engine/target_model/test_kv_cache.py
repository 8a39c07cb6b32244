"""The cache's length is the only truth about what is valid, and slots go to whom they serve best."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from completion_engine.decoding.reuse import SlotPool
from completion_engine.target_model.kv_cache import CacheShape, KVCache, num_common

CAPACITY = 24
SHAPE = CacheShape(1, 1, 2, 4, CAPACITY, torch.float32, torch.device("cpu"))
tokens = st.lists(st.integers(0, 3), max_size=12)


class CacheMachine(RuleBasedStateMachine):
    """Random keeps and rewinds against a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = KVCache(SHAPE)
        self.model: list[int] = []

    @rule(new=tokens)
    def keep(self, new: list[int]) -> None:
        if len(self.model) + len(new) <= CAPACITY:
            self.cache.keep(new)
            self.model += new
        else:
            with pytest.raises(ValueError, match="do not fit"):
                self.cache.keep(new)

    @rule(length=st.integers(-1, CAPACITY + 1))
    def rewind(self, length: int) -> None:
        if 0 <= length <= len(self.model):
            self.cache.rewind(length)
            del self.model[length:]
        else:
            with pytest.raises(ValueError, match="cannot rewind"):
                self.cache.rewind(length)

    @rule(prompt=tokens)
    def share(self, prompt: list[int]) -> None:
        shared = self.cache.num_shared(prompt)
        assert prompt[:shared] == self.model[:shared]
        assert shared == min(len(prompt), len(self.model)) or prompt[shared] != self.model[shared]

    @invariant()
    def agrees_with_the_list(self) -> None:
        self.cache.check_integrity()
        assert self.cache.tokens == self.model


CacheMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestCache = CacheMachine.TestCase


@pytest.mark.parametrize(
    ("left", "right", "length"),
    [
        ([], [], 0),
        ([1], [], 0),
        ([1, 2], [1, 2], 2),
        ([1, 2, 3], [1, 2, 4], 2),
        ([5], [6], 0),
        ([1], [1, 2], 1),
    ],
)
def test_common_prefix(left: list[int], right: list[int], length: int) -> None:
    assert num_common(left, right) == length


def test_a_place_gets_its_own_slot_back() -> None:
    pool = SlotPool(SHAPE, 2)
    first = pool.acquire("a", [1, 2, 3])
    first.cache.keep([1, 2, 3])
    second = pool.acquire("b", [7, 8, 9])
    assert second is not first
    assert pool.acquire("a", [1, 2, 3, 4]) is first


def test_the_slot_that_shares_most_of_the_prompt_serves_it() -> None:
    """A file opened under another name goes on where the first one stood."""
    pool = SlotPool(SHAPE, 2)
    first = pool.acquire("a", [1, 2, 3, 4])
    first.cache.keep([1, 2, 3, 4])
    assert pool.acquire("copy of a", [1, 2, 3, 4, 5]) is first


def test_a_further_place_in_a_document_leaves_the_first_one_cached() -> None:
    pool = SlotPool(SHAPE, 2)
    pool.acquire("a", [1, 2, 3]).cache.keep([1, 2, 3])
    pool.acquire("a", [7, 8, 9]).cache.keep([7, 8, 9])
    prompts = ([1, 2, 3, 4, 5], [7, 8, 9], [5], [7, 5, 5])
    assert [pool.num_missing(prompt) for prompt in prompts] == [1, 0, 0, 1]


def test_a_prompt_that_is_computed_in_parts_keeps_its_slot() -> None:
    pool = SlotPool(SHAPE, 2)
    begun = pool.acquire("a", [1, 2, 3, 4, 5, 6, 7, 8])
    begun.cache.keep([1, 2])
    assert pool.acquire("a", [1, 2, 3, 4, 5, 6, 7, 8, 9]) is begun


def test_a_new_slot_takes_over_what_another_holds_of_its_prompt() -> None:
    shape = replace(SHAPE, capacity=200)
    pool, begin = SlotPool(shape, 2), list(range(40))
    first = pool.acquire("a", [*begin, *[3] * 60])
    first.cache.keys[:, :, :100] = first.cache.values[:, :, :100] = 1.5
    first.cache.hidden[:100] = 2.5
    first.cache.keep_chunk([*begin, *[3] * 60])
    second = pool.acquire("a", [*begin, *[5] * 60])
    assert second is not first
    assert (second.cache.tokens, second.cache.num_from_chunks) == (begin, 40)
    assert torch.equal(second.cache.keys[:, :, :40], first.cache.keys[:, :, :40])
    assert torch.equal(second.cache.values[:, :, :40], first.cache.values[:, :, :40])
    assert torch.equal(second.cache.hidden[:40], first.cache.hidden[:40])
    assert first.cache.tokens == [*begin, *[3] * 60]


def test_the_least_recently_used_slot_is_taken_over() -> None:
    pool = SlotPool(SHAPE, 2)
    slots = {name: pool.acquire(name, [at]) for at, name in enumerate("ab")}
    pool.acquire("a", [0])
    assert pool.acquire("c", [9]) is slots["b"]


def test_memory_is_what_the_shape_says() -> None:
    cache = KVCache(SHAPE)
    assert cache.keys.nbytes + cache.values.nbytes + cache.hidden.nbytes == SHAPE.num_bytes
