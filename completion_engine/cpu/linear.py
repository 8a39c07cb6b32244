"""Matrix products with weights rounded to whole numbers and laid out once for the machine."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels.dot import instruction_sets
from completion_engine.cpu.kernels.language import Floats, array_of
from completion_engine.cpu.kernels.packing import TILE_OUTPUTS, PackedWeight, pack, unpack
from completion_engine.cpu.kernels.product import Product
from completion_engine.cpu.kernels.rounded import RoundedRows, of_numbers


def computes_bf16() -> bool:
    """Whether this build and machine multiply bf16 fast on the CPU."""
    return torch._C._has_mkldnn and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def can_quantise(device: torch.device) -> bool:
    """Whether `device` multiplies bytes fast by our kernels."""
    return device.type == "cpu" and bool(instruction_sets())


def quantise_rows(x: Tensor) -> RoundedRows:
    """`x` [num_rows, num_inputs] rounded to bytes."""
    found = RoundedRows(*x.shape)
    of_numbers(x.contiguous(), found).run()
    return found


def packed(weight: Tensor) -> PackedWeight:
    """`weight` [num_outputs, num_inputs], float32 or bf16, rounded to 8 bits."""
    return pack(array_of(weight.detach().contiguous()))


class QuantisedLinear:
    """`x @ weight.T + bias` with weight and x rounded; the result is float32.

    Weights are held in as few bits as hold them (see `kernels.packing`). Inputs are rounded to bytes in every
    call, each block of 32 by a power of two of its own. A row's result is the same beside any number of rows.
    """

    def __init__(self, weight: PackedWeight, bias: Tensor | None = None) -> None:
        self._weight = weight
        shifts: Floats = np.zeros(len(self._weight.records) * TILE_OUTPUTS, np.float32)
        if bias is not None:
            shifts[: len(bias)] = bias.detach().float().numpy()
        self.product = Product(self._weight, shifts)
        self.num_bytes = self._weight.num_bytes

    def __call__(self, x: Tensor) -> Tensor:
        """The product; x is [num_rows, num_inputs]."""
        return self.product(quantise_rows(x))

    def rows(self, outputs: Tensor) -> Tensor:
        """The weights of some outputs [num_rows] as they are held, [num_rows, num_inputs] float32."""
        return torch.from_numpy(unpack(self._weight, outputs.numpy()))
