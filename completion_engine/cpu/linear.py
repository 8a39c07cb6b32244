"""Matrix products with weights laid out once for the machine.

On the CPU oneDNN's blocked layout is made at load: a pass of 8 rows then takes about 0.7 of the time of plain
`linear`, which lays the weights out anew. A row's result does not depend on the number of rows beside it,
because the sum over the inputs runs in the same order for any number of them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.cpu.kernels import rows
from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.product import Product
from completion_engine.cpu.quantised import QuantisedLinear, packed
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

    The kind `int8` rounds weights and inputs (see `quantised`), and its result is float32; the caller has
    asked `can_quantise`. Otherwise the result has the type of x. The weights are copied.
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
