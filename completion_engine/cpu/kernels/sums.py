"""Sums of floats in one order on every processor, however wide its registers are; only within kernels.

Thirty-two sums run side by side, each over every thirty-second number, and are added by halves. The remaining
numbers are added in order.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from completion_engine.cpu.kernels.vectors import F32, I32, I64, LANES, Vectors

_AT_ONCE = 2 * LANES
_KINDS = (types.float32, types.uint16, types.int8)  # float32, bf16, and levels


class Numbers:
    """A row of `size` numbers in memory, read as float32; stored in 4 bytes, 2 (bf16) or 1 (levels)."""

    def __init__(self, make: Vectors, num_bytes: int, start: Any, size: Any) -> None:
        self._make, self._num_bytes, self._start, self.size = make, num_bytes, start, size

    @classmethod
    def of(cls, make: Vectors, context: Any, kind: types.Array, value: Any) -> Numbers:
        """An array of numba's."""
        array = make_array(kind)(context, make.builder, value)
        num_bytes = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        start = make.builder.ptrtoint(array.data, I64)
        return cls(make, num_bytes, start, make.builder.extract_value(array.shape, 0))

    def vector(self, index: Any) -> Any:
        """Sixteen from there on."""
        return self._make.load_wide(self._place(index), 0, self._num_bytes)

    def number(self, index: Any) -> Any:
        """The one there."""
        make, builder = self._make, self._make.builder
        if self._num_bytes == 4:
            return make.load(self._place(index), 0, F32)
        found = make.load(self._place(index), 0, ir.IntType(8 * self._num_bytes))
        if self._num_bytes == 1:
            return builder.sitofp(found, F32)
        return builder.bitcast(builder.shl(builder.zext(found, I32), I32(16)), F32)

    def _place(self, index: Any) -> Any:
        return self._make.step(self._start, index, self._num_bytes)


def summed(make: Vectors, left: Numbers, right: Numbers | None) -> Any:
    """The sum of numbers, or of their products; each product is added to it rounded once."""
    builder = make.builder
    totals, single = make.sums(2), cgutils.alloca_once_value(builder, F32(0))
    one, ones = F32(1), make.all_of(F32, 1)
    num_whole = builder.and_(left.size, I64(-_AT_ONCE))
    with cgutils.for_range_slice(builder, I64(0), num_whole, I64(_AT_ONCE), I64) as (index, _):
        for at, total in enumerate(totals):
            place = builder.add(index, I64(LANES * at))
            make.add_product(total, left.vector(place), right.vector(place) if right else ones)
    vector = builder.fadd(*map(builder.load, totals))
    while vector.type.count > 1:
        half = vector.type.count // 2
        vector = builder.fadd(make.part(vector, 0, half), make.part(vector, half, half))
    builder.store(builder.extract_element(vector, I32(0)), single)
    with cgutils.for_range_slice(builder, num_whole, left.size, I64(1), I64) as (index, _):
        factor = right.number(index) if right else one
        builder.store(builder.fma(left.number(index), factor, builder.load(single)), single)
    return builder.load(single)


def _is_row(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and kind.dtype in _KINDS


def _typed_sum(_: Any, numbers: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        make = Vectors(builder)
        return summed(make, Numbers.of(make, context, signature.args[0], arguments[0]), None)

    return (types.float32(numbers), generate) if _is_row(numbers) else None


def _typed_sum_of_products(_: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        make = Vectors(builder)
        rows = (Numbers.of(make, context, *row) for row in zip(signature.args, arguments, strict=True))
        return summed(make, *rows)

    return (types.float32(left, right), generate) if _is_row(left) and _is_row(right) else None


# For rows without gaps: float32, bf16 (uint16) or int8; both of one length.
sum_of: Any = intrinsic(_typed_sum)
sum_of_products: Any = intrinsic(_typed_sum_of_products)
