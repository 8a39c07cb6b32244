"""Vectors of sixteen numbers, written in LLVM's language because numba has none, and sums of floats in one
order on every processor, however wide its registers are.

Used where a loop must keep its sums in registers, and by kernels that several threads run at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from completion_engine.cpu.kernels.language import features, is_arm

LANES = 16
# Number of floats in a vector when many sums stay in registers: as many as a register holds.
SUM_LANES = 4 if is_arm() else LANES if "avx512f" in features() else 8
I1, I8, I16, I32, I64 = (ir.IntType(size) for size in (1, 8, 16, 32, 64))
F32, F16 = ir.FloatType(), ir.HalfType()


def many(kind: Any, number: int = LANES) -> Any:
    """The type of a vector."""
    return ir.VectorType(kind, number)


class Vectors:
    """Instructions at one place of a kernel. Addresses are integers, offsets count bytes."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def external(self, name: str, arguments: list[Any], result: Any) -> Any:
        """A function or an instruction that LLVM knows by name."""
        kind = ir.FunctionType(result, arguments)
        return cgutils.get_or_insert_function(self.builder.module, kind, name)

    def sums(self, number: int, lanes: int = LANES) -> list[Any]:
        """This number of zero vectors to add to."""
        zero = ir.Constant(many(F32, lanes), None)
        return [cgutils.alloca_once_value(self.builder, zero) for _ in range(number)]

    def add_product(self, total: Any, left: Any, right: Any) -> None:
        """Add `left * right` to what stands at `total`, rounded once."""
        self.builder.store(self.fused(left, right, self.builder.load(total)), total)

    def fused(self, left: Any, right: Any, added: Any) -> Any:
        """`left * right + added`, rounded once."""
        fuse = self.external(f"llvm.fma.v{left.type.count}f32", [left.type] * 3, left.type)
        return self.builder.call(fuse, [left, right, added])

    def pinned(self, values: Sequence[Any]) -> list[Any]:
        """The same values, in registers at this place: the compiler moves no sum and no load across it."""
        kinds, number = [value.type for value in values], len(values)
        register = "w" if is_arm() else "x"
        constraints = [f"={register}"] * number + [str(at) for at in range(number)] + ["~{memory}"]
        function = ir.FunctionType(ir.LiteralStructType(kinds), kinds)
        same = ir.InlineAsm(function, "", ",".join(constraints), side_effect=True)
        found = self.builder.call(same, values)
        return [self.builder.extract_value(found, at) for at in range(number)]

    def room(self, num_bytes: int) -> Any:
        """The address of this number of bytes on the stack, at the start of a cache line."""
        place = cgutils.alloca_once(self.builder, ir.ArrayType(I8, num_bytes))
        place.align = 64
        return self.builder.ptrtoint(place, I64)

    def load(self, address: Any, offset: int, kind: Any) -> Any:
        """Load the vector at this address."""
        return self.builder.load(self.pointer(address, offset, kind), align=1)

    def load_wide(self, address: Any, offset: int, num_bytes: int, lanes: int = LANES) -> Any:
        """Numbers as float32 that are stored in float32 (4 bytes), in bf16 (2) or as levels (1)."""
        if num_bytes == 4:
            return self.load(address, offset, many(F32, lanes))
        if num_bytes == 1:
            return self.builder.sitofp(self.load(address, offset, many(I8, lanes)), many(F32, lanes))
        wide = self.builder.zext(self.load(address, offset, many(I16, lanes)), many(I32, lanes))
        shifted = self.builder.shl(wide, ir.Constant(many(I32, lanes), [16] * lanes))
        return self.builder.bitcast(shifted, many(F32, lanes))

    def repeated(self, address: Any, offset: int, kind: Any, lanes: int = LANES) -> Any:
        """The number there in every lane."""
        return self.spread(self.load(address, offset, kind), lanes)

    def spread(self, number: Any, lanes: int = LANES) -> Any:
        """A number in every lane."""
        empty = ir.Constant(many(number.type, lanes), ir.Undefined)
        first = self.builder.insert_element(empty, number, I32(0))
        return self.builder.shuffle_vector(first, empty, ir.Constant(many(I32, lanes), [0] * lanes))

    def all_of(self, kind: Any, number: float) -> Any:
        """A constant in every lane."""
        return ir.Constant(many(kind), [number] * LANES)

    def moved(self, numbers: Any, num_bits: int) -> Any:
        """Each number shifted left by this number of bits, or right if it is negative."""
        by = ir.Constant(numbers.type, [abs(num_bits)] * numbers.type.count)
        return self.builder.shl(numbers, by) if num_bits > 0 else self.builder.lshr(numbers, by)

    def largest(self, vectors: Sequence[Any]) -> Any:
        """The largest of all integers, which are none below zero."""
        higher = self.external("llvm.umax.v16i32", [many(I32)] * 2, many(I32))
        reduced = self.external("llvm.vector.reduce.umax.v16i32", [many(I32)], I32)
        return self.builder.call(reduced, [reduce(lambda x, y: self.builder.call(higher, [x, y]), vectors)])

    def sum_of(self, vectors: Sequence[Any]) -> Any:
        """The sum of all integers."""
        reduced = self.external("llvm.vector.reduce.add.v16i32", [many(I32)], I32)
        return self.builder.call(reduced, [reduce(self.builder.add, vectors)])

    def part(self, vector: Any, first: int, number: int) -> Any:
        """Some lanes of a vector."""
        if number == vector.type.count:
            return vector
        lanes = ir.Constant(many(I32, number), list(range(first, first + number)))
        return self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), lanes)

    def joined(self, parts: Sequence[Any]) -> Any:
        """One vector or two, end to end."""
        if len(parts) == 1:
            return parts[0]
        lanes = ir.Constant(many(I32, 2 * parts[0].type.count), list(range(2 * parts[0].type.count)))
        return self.builder.shuffle_vector(*parts, lanes)

    def store(self, vector: Any, address: Any, offset: int) -> None:
        """Write a vector or a number."""
        self.builder.store(vector, self.pointer(address, offset, vector.type), align=1)

    @contextmanager
    def each(self, number: int) -> Iterator[Any]:
        """Repeat the block this number of times; yields the index."""
        if number == 1:
            yield I64(0)
            return
        with cgutils.for_range(self.builder, I64(number)) as loop:
            yield loop.index

    def pointer(self, address: Any, offset: int, kind: Any) -> Any:
        """To something of a kind."""
        place = self.builder.add(address, I64(offset)) if offset else address
        return self.builder.inttoptr(place, kind.as_pointer())

    def step(self, start: Any, number: Any, num_bytes: Any) -> Any:
        """The address `number` times `num_bytes` after `start`."""
        number, size = (I64(x) if isinstance(x, int) else x for x in (number, num_bytes))
        return self.builder.add(start, self.builder.mul(number, size))


