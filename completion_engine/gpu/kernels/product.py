"""Weights times rows: the one kernel of all matrix products, for weights in 16, 8 and 4 bits.

A program owns a block of outputs for a block of rows and walks its share of the inputs in fixed steps. Where
the outputs alone do not fill the machine, the inputs are split into parts of fixed length; the reader of the
result adds the parts in their order. Both are independent of the number of rows.
"""

import triton
import triton.language as tl

UNPACK: tl.constexpr = tl.constexpr("""{
    .reg .b32 low, high, one, less;
    mov.b32 one, 0x3F803F80;
    mov.b32 less, 0xC308C308;
    and.b32 low, $4, 0x0F0F0F0F;
    shr.b32 high, $4, 4;
    and.b32 high, high, 0x0F0F0F0F;
    prmt.b32 $0, low, 0x43434343, 0x4140;
    prmt.b32 $1, low, 0x43434343, 0x4342;
    prmt.b32 $2, high, 0x43434343, 0x4140;
    prmt.b32 $3, high, 0x43434343, 0x4342;
    fma.rn.bf16x2 $0, $0, one, less;
    fma.rn.bf16x2 $1, $1, one, less;
    fma.rn.bf16x2 $2, $2, one, less;
    fma.rn.bf16x2 $3, $3, one, less;
}""")
"""Four bytes of levels into four bf16 of their low halves ($0, $1) and four of their high ones ($2, $3).

A level n behind the byte 0x43 is the bf16 128 + n; times 1 and less 136 it is n - 8, exactly (the trick of
Kim et al. 2022, arXiv:2211.10017). Conversion by the compiler takes three times as many instructions, more
than a fast memory leaves time for.
"""


@triton.jit
def levels_at(weight, columns, inputs, num_inputs: tl.constexpr, is_used):
    """A tile [inputs, columns] of weights [num_outputs, num_inputs]."""
    at = columns[None, :].to(tl.int64) * num_inputs + inputs[:, None]
    return tl.load(weight + at, mask=is_used, other=0)


@triton.jit
def nibbles_at(
    weight, columns, inputs, num_bytes: tl.constexpr, is_used, dtype: tl.constexpr, packs: tl.constexpr
):
    """Two tiles [inputs, columns] of 4-bit levels: a byte holds an input and one half a block on."""
    at = columns[None, :].to(tl.int64) * num_bytes + inputs[:, None]
    packed = tl.load(weight + at, mask=is_used, other=0)  # unused columns are never stored
    if packs:
        low, high = tl.inline_asm_elementwise(
            UNPACK, "=r,=r,=r,=r,r", [packed], dtype=(tl.bfloat16, tl.bfloat16), is_pure=True, pack=4
        )
    else:
        wide = packed.to(tl.int32)
        low = ((wide & 15) - 8).to(tl.float32).to(dtype)
        high = ((wide >> 4) - 8).to(tl.float32).to(dtype)
    return low, high


@triton.jit
def step_of_rows(
    total, rows, base, inputs, low, high, scale,
    num_inputs: tl.constexpr, bits: tl.constexpr, half: tl.constexpr,
):  # fmt: skip
    """`total` [row_block, column_block] and the product of the rows at `base` with one tile of weights."""
    if bits == 4:
        left = tl.load(rows + base + inputs[None, :])
        right = tl.load(rows + base + half + inputs[None, :])
        levels = tl.dot(left, low, input_precision="ieee")
        levels = tl.dot(right, high, levels, input_precision="ieee")
        total += levels * scale[None, :]
    else:
        x = tl.load(rows + base + inputs[None, :], mask=(inputs < num_inputs)[None, :], other=0.0)
        total = tl.dot(x, low, total, input_precision="ieee")
    return total


