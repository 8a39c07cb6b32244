"""What is accepted on the device is what the plain walk accepts; packets tell layouts as they are."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.gpu.accept import Verdict, accept, sources
from completion_engine.gpu.passes import HEADER, WIDTHS, Arena, Packet, PassShape, ancestors_of, shape_for
from completion_engine.kv_cache import CacheShape, KVCache
from completion_engine.lanes import lay_out
from completion_engine.verification import verify

CPU = torch.device("cpu")
NUM_ROWS = 16


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """Parents and tokens of rows, siblings differing, and how many of the first are known; few tokens."""
    num_known, num_rows = draw(st.integers(1, 4)), draw(st.integers(4, NUM_ROWS))
    parents = [
        row - 1 if row < num_known else draw(st.integers(num_known - 1, row - 1)) for row in range(num_rows)
    ]
    tokens: list[int] = []
    for row, parent in enumerate(parents):
        taken = {tokens[at] for at in range(row) if parents[at] == parent}
        tokens.append(draw(st.sampled_from([token for token in range(20) if token not in taken])))
    return parents, tokens, num_known


def packet_of(parents: Sequence[int], tokens: Sequence[int], num_known: int, num_cached: int = 5) -> Packet:
    cache = KVCache(CacheShape(1, 1, 4, 4, 64, torch.float32, CPU))
    cache.keep([0] * num_cached)
    packet = Packet.empty(PassShape(NUM_ROWS, is_tree=True, wants_logits=True), CPU)
    packet.tell(tokens, lay_out(parents), cache, num_known)
    return packet


@settings(deadline=None)
@given(tree=trees(), data=st.data())
def test_the_device_accepts_what_the_walk_accepts(
    tree: tuple[list[int], list[int], int], data: st.DataObject
) -> None:
    parents, tokens, num_known = tree
    packet = packet_of(parents, tokens, num_known)
    picked = data.draw(st.lists(st.integers(0, 3), min_size=NUM_ROWS, max_size=NUM_ROWS))
    for row, parent in enumerate(parents):
        if row >= num_known and data.draw(st.booleans()):
            picked[parent] = tokens[row]
    found = Verdict.of(accept(packet, torch.tensor(picked)).tolist())
    drafted = [-1, *(parent - num_known + 1 for parent in parents[num_known:])]
    wanted = verify(tokens[num_known - 1 :], drafted, picked[num_known - 1 : len(tokens)])
    assert found.path == (*range(num_known), *(row + num_known - 1 for row in wanted.path))
    assert (*found.tokens[num_known:], found.next_token) == wanted.written


@settings(deadline=None)
@given(tree=trees())
def test_a_packet_tells_where_rows_stand(tree: tuple[list[int], list[int], int]) -> None:
    parents, tokens, num_known = tree
    packet = packet_of(parents, tokens, num_known)
    assert packet.tokens[: len(tokens)].tolist() == tokens
    assert (packet.start.item(), packet.num_used.item(), packet.num_known.item()) == (
        5,
        len(tokens),
        num_known,
    )
    for row, parent in enumerate(parents):
        depth = int(packet.depths[row])
        assert packet.ancestors[row, depth] == row
        assert depth == (int(packet.depths[parent]) + 1 if parent >= 0 else 0)
        if parent >= 0:
            assert packet.ancestors[row, :depth].tolist() == packet.ancestors[parent, :depth].tolist()


def test_true_rows_are_taken_into_line() -> None:
    packet = packet_of([-1, 0, 0, 2, 3], [1, 2, 3, 4, 5], 1)
    verdict = accept(packet, torch.tensor([3, 0, 4, 9, 0] + [0] * (NUM_ROWS - 5)))
    assert Verdict.of(verdict.tolist()) == Verdict((0, 2, 3), (1, 3, 4), 9)
    assert sources(packet, verdict).tolist() == [0, 2, 3, *range(3, NUM_ROWS)]


def test_shapes_are_few_and_hold_their_rows() -> None:
    for num_rows in range(1, WIDTHS[-1] + 1):
        shape = shape_for(lay_out(range(-1, num_rows - 1)), 0)
        assert shape.num_rows >= num_rows
        assert shape.num_rows in WIDTHS
    tree = shape_for(lay_out([-1, 0, 0]), 1)
    assert tree == PassShape(8, is_tree=True, wants_logits=True)


def test_an_arena_gives_the_same_memory_to_every_width() -> None:
    arena = Arena(CPU, 64)
    few, many = arena.rows("x", 8, (3,), torch.float32), arena.rows("x", 64, (3,), torch.float32)
    few[7, 2] = 5.0
    assert many[7, 2] == 5.0
    assert arena.num_bytes == 64 * 3 * 4


def test_ancestors_of_a_chain_are_all_rows_before() -> None:
    table = torch.tensor(ancestors_of(lay_out(range(-1, 3)), 8)).view(8, 8)
    assert table[3, :4].tolist() == [0, 1, 2, 3]
    assert HEADER == 8
