"""Weights times rows: the one kernel of all matrix products, for weights in 16 bits, in bytes and in blocks.

A program owns a block of outputs for a block of rows and walks its share of the inputs in fixed steps. Where
the outputs alone do not fill the machine, the inputs are split into parts of fixed length; the reader of the
result adds the parts in their order. Both are independent of the number of rows.
"""

import triton
import triton.language as tl

from completion_engine.gpu.kernels.blocks import RUN, STEP, half_of, levels_of_pair, numbers_of


@triton.jit
def levels_at(weight, columns, inputs, num_inputs: tl.constexpr, is_used):
    """A tile [inputs, columns] of weights [num_outputs, num_inputs]."""
    at = columns[None, :].to(tl.int64) * num_inputs + inputs[:, None]
    return tl.load(weight + at, mask=is_used, other=0)


@triton.jit
def step_of_rows(total, rows, base, inputs, tile, num_inputs: tl.constexpr, is_whole: tl.constexpr):
    """`total` [row_block, column_block] and the product of the rows at `base` with one tile of weights.

    `is_whole`: the tile ends within the inputs.
    """
    if is_whole:
        x = tl.load(rows + base + inputs[None, :])
    else:
        x = tl.load(rows + base + inputs[None, :], mask=(inputs < num_inputs)[None, :], other=0.0)
    return tl.dot(x, tile, total, input_precision="ieee")


@triton.jit
def part_of_product(
    rows, weight, scales, row_at, columns, first, end,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, input_block: tl.constexpr, is_wide: tl.constexpr,
):  # fmt: skip
    """The sums over inputs `first` to `end`, each [row_block, column_block] float32, of four blocks of rows.

    The first block is at `row_at`. If the product is not wide, it is the only one. All blocks use a tile of
    weights that is loaded once, each in instructions of the same shape, so that its bits stay the same.
    """
    total = tl.zeros([row_block, column_block], dtype=tl.float32)
    second, third, fourth = total, total, total
    is_output = (columns < num_outputs)[None, :]
    base = row_at[:, None] * num_inputs
    next_block: tl.constexpr = row_block * num_inputs
    for start in range(first, end, input_block):
        inputs = start + tl.arange(0, input_block)
        tile = levels_at(weight, columns, inputs, num_inputs, (inputs < num_inputs)[:, None] & is_output)
        if bits == 8:
            tile = tile.to(tl.float32).to(rows.dtype.element_ty)
        total = step_of_rows(total, rows, base, inputs, tile, num_inputs, False)
        if is_wide:
            second = step_of_rows(second, rows, base + next_block, inputs, tile, num_inputs, False)
            third = step_of_rows(third, rows, base + 2 * next_block, inputs, tile, num_inputs, False)
            fourth = step_of_rows(fourth, rows, base + 3 * next_block, inputs, tile, num_inputs, False)
    if bits == 8:
        scale = tl.load(scales + columns, mask=columns < num_outputs, other=0.0)[None, :]
        total *= scale
        second *= scale
        third *= scale
        fourth *= scale
    return total, second, third, fourth


