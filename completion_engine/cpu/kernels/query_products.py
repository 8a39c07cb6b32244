"""Products of some queries with keys, and of their shares with values, as instructions on vectors.

Keys are read by channel, thirty-two at a time, values sixteen channels at a time. A query's sums run over
channels, and over keys, in order, and stay in registers. Does not depend on rows, heads or branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from completion_engine.cpu.kernels.vectors import (
    F32,
    I16,
    I32,
    I64,
    LANES,
    SUM_LANES,
    Vectors,
    instruction,
    many,
)

KEYS_AT_ONCE = 2 * LANES  # keys and channels; see `kv_cache.KEY_ALIGNMENT`
# Sixteen registers hold two vectors of sums for each of six queries, so a unit is computed by halves.
NUM_QUERIES, _QUERIES_AT_ONCE = (12, 6) if SUM_LANES == 8 else (8, 8)


def write_scores(
    make: Vectors,
    size: int,
    queries: Any,
    keys: Any,
    channel_step: Any,
    num_channels: Any,
    scores: Any,
    score_step: Any,
    number: Any,
) -> None:
    """The products of queries [num_channels, NUM_QUERIES] with 32 keys.

    Steps, in bytes, lead to the next one. Products of queries after the first `number` have no meaning.
    """
    num_keys = 2 * SUM_LANES
    with make.each(KEYS_AT_ONCE // num_keys) as part:
        own_keys, own_scores = make.step(keys, part, size * num_keys), make.step(scores, part, 4 * num_keys)
        for first in _firsts(make, number):
            totals = make.sums(2 * _QUERIES_AT_ONCE, SUM_LANES)
            with cgutils.for_range(make.builder, num_channels) as loop:
                channel = make.step(own_keys, loop.index, channel_step)
                query = make.step(queries, loop.index, 4 * NUM_QUERIES)
                factors = [(query, 4 * (first + at)) for at in range(_QUERIES_AT_ONCE)]
                _add_products(make, size, channel, factors, totals)
            _write(make, size, totals, make.step(own_scores, score_step, first), score_step)


def write_sums(
    make: Vectors,
    size: int,
    num_vectors: int,
    shares: Any,
    share_step: Any,
    values: Any,
    value_step: Any,
    num_keys: Any,
    summed: Any,
    sum_step: Any,
    number: Any,
) -> None:
    """Sixteen channels of values for each vector, summed up by each query's shares; the rest as above."""
    num_at_once = num_vectors if SUM_LANES == LANES else 2
    num_channels = num_at_once * SUM_LANES
    with make.each(LANES * num_vectors // num_channels) as part:
        own, own_sums = (
            make.step(values, part, size * num_channels),
            make.step(summed, part, 4 * num_channels),
        )
        for first in _firsts(make, number):
            totals = make.sums(num_at_once * _QUERIES_AT_ONCE, SUM_LANES)
            own_shares = make.step(shares, share_step, first)
            with cgutils.for_range(make.builder, num_keys) as loop:
                value, share = make.step(own, loop.index, value_step), make.step(own_shares, loop.index, 4)
                factors = [(make.step(share, share_step, at), 0) for at in range(_QUERIES_AT_ONCE)]
                _add_products(make, size, value, factors, totals)
            _write(make, size, totals, make.step(own_sums, sum_step, first), sum_step)


score, sum_up = instruction(num_literals=1)(write_scores), instruction(num_literals=2)(write_sums)


def _firsts(make: Vectors, number: Any) -> Iterator[int]:
    """The first query of each part of a unit; only parts with one of the first `number` are computed."""
    yield 0
    for first in range(_QUERIES_AT_ONCE, NUM_QUERIES, _QUERIES_AT_ONCE):
        with make.builder.if_then(make.builder.icmp_signed("<", I64(first), number)):
            yield first


def _add_products(make: Vectors, size: int, numbers: Any, factors: Any, totals: Any) -> None:
    """Add stored numbers, times what stands at each factor's place, to that factor's vectors of sums."""
    num_vectors = len(totals) // len(factors)
    if (size, num_vectors) == (2, 2):
        vectors = _widened_by_eights(make, make.load(numbers, 0, many(I16, 2 * SUM_LANES)))
    else:
        vectors = [
            make.load_wide(numbers, SUM_LANES * size * at, size, SUM_LANES) for at in range(num_vectors)
        ]
    for place, (address, offset) in enumerate(factors):
        factor = make.repeated(address, offset, F32, SUM_LANES)
        for at, vector in enumerate(vectors):
            make.add_product(totals[place * num_vectors + at], vector, factor)


def _widened_by_eights(make: Vectors, numbers: Any) -> list[Any]:
    """Numbers in bf16 as two vectors of float32: the first four of each eight, and the others.

    Zeros are put before each number within 128 bits: one instruction a vector, and none that multipliers do.
    """
    none = ir.Constant(numbers.type, None)
    return [
        make.builder.bitcast(
            make.builder.shuffle_vector(none, numbers, ir.Constant(many(I32, 2 * SUM_LANES), lanes)),
            many(F32, SUM_LANES),
        )
        for lanes in _lanes_of_eights()
    ]


def _lanes_of_eights() -> list[list[int]]:
    """For both vectors, where each half of each number lies: in the zeros, or in the numbers after them."""
    num_stored = 2 * SUM_LANES
    return [
        [
            place
            for eight in range(0, num_stored, 8)
            for at in range(eight + first, eight + first + 4)
            for place in (at, num_stored + at)
        ]
        for first in (0, 4)
    ]


def _in_order(make: Vectors, pair: Sequence[Any]) -> list[Any]:
    """Two vectors of `_widened_by_eights`, or sums of their products, in the order of what was stored."""
    lanes = [at // 8 * 4 + at % 4 + (SUM_LANES if at % 8 >= 4 else 0) for at in range(2 * SUM_LANES)]
    halves = lanes[:SUM_LANES], lanes[SUM_LANES:]
    return [make.builder.shuffle_vector(*pair, ir.Constant(many(I32, SUM_LANES), half)) for half in halves]


def _write(make: Vectors, size: int, totals: Any, address: Any, step: Any) -> None:
    num_vectors = len(totals) // _QUERIES_AT_ONCE
    for query in range(_QUERIES_AT_ONCE):
        found = [make.builder.load(total) for total in totals[num_vectors * query :][:num_vectors]]
        if (size, num_vectors) == (2, 2):
            found = _in_order(make, found)
        for at, total in enumerate(found):
            make.store(total, make.step(address, step, query), 4 * SUM_LANES * at)
