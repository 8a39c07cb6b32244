"""Levels of blocks in registers: 4 to 8 bits become the numbers that the file means, as bf16.

For the layout see `gpu.blocks`. A number is rounded once, from float32 as the file's numbers are decoded,
so a product has the bits of one with the decoded weight in bf16.
"""

import triton
import triton.language as tl

STEP: tl.constexpr = tl.constexpr(128)
RUN: tl.constexpr = tl.constexpr(32)
RAISED: tl.constexpr = tl.constexpr(128.0)  # `UNPACK_4` to `UNPACK_6` add this to a level
RAISED_BYTE: tl.constexpr = tl.constexpr(32768.0)
_HALVES = """{
    .reg .b32 low, high, more;
    and.b32 low, $8, 0x0F0F0F0F;
    shr.b32 high, $8, 4;
    and.b32 high, high, 0x0F0F0F0F;
"""
_UPPER_BIT = """    shr.b32 more, $9, $10;
    shl.b32 more, more, 4;
    and.b32 more, more, 0x10101010;
    or.b32 low, low, more;
    shr.b32 more, $9, $10;
    shl.b32 more, more, 3;
    and.b32 more, more, 0x10101010;
    or.b32 high, high, more;
"""
_UPPER_BITS = """    shr.b32 more, $9, $10;
    shl.b32 more, more, 4;
    and.b32 more, more, 0x30303030;
    or.b32 low, low, more;
    shr.b32 more, $9, $10;
    shl.b32 more, more, 2;
    and.b32 more, more, 0x30303030;
    or.b32 high, high, more;
"""
_FLOATS = """    prmt.b32 $0, low, 0x43000000, 0x7044;
    prmt.b32 $1, low, 0x43000000, 0x7144;
    prmt.b32 $2, low, 0x43000000, 0x7244;
    prmt.b32 $3, low, 0x43000000, 0x7344;
    prmt.b32 $4, high, 0x43000000, 0x7044;
    prmt.b32 $5, high, 0x43000000, 0x7144;
    prmt.b32 $6, high, 0x43000000, 0x7244;
    prmt.b32 $7, high, 0x43000000, 0x7344;
}"""
UNPACK_4: tl.constexpr = tl.constexpr(_HALVES + _FLOATS)
UNPACK_5: tl.constexpr = tl.constexpr(_HALVES + _UPPER_BIT + _FLOATS)
UNPACK_6: tl.constexpr = tl.constexpr(_HALVES + _UPPER_BITS + _FLOATS)
UNPACK_8: tl.constexpr = tl.constexpr("""{
    prmt.b32 $0, $4, 0x47000000, 0x7404;
    prmt.b32 $1, $4, 0x47000000, 0x7414;
    prmt.b32 $2, $4, 0x47000000, 0x7424;
    prmt.b32 $3, $4, 0x47000000, 0x7434;
}""")
"""Four bytes of levels into float32: those of their low halves, then those of their high ones.

A byte n as the third byte of a float32 that ends in 0x43 is 128 + n; as the second of one that ends in
0x47, it is 32768 + n (the trick of Kim et al. 2022, arXiv:2211.10017). One multiplication and addition then
makes the number, exactly, because scales have at most 18 digits. Conversion by the compiler takes three
times as many instructions, more than a fast memory leaves time for. $9 are the upper bits, $10 the place of
a run in them.
"""


@triton.jit
def number_at(
    scales, step, columns, is_output, unit, at: tl.constexpr, first_word: tl.constexpr,
    num_outputs: tl.constexpr, num_words: tl.constexpr, has_codes: tl.constexpr,
):  # fmt: skip
    """The scale or floor of block `at` of a step, [num_columns] float32."""
    per_word: tl.constexpr = 4 if has_codes else 2
    row = step * num_words + first_word + at // per_word
    word = tl.load(scales + columns + row * num_outputs, mask=is_output, other=0)
    if has_codes:  # noqa: SIM108 - a compile-time branch
        number = unit * ((word << (24 - 8 * (at % 4))) >> 24).to(tl.float32)
    else:
        number = half_of(word, at % 2)
    return number