def instruction(num_literals: int) -> Callable[[Callable[..., None]], Any]:
    """Makes what a function writes into a kernel a part of numba's language.

    The function gets `Vectors`, the literals as Python's integers, and then integers as LLVM's values.
    """

    def decorate(function: Callable[..., None]) -> Any:
        def define(_: Any, *kinds: Any) -> Any:
            def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
                literals = [kind.literal_value for kind in kinds[:num_literals]]
                function(Vectors(builder), *literals, *arguments[num_literals:])
                return context.get_dummy_value()

            integers = [types.int64] * (len(kinds) - num_literals)
            return types.void(*kinds[:num_literals], *integers), generate

        define.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # numba asks for it
        return intrinsic(prefer_literal=True)(define)

    return decorate


def _claim(_: Any, task: Any, __: Any, ___: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        counter = builder.gep(arguments[0], [arguments[1]])
        return builder.atomic_rmw("add", counter, arguments[2], "monotonic")

    return types.int64(task, types.int64, types.int64), generate


def _pointer_to(kind: types.Type) -> Any:
    def pointer(_: Any, __: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate

    return intrinsic(pointer)


def _pointer_by_size(_: Any, size: Any, __: Any) -> Any:
    kind = _STORED[size.literal_value]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[1], context.get_value_type(signature.return_type))

    return types.CPointer(kind)(size, types.int64), generate


_STORED = {2: types.uint16, 4: types.float32}  # bf16 and float32, by their bytes
# `claim(task, place, number)` adds to `task[place]` before any other thread does, and gives what it was.
claim: Any = intrinsic(_claim)
# Pointers of an address, for `carray`; `numbers_at(size, address)` to numbers of this many bytes.
float_at, int64_at = (_pointer_to(kind) for kind in (types.float32, types.int64))
numbers_at: Any = intrinsic(prefer_literal=True)(_pointer_by_size)


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
