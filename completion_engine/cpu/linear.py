"""Matrix products with weights laid out once for the machine, as numbers or rounded to whole numbers.

For `Linear`, oneDNN's blocked layout is made at load: a pass of 8 rows then takes about 0.7 of the time of
plain `linear`, which lays the weights out anew. A row's result does not depend on the number of rows beside
it, because the sum over the inputs runs in the same order for any number of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.cpu.block_packing import pack_blocks
from completion_engine.cpu.kernels import rows
from completion_engine.cpu.kernels.dot import instruction_sets
from completion_engine.cpu.kernels.language import Floats, array_of
from completion_engine.cpu.kernels.packing import TILE_OUTPUTS, PackedWeight, pack, unpack
from completion_engine.cpu.kernels.product import Product, packed_bits
from completion_engine.cpu.kernels.rounded import RoundedRows, of_gate, of_numbers
from completion_engine.target_model.gguf_blocks import QuantisedWeight
from completion_engine.target_model.weights import WeightKind

_ROWS_HINT = 8
_linear = torch.ops.mkldnn._linear_pointwise
_lay_out = torch.ops.mkldnn._reorder_linear_weight


def can_pack(weight: Tensor) -> bool:
    """Whether this build and machine have the blocked layout for such a weight."""
    if weight.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return False


class Linear:
    """`x @ weight.T + bias`; x is [num_rows, num_inputs], the result [num_rows, num_outputs].

    The kind `int8` rounds weights and inputs (see `QuantisedLinear`), and its result is float32; the caller
    has asked `can_quantise`. Otherwise the result has the type of x. The weights are copied.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, kind: WeightKind = "float") -> None:
        self._quantised = QuantisedLinear(packed(weight), bias) if kind == "int8" else None
        if self._quantised is not None:
            self.num_bytes = self._quantised.num_bytes
            return
        self.num_bytes = weight.nbytes
        self._bias = None if bias is None else bias.clone()
        self._is_packed = can_pack(weight)
        self._weight = _lay_out(weight.contiguous(), _ROWS_HINT) if self._is_packed else weight.clone()

    def __call__(self, x: Tensor) -> Tensor:
        """The product; see the class."""
        if self._quantised is not None:
            return self._quantised(x)
        if self._is_packed:
            return _linear(x, self._weight, self._bias, "none", [], "")  # type: ignore[no-any-return]  # untyped op
        return functional.linear(x, self._weight, self._bias)

    def of_gated(self, gate_up: Tensor) -> Tensor:
        """The product with `gated(gate_up)`, which is [num_rows, 2 * num_inputs]."""
        if self._quantised is not None:
            return self._quantised.of_gated(gate_up)
        return self(gated(gate_up))

    @property
    def product(self) -> Product | None:
        """The product of bytes, if the kind is `int8`."""
        return self._quantised.product if self._quantised is not None else None

    def rows(self, outputs: Tensor) -> Tensor:
        """A copy of some outputs' weights [num_rows, num_inputs], up to the rounding of `int8`.

        `outputs` [num_rows] are their numbers.
        """
        if self._quantised is not None:
            return self._quantised.rows(outputs)
        return (self._weight.to_dense() if self._is_packed else self._weight)[outputs]


def gated(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` on any device; gate_up is [num_rows, 2 * num_outputs]."""
    if gate_up.device.type == "cpu":
        result = gate_up.new_empty(len(gate_up), gate_up.shape[1] // 2)
        rows.gate(array_of(gate_up), array_of(result))
        return result
    gate, up = gate_up.chunk(2, dim=-1)
    return functional.silu(gate) * up


def can_quantise(device: torch.device) -> bool:
    """Whether `device` multiplies bytes fast by our kernels."""
    return device.type == "cpu" and bool(instruction_sets())


def quantise_rows(x: Tensor) -> RoundedRows:
    """`x` [num_rows, num_inputs] rounded to bytes."""
    found = RoundedRows(*x.shape)
    of_numbers(x.contiguous(), found).run()
    return found


def packed(weight: Tensor) -> PackedWeight:
    """`weight` [num_outputs, num_inputs], float32 or bf16, rounded."""
    return pack(array_of(weight.detach().contiguous()), packed_bits())


def packed_blocks(weights: Sequence[QuantisedWeight]) -> PackedWeight:
    """Weights that read the same inputs as one, with the levels of their file."""
    return pack_blocks(weights, packed_bits())


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

    def of_gated(self, gate_up: Tensor) -> Tensor:
        """The product with `silu(gate) * up`; gate_up is [num_rows, 2 * num_inputs]."""
        gated = RoundedRows(len(gate_up), gate_up.shape[1] // 2)
        of_gate(gate_up.contiguous(), gate_up.shape[1] // 2, gated).run()
        return self.product(gated)

    def rows(self, outputs: Tensor) -> Tensor:
        """The weights of some outputs [num_rows] as they are held, [num_rows, num_inputs] float32."""
        return torch.from_numpy(unpack(self._weight, outputs.numpy()))
