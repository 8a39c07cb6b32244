"""Grouped attention of one pass over a cache, each row seeing its ancestors where a chain would put them.

A row at position p sees the positions up to p. Those before the pass lie at their own places in the cache;
those of the pass follow in row order, and `ancestors` holds the row at each depth on the way to a row. Keys
are walked by logical position in chunks of fixed length, and the chunks' results are joined in order. So a
row's sums are those of a chain, whatever the other rows are. The split over chunks follows flash-decoding
(Dao et al. 2023), the running softmax Milakov and Gimelshein 2018.

The inputs of a pass are in `pass_inputs`, int64: addresses of keys, values and hidden states, the position of
the first row, the number of rows in use; then tokens, depths and ancestors (see `PassInputs`).
"""

import triton
import triton.language as tl

HEADER: tl.constexpr = tl.constexpr(8)  # numbers before the tokens


@triton.jit
def places_of(pass_inputs, positions, start, row, num_rows, is_tree: tl.constexpr):
    """Where in the cache the keys of logical `positions` lie, as `row` sees them."""
    if is_tree:
        depths = positions - start
        table = pass_inputs + HEADER + 2 * num_rows + row * num_rows
        within = (depths >= 0) & (depths < num_rows)
        rows = tl.load(table + depths, mask=within, other=0).to(tl.int32)
        places = tl.where(depths < 0, positions, start + rows)
    else:
        places = positions
    return places