@triton.jit
def part_of_blocks(
    rows, weight, scales, row_at, columns, first, end,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr, block: tl.constexpr,
    has_codes: tl.constexpr, has_floors: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, packs: tl.constexpr, is_wide: tl.constexpr,
):  # fmt: skip
    """The sums of `part_of_product` for weights in blocks, in steps of `STEP` inputs."""
    dtype: tl.constexpr = rows.dtype.element_ty
    num_steps: tl.constexpr = (num_inputs + STEP - 1) // STEP
    num_words: tl.constexpr = STEP // block // (4 if has_codes else 2) * (2 if has_floors else 1)
    is_whole: tl.constexpr = num_inputs // STEP * STEP == num_inputs
    total = tl.zeros([row_block, column_block], dtype=tl.float32)
    second, third, fourth = total, total, total
    is_output = columns < num_outputs
    base = row_at[:, None] * num_inputs
    next_block: tl.constexpr = row_block * num_inputs
    for start in range(first, end, STEP):
        step = start // STEP
        unit, floor_unit = 1.0, 1.0
        if has_codes:
            row = num_steps * num_words + step // 2
            word = tl.load(scales + columns + row * num_outputs, mask=is_output, other=0)
            unit, floor_unit = half_of(word, 0), half_of(word, 1)
        for pair in tl.static_range(STEP // (2 * RUN)):
            low, high = levels_of_pair(
                weight, step, columns, is_output, pair, num_outputs, num_steps, bits, packs
            )
            for side in tl.static_range(2):
                tile = numbers_of(
                    low if side == 0 else high, scales, step, columns, is_output, unit, floor_unit,
                    2 * pair + side, num_outputs, num_words, bits, block, has_codes, has_floors, dtype,
                )  # fmt: skip
                inputs = start + (2 * pair + side) * RUN + tl.arange(0, RUN)
                total = step_of_rows(total, rows, base, inputs, tile, num_inputs, is_whole)
                if is_wide:
                    second = step_of_rows(second, rows, base + next_block, inputs, tile, num_inputs, is_whole)
                    third = step_of_rows(
                        third, rows, base + 2 * next_block, inputs, tile, num_inputs, is_whole
                    )
                    fourth = step_of_rows(
                        fourth, rows, base + 3 * next_block, inputs, tile, num_inputs, is_whole
                    )
    return total, second, third, fourth


@triton.jit
def sums_of(
    rows, weight, scales, row_at, columns, first, end,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr, block: tl.constexpr,
    has_codes: tl.constexpr, has_floors: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, input_block: tl.constexpr, packs: tl.constexpr,
    is_wide: tl.constexpr,
):  # fmt: skip
    """The sums of a weight of any form; a `block` of 0 is one without blocks."""
    if block:
        found = part_of_blocks(
            rows, weight, scales, row_at, columns, first, end, num_outputs, num_inputs, bits, block,
            has_codes, has_floors, row_block, column_block, packs, is_wide,
        )  # fmt: skip
    else:
        found = part_of_product(
            rows, weight, scales, row_at, columns, first, end, num_outputs, num_inputs, bits,
            row_block, column_block, input_block, is_wide,
        )  # fmt: skip
    return found


@triton.jit
def store_rows(
    result, value, row_at, columns, first_row, num_rows, num_outputs: tl.constexpr, row_size: tl.constexpr
):
    """Store the rows of a block that are in use; `first_row` is that of the part."""
    at = (first_row + row_at[:, None]).to(tl.int64) * row_size + columns[None, :]
    is_wanted = (row_at < num_rows)[:, None] & (columns < num_outputs)[None, :]
    tl.store(result + at, value.to(result.dtype.element_ty), mask=is_wanted)


@triton.jit(do_not_specialize=["num_rows"])
def product(
    rows, weight, scales, parts, num_rows,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr, block: tl.constexpr,
    has_codes: tl.constexpr, has_floors: tl.constexpr, part_inputs: tl.constexpr, row_size: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, input_block: tl.constexpr, packs: tl.constexpr,
    is_wide: tl.constexpr,
):  # fmt: skip
    """parts [num_parts, num_rows, row_size] of rows [>= num_rows up to whole blocks, num_inputs].

    Stores `num_outputs` numbers of a row from the first on. `packs`: levels are unpacked by instructions of a
    GPU's own. `is_wide`: a program computes four blocks of rows.
    """
    columns = tl.program_id(0) * column_block + tl.arange(0, column_block)
    row_at = tl.program_id(1) * (4 * row_block if is_wide else row_block) + tl.arange(0, row_block)
    part = tl.program_id(2)
    first = part * part_inputs
    total, second, third, fourth = sums_of(
        rows, weight, scales, row_at, columns, first, tl.minimum(first + part_inputs, num_inputs),
        num_outputs, num_inputs, bits, block, has_codes, has_floors,
        row_block, column_block, input_block, packs, is_wide,
    )  # fmt: skip
    first_row = part * num_rows
    store_rows(parts, total, row_at, columns, first_row, num_rows, num_outputs, row_size)
    if is_wide:
        store_rows(parts, second, row_at + row_block, columns, first_row, num_rows, num_outputs, row_size)
        store_rows(parts, third, row_at + 2 * row_block, columns, first_row, num_rows, num_outputs, row_size)
        store_rows(parts, fourth, row_at + 3 * row_block, columns, first_row, num_rows, num_outputs, row_size)


@triton.jit
def activated(opened, raised):
    """silu(opened) * raised."""
    return opened / (1.0 + tl.exp(-opened)) * raised


@triton.jit(do_not_specialize=["num_rows"])
def gated_product(
    rows, gate, gate_scales, up, up_scales, result, num_rows,
    num_outputs: tl.constexpr, num_inputs: tl.constexpr, bits: tl.constexpr, block: tl.constexpr,
    has_codes: tl.constexpr, has_floors: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, input_block: tl.constexpr, packs: tl.constexpr,
    is_wide: tl.constexpr,
):  # fmt: skip
    """result [num_rows, num_outputs] = silu(rows @ gate.T) * (rows @ up.T)."""
    columns = tl.program_id(0) * column_block + tl.arange(0, column_block)
    row_at = tl.program_id(1) * (4 * row_block if is_wide else row_block) + tl.arange(0, row_block)
    opened, opened2, opened3, opened4 = sums_of(
        rows, gate, gate_scales, row_at, columns, 0, num_inputs,
        num_outputs, num_inputs, bits, block, has_codes, has_floors,
        row_block, column_block, input_block, packs, is_wide,
    )  # fmt: skip
    raised, raised2, raised3, raised4 = sums_of(
        rows, up, up_scales, row_at, columns, 0, num_inputs,
        num_outputs, num_inputs, bits, block, has_codes, has_floors,
        row_block, column_block, input_block, packs, is_wide,
    )  # fmt: skip
    store_rows(result, activated(opened, raised), row_at, columns, 0, num_rows, num_outputs, num_outputs)
    if is_wide:
        at = row_at + row_block
        store_rows(result, activated(opened2, raised2), at, columns, 0, num_rows, num_outputs, num_outputs)
        at += row_block
        store_rows(result, activated(opened3, raised3), at, columns, 0, num_rows, num_outputs, num_outputs)
        at += row_block
        store_rows(result, activated(opened4, raised4), at, columns, 0, num_rows, num_outputs, num_outputs)
