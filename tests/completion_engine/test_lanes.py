"""Lanes: every row sees its ancestors where a chain would put them; the true path ends in the trunk."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.kv_cache import CacheShape, KVCache
from completion_engine.lanes import Lanes, lay_out

SHAPE = CacheShape(2, 1, 2, 4, 64, torch.float32, torch.device("cpu"))
forests = st.lists(st.integers(0, 30), min_size=1, max_size=16).map(
    lambda drawn: [-1, *(number % (row + 1) for row, number in enumerate(drawn))]
)


def ancestors(parents: list[int], row: int) -> tuple[int, ...]:
    return (*ancestors(parents, parents[row]), row) if row >= 0 else ()


@given(forests)
def test_every_row_has_one_lane_and_its_ancestors_in_order(parents: list[int]) -> None:
    layout = lay_out(parents)
    assert [row for lane in layout.lanes for row in range(lane.first, lane.end)] == list(range(len(parents)))
    for lane in layout.lanes:
        assert lane.path == ancestors(parents, lane.end - 1)
        assert lane.path[lane.first - lane.end :] == tuple(range(lane.first, lane.end))
        assert all(parents[row] == row - 1 for row in range(lane.first + 1, lane.end))
    assert list(layout.depths) == [len(ancestors(parents, row)) - 1 for row in range(len(parents))]


@given(forests)
def test_a_lane_is_opened_only_where_a_branch_begins(parents: list[int]) -> None:
    assert len(lay_out(parents).lanes) == 1 + sum(parent != row - 1 for row, parent in enumerate(parents))


@given(st.integers(1, 40))
def test_a_chain_is_one_lane(num_rows: int) -> None:
    (lane,) = lay_out(range(-1, num_rows - 1)).lanes
    assert lane.path == tuple(range(num_rows))


@pytest.mark.parametrize("parents", [[0], [-1, 1], [-1, -1], [-1, 0, 3, 0], [-1, -2]])
def test_a_row_before_its_parent_is_a_bug(parents: list[int]) -> None:
    with pytest.raises(ValueError, match="parent"):
        lay_out(parents)


def value_of(path: list[int]) -> float:
    """What stands at the end of `path` in the place of a key: it depends on all tokens before, as keys do."""
    value = 1.0
    for token in path:
        value = (value * 31 + token) % 8191
    return value


def write(cache: KVCache, at: int, value: float) -> None:
    cache.keys[:, :, at], cache.values[:, :, at], cache.hidden[at] = value, -value, 2 * value


def agrees(cache: KVCache, tokens: list[int]) -> bool:
    """Whether the cache holds just what belongs to `tokens`."""
    wanted = torch.tensor([value_of(tokens[: at + 1]) for at in range(len(tokens))])
    held = cache.keys[-1, 0, : len(tokens), 0], -cache.values[0, -1, : len(tokens), -1]
    halved = cache.hidden[: len(tokens), 1] / 2
    return cache.tokens == tokens and all(torch.equal(found, wanted) for found in (*held, halved))


@given(st.lists(forests, min_size=1, max_size=6), st.integers(0, 2**32))
def test_the_kept_path_moves_to_the_trunk_and_further_lanes_follow(
    passes: list[list[int]], seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - reproducible draws, no secrets
    lanes, trunks, texts = Lanes(SHAPE), [KVCache(SHAPE), KVCache(SHAPE)], [[], []]
    for parents in passes:
        which = rng.randrange(2)  # two documents share the further lanes
        trunk, text = trunks[which], texts[which]
        if trunk.num_cached + len(parents) > SHAPE.capacity:
            continue
        layout, tokens = lay_out(parents), [rng.randrange(50) for _ in parents]
        caches = lanes.open(trunk, layout)
        for lane, cache in zip(layout.lanes, caches, strict=True):
            assert agrees(cache, text)
            for depth, row in enumerate(lane.path):
                path = [tokens[at] for at in ancestors(parents, row)]
                write(cache, len(text) + depth, value_of(text + path))
        leaf = rng.randrange(len(parents))
        path = ancestors(parents, leaf)
        lanes.keep(trunk, layout, path, [tokens[row] for row in path])
        text += [tokens[row] for row in path]
        assert agrees(trunk, text)
    assert lanes.num_bytes == SHAPE.num_bytes * len(lanes._branches)
