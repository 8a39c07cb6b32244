"""The work between the products, by rows or heads: embedding, norms, rotary, cache writes.

Each also adds up the parts of a product, in their order. For `pass_inputs` see `kernels.attention`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from completion_engine.gpu.kernels.attention import HEADER


@triton.jit
def normed(x, norm, inner, is_inner, size: tl.constexpr, eps):
    """RMS norm of x float32 [block], whose first `size` entries count."""
    variance = tl.sum(x * x, 0) / size
    return (
        x * (1.0 / tl.sqrt(variance + eps)) * tl.load(norm + inner, mask=is_inner, other=0.0).to(tl.float32)
    )


@triton.jit
def embed(pass_inputs, embedding, norm, x, y, eps, hidden_size: tl.constexpr, block: tl.constexpr):
    """x [num_rows, hidden_size]: the tokens' embeddings; y: their norm."""
    row = tl.program_id(0)
    inner = tl.arange(0, block)
    is_inner = inner < hidden_size
    token = tl.load(pass_inputs + HEADER + row)
    value = tl.load(embedding + token * hidden_size + inner, mask=is_inner, other=0.0)
    tl.store(x + row * hidden_size + inner, value, mask=is_inner)
    result = normed(value.to(tl.float32), norm, inner, is_inner, hidden_size, eps)
    tl.store(y + row * hidden_size + inner, result.to(y.dtype.element_ty), mask=is_inner)


@triton.jit(do_not_specialize=["num_rows"])
def add_and_norm(
    parts, norm, x, y, num_rows, eps,
    num_parts: tl.constexpr, hidden_size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """x [num_rows, hidden_size] += the product whose parts these are; y: the norm of the new x."""
    row = tl.program_id(0)
    inner = tl.arange(0, block)
    is_inner = inner < hidden_size
    total = tl.load(parts + row * hidden_size + inner, mask=is_inner, other=0.0)
    for part in range(1, num_parts):
        total += tl.load(parts + (part * num_rows + row) * hidden_size + inner, mask=is_inner, other=0.0)
    total += tl.load(x + row * hidden_size + inner, mask=is_inner, other=0.0).to(tl.float32)
    value = total.to(x.dtype.element_ty)
    tl.store(x + row * hidden_size + inner, value, mask=is_inner)
    result = normed(value.to(tl.float32), norm, inner, is_inner, hidden_size, eps)
    tl.store(y + row * hidden_size + inner, result.to(y.dtype.element_ty), mask=is_inner)


@triton.jit
def half_head(
    parts, bias, at, num_rows, row, num_columns: tl.constexpr, num_parts: tl.constexpr, has_bias: tl.constexpr
):
    """Columns `at` of a row of a product: its parts added up, and the bias."""
    total = tl.load(parts + row * num_columns + at)
    for part in range(1, num_parts):
        total += tl.load(parts + (part * num_rows + row) * num_columns + at)
    if has_bias:
        total += tl.load(bias + at).to(tl.float32)
    return total


@triton.jit(do_not_specialize=["layer", "num_rows"])
def place_heads(
    pass_inputs, parts, bias, q_norm, k_norm, cos, sin, queries, layer, eps, num_rows,
    num_parts: tl.constexpr, num_heads: tl.constexpr, num_kv: tl.constexpr,
    head_size: tl.constexpr, capacity: tl.constexpr, has_bias: tl.constexpr, has_norms: tl.constexpr,
):  # fmt: skip
    """Finish the product of queries, keys and values; one program a row and a head, keys after queries.

    queries [num_rows, num_heads, head_size] and keys are normed where the model does that, and turned by
    their positions (cos, signed sin [num_positions, head_size]); keys and values go into the cache.
    """
    row, head = tl.program_id(0), tl.program_id(1)
    dtype: tl.constexpr = queries.dtype.element_ty
    half: tl.constexpr = head_size // 2
    columns: tl.constexpr = (num_heads + 2 * num_kv) * head_size
    if row < tl.load(pass_inputs + 4):
        inner = tl.arange(0, half)
        at = head * head_size + inner
        left = half_head(parts, bias, at, num_rows, row, columns, num_parts, has_bias)
        right = half_head(parts, bias, at + half, num_rows, row, columns, num_parts, has_bias)
        start = tl.load(pass_inputs + 3)
        place = (start + row) * head_size + inner
        if head >= num_heads + num_kv:
            values = tl.multiple_of(tl.load(pass_inputs + 1).to(tl.pointer_type(dtype)), 16)
            base = (layer * num_kv + head - num_heads - num_kv).to(tl.int64) * capacity * head_size
            tl.store(values + base + place, left.to(dtype))
            tl.store(values + base + place + half, right.to(dtype))
        else:
            if has_norms:
                spread = tl.sqrt((tl.sum(left * left, 0) + tl.sum(right * right, 0)) / head_size + eps)
                is_query = head < num_heads
                left_norm = tl.where(is_query, tl.load(q_norm + inner), tl.load(k_norm + inner))
                right_norm = tl.where(
                    is_query, tl.load(q_norm + half + inner), tl.load(k_norm + half + inner)
                )
                left = left / spread * left_norm.to(tl.float32)
                right = right / spread * right_norm.to(tl.float32)
            position = start + tl.load(pass_inputs + HEADER + num_rows + row)
            c = tl.load(cos + position * head_size + half + inner).to(tl.float32)
            s = tl.load(sin + position * head_size + half + inner).to(tl.float32)
            turned = (left * c - right * s).to(dtype)
            turned_right = (right * c + left * s).to(dtype)
            if head < num_heads:
                at = (row * num_heads + head) * head_size + inner
                tl.store(queries + at, turned)
                tl.store(queries + at + half, turned_right)
            else:
                keys = tl.multiple_of(tl.load(pass_inputs).to(tl.pointer_type(dtype)), 16)
                base = (layer * num_kv + head - num_heads).to(tl.int64) * capacity * head_size
                tl.store(keys + base + place, turned)
                tl.store(keys + base + place + half, turned_right)


@triton.jit
def store_hidden(pass_inputs, y, hidden_size: tl.constexpr, block: tl.constexpr):
    """Keep the last hidden states y [num_rows, hidden_size] in the cache."""
    row = tl.program_id(0)
    if row < tl.load(pass_inputs + 4):
        inner = tl.arange(0, block)
        is_inner = inner < hidden_size
        hidden = tl.multiple_of(tl.load(pass_inputs + 2).to(tl.pointer_type(y.dtype.element_ty)), 16)
        value = tl.load(y + row * hidden_size + inner, mask=is_inner)
        tl.store(hidden + (tl.load(pass_inputs + 3) + row) * hidden_size + inner, value, mask=is_inner)
