"""The likeliest tokens of each row of logits, best first, and the logarithm of the row's sum of e**logit.

Two kernels: blocks of a row first, then the blocks of each row. A row's result does not depend on the other
rows. Among equal logits the lowest id comes first, as in `target_model.ranking`.
"""

import triton
import triton.language as tl

LOWEST: tl.constexpr = tl.constexpr(-3.0e38)


@triton.jit(do_not_specialize=["num_tokens"])
def best_of_blocks(
    logits, tops, totals, values, tokens, num_tokens,
    vocab_size: tl.constexpr, num_best: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The best of each block of a row's first `num_tokens` logits; one program a block and a row.

    logits [num_rows, vocab_size]; the largest of a block and its sum of e**(logit - largest) go to tops and
    totals [num_rows, num_blocks], the best to values and tokens [num_rows, num_blocks, num_best].
    """
    row = tl.program_id(1)
    inner = tl.program_id(0) * block + tl.arange(0, block)
    is_token = inner < num_tokens
    value = tl.load(logits + row.to(tl.int64) * vocab_size + inner, mask=is_token, other=float("-inf"))
    value = value.to(tl.float32)
    top = tl.max(value, 0)
    at = row * tl.num_programs(0) + tl.program_id(0)
    tl.store(tops + at, top)
    base = tl.maximum(top, LOWEST)  # a block of padding has no top
    tl.store(totals + at, tl.sum(tl.exp(value - base), 0))
    for rank in tl.static_range(num_best):
        best = tl.max(value, 0)
        token = tl.min(tl.where(value == best, inner, num_tokens - 1), 0)  # a token, even where all are NaN
        tl.store(values + at * num_best + rank, best)
        tl.store(tokens + at * num_best + rank, token.to(tl.int64))
        value = tl.where(inner == token, float("-inf"), value)


@triton.jit(do_not_specialize=["num_tokens", "num_rows"])
def best_of_rows(
    tops, totals, values, tokens, record, num_tokens, num_rows,
    num_best: tl.constexpr, num_blocks: tl.constexpr, block: tl.constexpr, candidate_block: tl.constexpr,
):  # fmt: skip
    """The best of each row, from those of its blocks; one program a row.

    record [2 * num_best + 1, num_rows]: tokens by rank, the bits of their logits by rank, and the bits of the
    logarithm of the sum, all float32.
    """
    row = tl.program_id(0)
    each = tl.arange(0, block)
    top = tl.load(tops + row * num_blocks + each, mask=each < num_blocks, other=float("-inf"))
    total = tl.load(totals + row * num_blocks + each, mask=each < num_blocks, other=0.0)
    highest = tl.maximum(tl.max(top, 0), LOWEST)
    log_sum = highest + tl.log(tl.sum(total * tl.exp(top - highest), 0))
    inner = tl.arange(0, candidate_block)
    is_used = inner < num_blocks * num_best
    first = row * num_blocks * num_best
    value = tl.load(values + first + inner, mask=is_used, other=float("-inf"))
    token = tl.load(tokens + first + inner, mask=is_used, other=0)
    for rank in tl.static_range(num_best):
        best = tl.max(value, 0)
        chosen = tl.min(tl.where((value == best) & is_used, token, num_tokens - 1), 0)
        tl.store(record + rank * num_rows + row, chosen)
        bits = best.to(tl.int32, bitcast=True).to(tl.int64)
        tl.store(record + (num_best + rank) * num_rows + row, bits)
        value = tl.where(token == chosen, float("-inf"), value)
    bits = log_sum.to(tl.int32, bitcast=True).to(tl.int64)
    tl.store(record + 2 * num_best * num_rows + row, bits)
