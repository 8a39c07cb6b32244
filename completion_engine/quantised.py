"""Matrix products in 8-bit integers, for weights that a decoding pass spends its time reading.

Weights are rounded to 8 bits by output channel at load, inputs by row in every call. The sum runs in whole
numbers, so its order cannot matter: a row's result is the same beside any number of rows. Knows nothing of
models.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.language import Floats, array_of
from completion_engine.cpu.rows import ZERO_LEVEL, round_rows, scale_rows

_product = torch.ops.onednn.qlinear_pointwise
_lay_out = torch.ops.onednn.qlinear_prepack


def can_quantise(weight: Tensor) -> bool:
    """Whether this build and machine multiply bytes at full speed, and without saturating their sums."""
    return (
        weight.device.type == "cpu"
        and weight.is_floating_point()
        and torch._C._has_mkldnn
        and torch.cpu._is_vnni_supported()
    )


def quantise_rows(x: Tensor) -> tuple[Tensor, Floats]:
    """Nearest levels of each row, and what a level stands for.

    `x` is [num_rows, num_inputs]; returns levels [num_rows, num_inputs] uint8, 128 standing for zero, and
    float32 scales [num_rows], such that `(levels - 128) * scales` is near `x`.
    """
    levels = torch.empty(x.shape, dtype=torch.uint8)
    scales: Floats = np.empty(len(x), np.float32)
    round_rows(array_of(x.contiguous()), levels.numpy(), scales)
    return levels, scales


def signed_levels(weight: Tensor) -> tuple[Tensor, Floats]:
    """`quantise_rows` of a weight with zero standing for zero: int8."""
    levels, scales = quantise_rows(weight.detach())
    return levels.bitwise_xor_(ZERO_LEVEL).view(torch.int8), scales  # 128 less, in two's complement


class QuantisedLinear:
    """`x @ weight.T + bias` with weight and x rounded to 8 bits; the result has the type of x.

    `weight` is [num_outputs, num_inputs], float32 or bf16.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        signed, scales = signed_levels(weight)
        self.num_bytes = signed.nbytes
        self._weight = _lay_out(signed, None)
        self._scales = torch.from_numpy(scales)
        self._zero_points = torch.zeros(len(weight), dtype=torch.int8)
        self._bias = np.zeros(len(weight), np.float32) if bias is None else bias.detach().float().numpy()

    def __call__(self, x: Tensor) -> Tensor:
        """The product; x is [num_rows, num_inputs]."""
        levels, scales = quantise_rows(x)
        y = torch.empty(len(x), len(self._scales), dtype=x.dtype)
        scale_rows(array_of(self.of_levels(levels, x.dtype)), scales, self._bias, array_of(y))
        return y

    def rows(self, outputs: Tensor) -> Tensor:
        """The rounded weights of some outputs [num_rows, num_inputs], float32; `outputs` [num_rows]."""
        levels: Tensor = self._weight.to_dense()
        return levels.T[outputs].float().mul_(self._scales[outputs, None])

    def of_levels(self, levels: Tensor, dtype: torch.dtype) -> Tensor:
        """The product of `quantise_rows`' levels, without their scales and without bias."""
        y: Tensor = _product(
            levels, 1.0, ZERO_LEVEL, self._weight, self._scales, self._zero_points,
            None, 1.0, 0, dtype, "none", [], "",
        )  # fmt: skip
        return y