@triton.jit
def half_of(word, at: tl.constexpr):
    """One of the two float16 of a word, as float32."""
    return ((word >> (16 * at)) & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def plane_at(weight, plane, columns, is_output, num_outputs: tl.constexpr):
    """The bytes of a plane, [RUN, num_columns]."""
    at = (columns.to(tl.int64) + plane * num_outputs)[None, :] * RUN + tl.arange(0, RUN)[:, None]
    return tl.load(weight + at, mask=is_output[None, :], other=0)


@triton.jit
def levels_of_pair(
    weight, step, columns, is_output, pair: tl.constexpr,
    num_outputs: tl.constexpr, num_steps: tl.constexpr, bits: tl.constexpr, packs: tl.constexpr,
):  # fmt: skip
    """The raised levels of runs 2 * pair and the next of a step, each [RUN, num_columns] float32."""
    run = step * (STEP // RUN) + 2 * pair
    if bits == 8:
        low = bytes_of(plane_at(weight, run, columns, is_output, num_outputs), packs)
        high = bytes_of(plane_at(weight, run + 1, columns, is_output, num_outputs), packs)
    else:
        first = plane_at(weight, run // 2, columns, is_output, num_outputs)
        if bits == 4:
            low, high = nibbles_of(first, packs)
        else:
            together: tl.constexpr = 8 // (bits - 4)
            num_planes: tl.constexpr = num_steps * STEP // (2 * RUN)
            upper = plane_at(weight, num_planes + run // together, columns, is_output, num_outputs)
            low, high = wide_levels_of(first, upper, run % together * (bits - 4), bits, packs)
    return low, high


@triton.jit
def bytes_of(levels, packs: tl.constexpr):
    """Bytes as float32, raised by 32768."""
    if packs:
        found = tl.inline_asm_elementwise(
            UNPACK_8, "=r,=r,=r,=r,r", [levels], dtype=tl.float32, is_pure=True, pack=4
        )
    else:
        found = levels.to(tl.float32) + RAISED_BYTE
    return found


@triton.jit
def nibbles_of(first, packs: tl.constexpr):
    """The low and the high halves of bytes as float32, raised by 128."""
    if packs:
        low, high = tl.inline_asm_elementwise(
            UNPACK_4, "=r,=r,=r,=r,=r,=r,=r,=r,r", [first],
            dtype=(tl.float32, tl.float32), is_pure=True, pack=4,
        )  # fmt: skip
    else:
        low, high = (first & 15).to(tl.float32) + RAISED, (first >> 4).to(tl.float32) + RAISED
    return low, high


@triton.jit
def wide_levels_of(first, upper, place, bits: tl.constexpr, packs: tl.constexpr):
    """Levels of 5 or 6 bits, whose upper ones stand at `place` of `upper` and after that."""
    if packs:
        low, high = tl.inline_asm_elementwise(
            UNPACK_5 if bits == 5 else UNPACK_6, "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r,r", [first, upper, place],
            dtype=(tl.float32, tl.float32), is_pure=True, pack=4,
        )  # fmt: skip
    else:
        width: tl.constexpr = bits - 4
        mask: tl.constexpr = 2**width - 1
        more = upper.to(tl.int32) >> place
        low = ((first & 15) | ((more & mask) << 4)).to(tl.float32) + RAISED
        high = ((first >> 4) | ((more >> width & mask) << 4)).to(tl.float32) + RAISED
    return low, high


@triton.jit
def spread_number(
    scales, step, columns, is_output, unit, run: tl.constexpr, first_word: tl.constexpr,
    num_outputs: tl.constexpr, num_words: tl.constexpr, block: tl.constexpr, has_codes: tl.constexpr,
):  # fmt: skip
    """The scales or floors of a run, [1, num_columns] or, for blocks of 16, [RUN, num_columns]."""
    at: tl.constexpr = run * (RUN // block)
    number = number_at(
        scales, step, columns, is_output, unit, at, first_word, num_outputs, num_words, has_codes
    )
    found = number[None, :]
    if block < RUN:
        second = number_at(
            scales, step, columns, is_output, unit, at + 1, first_word, num_outputs, num_words, has_codes
        )
        found = tl.where((tl.arange(0, RUN) < block)[:, None], found, second[None, :])
    return found


@triton.jit
def numbers_of(
    level, scales, step, columns, is_output, unit, floor_unit, run: tl.constexpr,
    num_outputs: tl.constexpr, num_words: tl.constexpr, bits: tl.constexpr, block: tl.constexpr,
    has_codes: tl.constexpr, has_floors: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """The weights of a run of a step, [RUN, num_columns], from its raised levels.

    All but the last rounding and the addition of a floor are exact.
    """
    raised: tl.constexpr = RAISED_BYTE if bits == 8 else RAISED
    zero: tl.constexpr = raised if has_floors else raised + 2 ** (bits - 1)
    scale = spread_number(
        scales, step, columns, is_output, unit, run, 0, num_outputs, num_words, block, has_codes
    )
    if block < RUN:
        number = (level - zero) * scale
    else:
        shift = tl.broadcast_to(scale * -zero, level.shape)
        number = tl.fma(level, tl.broadcast_to(scale, level.shape), shift)
    if has_floors:
        number += spread_number(
            scales, step, columns, is_output, floor_unit, run, num_words // 2,
            num_outputs, num_words, block, has_codes,
        )  # fmt: skip
    return number.to(dtype)