@triton.jit
def weigh(
    pass_inputs, query, keys, values, sees, first_key, end_key, start, own, scale, num_rows,
    head_size: tl.constexpr, capacity: tl.constexpr, is_tree: tl.constexpr,
    tile: tl.constexpr, key_block: tl.constexpr,
):  # fmt: skip
    """A running softmax of `query` [tile, head_size] over the keys from `first_key` to `end_key`, in order.

    Each query `sees` [tile] the keys up to a position of its own; their places are those that row `own` sees.
    """
    inner = tl.arange(0, head_size)
    top = tl.full([tile], float("-inf"), dtype=tl.float32)
    total = tl.zeros([tile], dtype=tl.float32)
    weighted = tl.zeros([tile, head_size], dtype=tl.float32)
    for block in range(first_key, end_key, key_block):
        positions = block + tl.arange(0, key_block)
        places = places_of(pass_inputs, positions, start, own, num_rows, is_tree)
        at = places[:, None].to(tl.int64) * head_size + inner[None, :]
        is_key = (positions < capacity)[:, None]
        key = tl.load(keys + at, mask=is_key, other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        score = tl.where(positions[None, :] <= sees[:, None], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)  # nothing seen yet must not give NaN
        weight = tl.exp2(score - base[:, None])
        fade = tl.exp2(top - base)
        value = tl.load(values + at, mask=is_key, other=0.0)
        total = total * fade + tl.sum(weight, 1)
        weighted = weighted * fade[:, None]
        weighted = tl.dot(weight.to(query.dtype), value, weighted, input_precision="ieee")
        top = higher
    return top, total, weighted


@triton.jit(do_not_specialize=["layer", "num_rows"])
def attend(
    pass_inputs, queries, sums, tops, totals, layer, scale, num_rows,
    num_kv: tl.constexpr, num_groups: tl.constexpr, head_size: tl.constexpr,
    capacity: tl.constexpr, is_tree: tl.constexpr, tile_rows: tl.constexpr, tile_groups: tl.constexpr,
    key_block: tl.constexpr, chunk: tl.constexpr,
):  # fmt: skip
    """One chunk of keys for one group of heads and a tile of rows.

    queries [num_rows, num_kv * num_groups, head_size]. Written are, by chunk, row and head: `sums`
    [num_chunks, num_rows, num_heads, head_size], not yet divided; `tops` and `totals` [num_chunks, num_rows,
    num_heads], the largest score (times log2 e) and the sum of weights relative to it, all float32. In a
    tree, a chunk that reaches beyond the cached positions is walked once for each row.
    """
    at_chunk, kv_head = tl.program_id(0), tl.program_id(1)
    dtype: tl.constexpr = queries.dtype.element_ty
    start = tl.load(pass_inputs + 3).to(tl.int32)
    num_used = tl.load(pass_inputs + 4).to(tl.int32)
    first_key = at_chunk * chunk
    if is_tree:
        own = tl.program_id(2)
        first_row = own // tile_rows * tile_rows
        has_work = (own < num_used) & ((own == first_row) | (first_key + chunk > start))
    else:
        own = 0
        first_row = tl.program_id(2) * tile_rows
        has_work = first_row < num_used
    tile = tl.arange(0, tile_rows * tile_groups)
    row, group = first_row + tile // tile_groups, tile % tile_groups
    is_query = (row < num_used) & (group < num_groups)
    depth = tl.load(pass_inputs + HEADER + num_rows + row, mask=is_query, other=-1).to(tl.int32)
    position = start + depth
    deepest = tl.max(tl.where(is_query, position, -1), 0)
    if has_work & (first_key <= deepest):
        keys = tl.multiple_of(tl.load(pass_inputs).to(tl.pointer_type(dtype)), 16)
        values = tl.multiple_of(tl.load(pass_inputs + 1).to(tl.pointer_type(dtype)), 16)
        base = (layer * num_kv + kv_head).to(tl.int64) * capacity * head_size
        inner = tl.arange(0, head_size)
        head = kv_head * num_groups + group
        query_at = (row * (num_kv * num_groups) + head)[:, None] * head_size + inner[None, :]
        query = tl.load(queries + query_at, mask=is_query[:, None], other=0.0)
        sees = tl.where(is_query, position, -1)
        end_key = tl.minimum(first_key + chunk, deepest + 1)
        top, total, weighted = weigh(
            pass_inputs, query, keys + base, values + base, sees, first_key, end_key, start,
            own, scale, num_rows, head_size, capacity, is_tree, tile_rows * tile_groups, key_block,
        )  # fmt: skip
        is_own = is_query
        if is_tree:
            is_own = is_query & (row == tl.where(first_key + chunk <= start, row, own))
        at_head = (at_chunk * num_rows + row) * (num_kv * num_groups) + head
        tl.store(tops + at_head, top, mask=is_own)
        tl.store(totals + at_head, total, mask=is_own)
        tl.store(
            sums + at_head[:, None].to(tl.int64) * head_size + inner[None, :], weighted, mask=is_own[:, None]
        )


@triton.jit(do_not_specialize=["num_rows"])
def join_chunks(
    pass_inputs, sums, tops, totals, result, num_rows,
    num_heads: tl.constexpr, head_size: tl.constexpr, chunk: tl.constexpr,
):  # fmt: skip
    """result [num_rows, num_heads, head_size]: the output of `attend`, joined from first chunk to last."""
    row, head = tl.program_id(0), tl.program_id(1)
    if row < tl.load(pass_inputs + 4):
        position = (tl.load(pass_inputs + 3) + tl.load(pass_inputs + HEADER + num_rows + row)).to(tl.int32)
        inner = tl.arange(0, head_size)
        top = tl.load(tops + row * num_heads + head)
        total = tl.load(totals + row * num_heads + head)
        weighted = tl.load(sums + (row * num_heads + head) * head_size + inner)
        for at_chunk in range(1, position // chunk + 1):
            at_head = ((at_chunk * num_rows + row) * num_heads + head).to(tl.int64)
            chunk_top = tl.load(tops + at_head)
            higher = tl.maximum(top, chunk_top)
            fade, rise = tl.exp2(top - higher), tl.exp2(chunk_top - higher)
            total = total * fade + tl.load(totals + at_head) * rise
            weighted = weighted * fade + tl.load(sums + at_head * head_size + inner) * rise
            top = higher
        at = (row * num_heads + head) * head_size + inner
        tl.store(result + at, (weighted / total).to(result.dtype.element_ty))
