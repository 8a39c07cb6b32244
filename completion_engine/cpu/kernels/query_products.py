"""Products of eight queries with keys, and of their shares with values, as instructions on vectors.

Keys are read by channel, thirty-two at a time, values sixteen channels at a time. A query's sums run over
channels, and over keys, in order, and stay in registers. Does not depend on rows, heads or branches.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils

from completion_engine.cpu.kernels.vectors import F32, LANES, SUM_LANES, Vectors, instruction

KEYS_AT_ONCE = 2 * LANES  # keys and channels; see `kv_cache.KEY_ALIGNMENT`
NUM_QUERIES = 8
_QUERIES_AT_ONCE = 4 if SUM_LANES == 8 else NUM_QUERIES  # with eight, sixteen registers are not enough
WIDENS = SUM_LANES == 8  # whether keys are widened first, for halves of the queries read them in turn


def write_scores(
    make: Vectors,
    size: int,
    queries: Any,
    keys: Any,
    channel_step: Any,
    num_channels: Any,
    scores: Any,
    score_step: Any,
) -> None:
    """The products of eight queries [num_channels, 8] with 32 keys; steps, in bytes, lead to the next one."""
    num_keys = 2 * SUM_LANES
    with make.each(KEYS_AT_ONCE // num_keys) as part:
        own_keys, own_scores = make.step(keys, part, size * num_keys), make.step(scores, part, 4 * num_keys)
        for first in range(0, NUM_QUERIES, _QUERIES_AT_ONCE):
            totals = make.sums(2 * _QUERIES_AT_ONCE, SUM_LANES)
            with cgutils.for_range(make.builder, num_channels) as loop:
                channel = make.step(own_keys, loop.index, channel_step)
                query = make.step(queries, loop.index, 4 * NUM_QUERIES)
                factors = [(query, 4 * (first + at)) for at in range(_QUERIES_AT_ONCE)]
                _add_products(make, size, channel, factors, totals)
            _write(make, totals, make.step(own_scores, score_step, first), score_step)


def write_wide(make: Vectors, keys: Any, channel_step: Any, num_channels: Any, wide: Any) -> None:
    """32 keys stored in two bytes as float32 [num_channels, 32], so that they are widened and read once."""
    with cgutils.for_range(make.builder, num_channels) as loop:
        channel = make.step(keys, loop.index, channel_step)
        place = make.step(wide, loop.index, 4 * KEYS_AT_ONCE)
        for at in range(0, KEYS_AT_ONCE, SUM_LANES):
            make.store(make.load_wide(channel, 2 * at, 2, SUM_LANES), place, 4 * at)


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
) -> None:
    """Sixteen channels of values for each vector, summed up by each query's shares; steps as above."""
    num_at_once = num_vectors if SUM_LANES == LANES else 2
    num_channels = num_at_once * SUM_LANES
    with make.each(LANES * num_vectors // num_channels) as part:
        own, own_sums = (
            make.step(values, part, size * num_channels),
            make.step(summed, part, 4 * num_channels),
        )
        for first in range(0, NUM_QUERIES, _QUERIES_AT_ONCE):
            totals = make.sums(num_at_once * _QUERIES_AT_ONCE, SUM_LANES)
            own_shares = make.step(shares, share_step, first)
            with cgutils.for_range(make.builder, num_keys) as loop:
                value, share = make.step(own, loop.index, value_step), make.step(own_shares, loop.index, 4)
                factors = [(make.step(share, share_step, at), 0) for at in range(_QUERIES_AT_ONCE)]
                _add_products(make, size, value, factors, totals)
            _write(make, totals, make.step(own_sums, sum_step, first), sum_step)


score, sum_up = instruction(num_literals=1)(write_scores), instruction(num_literals=2)(write_sums)
widen = instruction(num_literals=0)(write_wide)


def _add_products(make: Vectors, size: int, numbers: Any, factors: Any, totals: Any) -> None:
    """Add stored numbers, times what stands at each factor's place, to that factor's vectors of sums."""
    num_vectors = len(totals) // len(factors)
    vectors = [make.load_wide(numbers, SUM_LANES * size * at, size, SUM_LANES) for at in range(num_vectors)]
    for place, (address, offset) in enumerate(factors):
        factor = make.repeated(address, offset, F32, SUM_LANES)
        for at, vector in enumerate(vectors):
            make.add_product(totals[place * num_vectors + at], vector, factor)


def _write(make: Vectors, totals: Any, address: Any, step: Any) -> None:
    num_vectors = len(totals) // _QUERIES_AT_ONCE
    for at, total in enumerate(totals):
        row = make.step(address, step, at // num_vectors)
        make.store(make.builder.load(total), row, 4 * SUM_LANES * (at % num_vectors))
