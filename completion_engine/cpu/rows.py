"""Kernels on whole rows: norms, the gate of an MLP, and rounding to bytes, alone and behind either.

Each runs over rows one at a time. Arrays of numbers are float32 or bf16 (see `language`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from completion_engine.cpu.language import (
    Array,
    Floats,
    exponential,
    inlined,
    kernel,
    magnitude,
    narrowed,
    widened,
)

ZERO_LEVEL = 128  # stands for zero: oneDNN is fast for unsigned inputs only
MAX_LEVEL = 127
_SMALLEST_SCALE = np.float32(1e-30)  # of a row of zeros; its inverse is still finite
_F32, _I32 = np.float32, np.int32


@kernel
def add_norm(x: Floats, added: Array, shares: Floats, weight: Array, eps: float, normed: Array) -> None:
    """`x += added * shares`, and `normed` the root mean square norm of that.

    x, added and normed are [num_rows, hidden_size], shares [num_rows], weight [hidden_size].
    """
    for row in range(x.shape[0]):
        factor = _add(x[row], added[row], shares[row], eps)
        for at in range(x.shape[1]):
            normed[row, at] = narrowed(x[row, at] * factor * widened(weight[at]), normed)


@kernel
def norm(x: Array, eps: float, normed: Array) -> None:
    """The root mean square norm of each row; both are [num_rows, hidden_size]."""
    for row in range(x.shape[0]):
        factor = norm_factor(x[row], eps)
        for at in range(x.shape[1]):
            normed[row, at] = narrowed(widened(x[row, at]) * factor, normed)


@kernel
def add_norm_levels(
    x: Floats, added: Array, shares: Floats, weight: Array, eps: float, levels: Array, scales: Floats
) -> None:
    """`add_norm`, the normed rows as levels, shaped as x, and scales [num_rows]; see `round_rows`."""
    normed = np.empty(x.shape[1], np.float32)
    for row in range(x.shape[0]):
        factor = _add(x[row], added[row], shares[row], eps)
        for at in range(x.shape[1]):
            normed[at] = x[row, at] * factor * widened(weight[at])
        scales[row] = _round(normed, levels[row])


@kernel
def gate(gate_up: Array, gated: Array) -> None:
    """`silu(gate) * up`; gate_up is [num_rows, 2 * num_outputs], gated [num_rows, num_outputs]."""
    num_outputs = gated.shape[1]
    for row in range(gated.shape[0]):
        for at in range(num_outputs):
            left = widened(gate_up[row, at])
            right = widened(gate_up[row, num_outputs + at])
            gated[row, at] = narrowed(_gated(left, right), gated)


@kernel
def gate_levels(gate_up: Array, shares: Floats, levels: Array, scales: Floats) -> None:
    """`gate` of `gate_up * shares`, as levels and scales; `up`'s share goes into the scales."""
    num_outputs = levels.shape[1]
    gated = np.empty(num_outputs, np.float32)
    for row in range(levels.shape[0]):
        share = shares[row]
        for at in range(num_outputs):
            left = widened(gate_up[row, at]) * share
            right = widened(gate_up[row, num_outputs + at])
            gated[at] = _gated(left, right)
        scales[row] = _round(gated, levels[row]) * share


@kernel
def round_rows(x: Array, levels: Array, scales: Floats) -> None:
    """The nearest levels of each row, and what a level stands for: `(levels - 128) * scales` is near `x`.

    x is [num_rows, num_inputs]; levels, uint8, has its shape; scales are [num_rows].
    """
    wide = np.empty(x.shape[1], np.float32)
    for row in range(x.shape[0]):
        for at in range(x.shape[1]):
            wide[at] = widened(x[row, at])
        scales[row] = _round(wide, levels[row])


@kernel
def scale_rows(y: Array, shares: Floats, bias: Floats, scaled: Array) -> None:
    """`y * shares + bias`; y, scaled [num_rows, num_outputs], shares [num_rows], bias [num_outputs]."""
    for row in range(y.shape[0]):
        for at in range(y.shape[1]):
            scaled[row, at] = narrowed(widened(y[row, at]) * shares[row] + bias[at], scaled)


@inlined
def norm_factor(numbers: Any, eps: Any) -> Any:
    """What a row is multiplied with for its root mean square to be one."""
    total = _F32(0)
    for at in range(numbers.shape[0]):
        total += widened(numbers[at]) * widened(numbers[at])
    return _factor(total, numbers.shape[0], eps)


@inlined
def _factor(total: Any, size: Any, eps: Any) -> Any:
    return _F32(1) / np.sqrt(total / _F32(size) + _F32(eps))


@inlined
def _gated(left: Any, right: Any) -> Any:
    return left / (_F32(1) + exponential(-left)) * right


@inlined
def _add(x: Any, added: Any, share: Any, eps: Any) -> Any:
    """`x += added * share`; returns what norms it."""
    total = _F32(0)
    for at in range(x.shape[0]):
        number = x[at] + widened(added[at]) * share
        x[at] = number
        total += number * number
    return _factor(total, x.shape[0], eps)


@inlined
def _round(x: Any, levels: Any) -> Any:
    """Fill the levels of one row; returns its scale."""
    top = _I32(0)
    for at in range(x.shape[0]):
        bits = magnitude(x[at])
        top = _I32(max(top, bits))
    scale = max(_I32(top).view(np.float32) / _F32(MAX_LEVEL), _SMALLEST_SCALE)
    inverse = _F32(1) / scale
    for at in range(x.shape[0]):
        levels[at] = np.uint8(_I32(x[at] * inverse + _F32(ZERO_LEVEL + 0.5)))
    return scale