@triton.jit
def part_of_product(
    rows, weight, scales, row_at, columns, first, end,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, input_block: tl.constexpr, packs: tl.constexpr,
    is_wide: tl.constexpr,
):  # fmt: skip
    """The sums over inputs `first` to `end`, each [row_block, column_block] float32, of four blocks of rows.

    The first block is at `row_at`. If the product is not wide, it is the only one. All blocks use a tile of
    weights that is loaded once, each in instructions of the same shape, so that its bits stay the same.
    """
    dtype: tl.constexpr = rows.dtype.element_ty
    half: tl.constexpr = input_block // 2
    num_groups: tl.constexpr = num_inputs // input_block
    total = tl.zeros([row_block, column_block], dtype=tl.float32)
    second, third, fourth = total, total, total
    is_output = (columns < num_outputs)[None, :]
    base = row_at[:, None] * num_inputs
    next_block: tl.constexpr = row_block * num_inputs
    for start in range(first, end, input_block):
        if bits == 4:
            inputs = start + tl.arange(0, half)
            low, high = nibbles_at(
                weight, columns, start // 2 + tl.arange(0, half), num_inputs // 2, is_output, dtype, packs
            )
            group = columns * num_groups + start // input_block
            scale = tl.load(scales + group, mask=columns < num_outputs, other=0.0)
        else:
            inputs = start + tl.arange(0, input_block)
            low = levels_at(weight, columns, inputs, num_inputs, (inputs < num_inputs)[:, None] & is_output)
            if bits == 8:
                low = low.to(tl.float32).to(dtype)
            high, scale = low, low
        total = step_of_rows(total, rows, base, inputs, low, high, scale, num_inputs, bits, half)
        if is_wide:
            at = base + next_block
            second = step_of_rows(second, rows, at, inputs, low, high, scale, num_inputs, bits, half)
            at += next_block
            third = step_of_rows(third, rows, at, inputs, low, high, scale, num_inputs, bits, half)
            at += next_block
            fourth = step_of_rows(fourth, rows, at, inputs, low, high, scale, num_inputs, bits, half)
    if bits == 8:
        scale = tl.load(scales + columns, mask=columns < num_outputs, other=0.0)[None, :]
        total *= scale
        second *= scale
        third *= scale
        fourth *= scale
    return total, second, third, fourth


@triton.jit
def store_rows(result, value, row_at, columns, first_row, num_rows, num_outputs: tl.constexpr):
    """Store the rows of a block that are in use; `first_row` is that of the part."""
    at = (first_row + row_at[:, None]).to(tl.int64) * num_outputs + columns[None, :]
    is_wanted = (row_at < num_rows)[:, None] & (columns < num_outputs)[None, :]
    tl.store(result + at, value.to(result.dtype.element_ty), mask=is_wanted)


@triton.jit(do_not_specialize=["num_rows"])
def product(
    rows, weight, scales, parts, num_rows,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr, part_inputs: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, input_block: tl.constexpr, packs: tl.constexpr,
    is_wide: tl.constexpr,
):  # fmt: skip
    """parts [num_parts, num_rows, num_outputs] of rows [>= num_rows up to whole blocks, num_inputs].

    `packs`: halves of bytes are unpacked by `UNPACK`, which makes bf16 and runs on a GPU only. `is_wide`: a
    program computes four blocks of rows.
    """
    columns = tl.program_id(0) * column_block + tl.arange(0, column_block)
    row_at = tl.program_id(1) * (4 * row_block if is_wide else row_block) + tl.arange(0, row_block)
    part = tl.program_id(2)
    first = part * part_inputs
    total, second, third, fourth = part_of_product(
        rows, weight, scales, row_at, columns, first, tl.minimum(first + part_inputs, num_inputs),
        num_outputs, num_inputs, bits, row_block, column_block, input_block, packs, is_wide,
    )  # fmt: skip
    store_rows(parts, total, row_at, columns, part * num_rows, num_rows, num_outputs)
    if is_wide:
        store_rows(parts, second, row_at + row_block, columns, part * num_rows, num_rows, num_outputs)
        store_rows(parts, third, row_at + 2 * row_block, columns, part * num_rows, num_rows, num_outputs)
        store_rows(parts, fourth, row_at + 3 * row_block, columns, part * num_rows, num_rows, num_outputs)


@triton.jit
def activated(opened, raised):
    """silu(opened) * raised."""
    return opened / (1.0 + tl.exp(-opened)) * raised


@triton.jit(do_not_specialize=["num_rows"])
def gated_product(
    rows, gate, gate_scales, up, up_scales, result, num_rows,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, input_block: tl.constexpr, packs: tl.constexpr,
    is_wide: tl.constexpr,
):  # fmt: skip
    """result [num_rows, num_outputs] = silu(rows @ gate.T) * (rows @ up.T)."""
    columns = tl.program_id(0) * column_block + tl.arange(0, column_block)
    row_at = tl.program_id(1) * (4 * row_block if is_wide else row_block) + tl.arange(0, row_block)
    opened, opened2, opened3, opened4 = part_of_product(
        rows, gate, gate_scales, row_at, columns, 0, num_inputs,
        num_outputs, num_inputs, bits, row_block, column_block, input_block, packs, is_wide,
    )  # fmt: skip
    raised, raised2, raised3, raised4 = part_of_product(
        rows, up, up_scales, row_at, columns, 0, num_inputs,
        num_outputs, num_inputs, bits, row_block, column_block, input_block, packs, is_wide,
    )  # fmt: skip
    store_rows(result, activated(opened, raised), row_at, columns, 0, num_rows, num_outputs)
    if is_wide:
        at = row_at + row_block
        store_rows(result, activated(opened2, raised2), at, columns, 0, num_rows, num_outputs)
        at += row_block
        store_rows(result, activated(opened3, raised3), at, columns, 0, num_rows, num_outputs)
        at += row_block
        store_rows(result, activated(opened4, raised4), at, columns, 0, num_rows, num_outputs)
