"""Matrix products in 8-bit integers, for weights that a decoding pass spends its time reading.

Weights are rounded to 8 bits by output channel at load, inputs by row in every call. The sum runs in whole
numbers, so its order cannot matter: a row's result is the same beside any number of rows. Knows nothing of
models.
"""

from __future__ import annotations

import torch
from torch import Tensor

_MAX_LEVEL = 127
_ZERO_POINT = 128  # oneDNN is fast for unsigned inputs only
_SMALLEST_SCALE = 1e-30  # of a row of zeros; its inverse is still finite
_ROWS_AT_ONCE = 256  # of weights being rounded, so that what lies between stays in the caches
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


def quantise_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Nearest levels of each row, and what a level stands for.

    `x` is [num_rows, num_inputs]; returns levels [num_rows, num_inputs] uint8, 128 standing for zero, and
    float32 scales [num_rows, 1], such that `(levels - 128) * scales` is near `x`.
    """
    x = x.float()
    scales = x.abs().amax(-1, keepdim=True).div_(_MAX_LEVEL).clamp_(min=_SMALLEST_SCALE)
    return (x * scales.reciprocal()).add_(_ZERO_POINT + 0.5).to(torch.uint8), scales


class QuantisedLinear:
    """`x @ weight.T + bias` with weight and x rounded to 8 bits; the result has the type of x.

    `weight` is [num_outputs, num_inputs] of any floating type.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        parts = [quantise_rows(part) for part in torch.split(weight.detach(), _ROWS_AT_ONCE)]
        levels = torch.cat([levels for levels, _ in parts])
        signed = levels.bitwise_xor_(_ZERO_POINT).view(torch.int8)  # 128 less, in two's complement
        self.num_bytes = signed.nbytes
        self._weight = _lay_out(signed, None)
        self._scales = torch.cat([scales for _, scales in parts]).flatten()
        self._zero_points = torch.zeros(len(weight), dtype=torch.int8)
        self._bias = None if bias is None else bias.detach().float()

    def __call__(self, x: Tensor) -> Tensor:
        """The product; x is [num_rows, num_inputs]."""
        levels, scales = quantise_rows(x)
        y = self.of_levels(levels, x.dtype).mul_(scales)
        return y if self._bias is None else y.add_(self._bias)

    def rows(self, outputs: Tensor) -> Tensor:
        """The rounded weights of some outputs [num_rows, num_inputs], float32; `outputs` [num_rows]."""
        levels: Tensor = self._weight.to_dense()
        return levels.T[outputs].float().mul_(self._scales[outputs, None])

    def of_levels(self, levels: Tensor, dtype: torch.dtype) -> Tensor:
        """The product of `quantise_rows`' levels, without their scales and without bias."""
        y: Tensor = _product(
            levels, 1.0, _ZERO_POINT, self._weight, self._scales, self._zero_points,
            None, 1.0, 0, dtype, "none", [], "",
        )  # fmt: skip
        return y
