"""The grid of the numbers of a block: levels, a scale, and the distance to the numbers.

A grid's points are found from the largest number, or the range, and by least squares from the levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from completion_engine.cpu.kernels.language import inlined, number_of, rank_of
from completion_engine.cpu.kernels.vectors import sum_of, sum_of_products

BLOCK = 32  # inputs that share a scale
HALF_ZERO_LEVEL = 32  # the level of zero in a half of a block

_F32, _I32, _U8 = np.float32, np.int32, np.uint8
_NEAR = _F32(2**-7)  # relative distance: twice what rounding to bf16 moves it
_SMALLEST = _F32(1e-30)
_HALF = BLOCK // 2


@inlined
def _ends(numbers: Any, size: Any) -> Any:
    """The lowest and the highest of some numbers, found as ranks, in vectors."""
    low = high = rank_of(numbers[0])
    for at in range(size):
        rank = rank_of(numbers[at])
        low, high = _I32(min(low, rank)), _I32(max(high, rank))
    return number_of(low), number_of(high)


@inlined
def fit_zero(numbers: Any, steps: Any, levels: Any, bits: Any) -> Any:
    """Levels to both sides of zero: whether they give the numbers (8 bits always do), and the scale."""
    zero = 1 << (bits - 1)
    low, high = _ends(numbers, BLOCK)
    top = low if -low > high else high
    scale = abs(top) / _F32(127) if bits == 8 else -top / _F32(zero)
    inverse = _F32(1) / scale if top != 0 else _F32(0)
    for at in range(BLOCK):
        steps[at] = min(max(np.rint(numbers[at] * inverse), _F32(-zero)), _F32(zero - 1))
        levels[at] = _U8(_I32(steps[at]) + zero)
    scale = sum_of_products(steps, numbers) / max(sum_of_products(steps, steps), _SMALLEST)
    num_off = _I32(0)
    if bits != 8:
        for at in range(BLOCK):
            error = abs(scale * _F32(_I32(levels[at]) - zero) - numbers[at])
            num_off += _I32(error > _NEAR * abs(numbers[at]))
    return num_off == 0, scale, _F32(0)


@inlined
def fit_halves(numbers: Any, steps: Any, levels: Any) -> Any:
    """Levels to both sides of zero in each half: whether 64 of them give the numbers, and both scales.

    The largest number need not be at a grid's end, because the rounded weights have rounded scales too.
    """
    fits, low_scale = _fit_half(numbers[:_HALF], steps[:_HALF], levels[:_HALF])
    high_scale = _F32(0)
    if fits:
        fits, high_scale = _fit_half(numbers[_HALF:], steps[_HALF:], levels[_HALF:])
    return fits, low_scale, high_scale


@inlined
def _fit_half(numbers: Any, steps: Any, levels: Any) -> Any:
    low, high = _ends(numbers, _HALF)
    top = low if -low > high else high
    scale, fits, num_steps = _F32(0), False, HALF_ZERO_LEVEL
    while num_steps >= HALF_ZERO_LEVEL // 2 and not fits:
        inverse = _F32(-num_steps) / top if top != 0 else _F32(0)
        for at in range(_HALF):
            lowest, highest = _F32(-HALF_ZERO_LEVEL), _F32(HALF_ZERO_LEVEL - 1)
            steps[at] = min(max(np.rint(numbers[at] * inverse), lowest), highest)
            levels[at] = _U8(_I32(steps[at]) + HALF_ZERO_LEVEL)
        scale = sum_of_products(steps, numbers) / max(sum_of_products(steps, steps), _SMALLEST)
        num_off = _I32(0)
        for at in range(_HALF):
            num_off += _I32(abs(scale * steps[at] - numbers[at]) > _NEAR * abs(numbers[at]))
        fits = num_off == 0
        num_steps -= 1
    return fits, scale


@inlined
def fit_floor(numbers: Any, steps: Any, apart: Any, levels: Any) -> Any:
    """Levels from the lowest number up: whether 16 of them give the numbers, the scale and the lowest."""
    low, high = _ends(numbers, BLOCK)
    off = _NEAR * max(abs(low), abs(high))
    scale, floor, fits = _F32(0), low, False
    mean = sum_of(numbers) / _F32(BLOCK)
    for at in range(BLOCK):
        apart[at] = numbers[at] - mean
    num_steps = 15
    while num_steps > 0 and not fits:
        inverse = _F32(num_steps) / (high - low) if high > low else _F32(0)
        for at in range(BLOCK):
            steps[at] = np.rint((numbers[at] - low) * inverse)
            levels[at] = _U8(_I32(steps[at]))
        mean_level = sum_of(steps) / _F32(BLOCK)
        for at in range(BLOCK):
            steps[at] -= mean_level
        scale = sum_of_products(steps, apart) / max(sum_of_products(steps, steps), _SMALLEST)
        floor = mean - scale * mean_level
        num_off = _I32(0)
        for at in range(BLOCK):
            num_off += _I32(abs(scale * _F32(levels[at]) + floor - numbers[at]) > off)
        fits = num_off == 0
        num_steps -= 1
    return fits, scale, floor
