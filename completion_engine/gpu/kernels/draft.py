"""The work between the products of a distilled drafter's step, and the choice of the paths that go on.

A step runs a few beams: each a token, the row whose state stands before it, and how likely its path is. For
`pass_inputs` see `kernels.attention`; its sixth number is the distance of the first token after the cached
ones.
"""

import triton
import triton.language as tl

from completion_engine.gpu.kernels.attention import HEADER
from completion_engine.gpu.kernels.rows import half_head, normed

AHEAD: tl.constexpr = tl.constexpr(5)


@triton.jit
def join_inputs(
    pass_inputs, tokens, sources, embedding, embedding_norm, states, state_norm, result, eps,
    hidden_size: tl.constexpr, block: tl.constexpr, is_first: tl.constexpr,
):  # fmt: skip
    """result [num_rows, 2 * hidden_size]: the norm of each token's embedding, and of the state before it.

    At first the tokens are in `pass_inputs`, all after state 0; later in `tokens` and `sources`.
    """
    row = tl.program_id(0)
    if is_first:
        token = tl.load(pass_inputs + HEADER + row)
        source = token * 0
    else:
        token, source = tl.load(tokens + row), tl.load(sources + row)
    inner = tl.arange(0, block)
    is_inner = inner < hidden_size
    seen = tl.load(embedding + token * hidden_size + inner, mask=is_inner, other=0.0).to(tl.float32)
    state = tl.load(states + source * hidden_size + inner, mask=is_inner, other=0.0).to(tl.float32)
    at = result + row * 2 * hidden_size + inner
    dtype = result.dtype.element_ty
    seen = normed(seen, embedding_norm, inner, is_inner, hidden_size, eps)
    state = normed(state, state_norm, inner, is_inner, hidden_size, eps)
    tl.store(at, seen.to(dtype), mask=is_inner)
    tl.store(at + hidden_size, state.to(dtype), mask=is_inner)


@triton.jit(do_not_specialize=["num_rows", "depth"])
def turn_queries(
    pass_inputs, parts, bias, cos, sin, queries, num_rows, depth,
    num_parts: tl.constexpr, num_heads: tl.constexpr, head_size: tl.constexpr,
):  # fmt: skip
    """queries [num_rows, num_heads, head_size]: the product's, turned by the position `depth` ahead."""
    row, head = tl.program_id(0), tl.program_id(1)
    half: tl.constexpr = head_size // 2
    inner = tl.arange(0, half)
    at = head * head_size + inner
    left = half_head(parts, bias, at, num_rows, row, num_heads * head_size, num_parts, True)
    right = half_head(parts, bias, at + half, num_rows, row, num_heads * head_size, num_parts, True)
    position = tl.load(pass_inputs + 3) + tl.load(pass_inputs + AHEAD) + depth
    c = tl.load(cos + position * head_size + half + inner).to(tl.float32)
    s = tl.load(sin + position * head_size + half + inner).to(tl.float32)
    dtype = queries.dtype.element_ty
    place = queries + row * (num_heads * head_size) + at
    tl.store(place, (left * c - right * s).to(dtype))
    tl.store(place + half, (right * c + left * s).to(dtype))


@triton.jit
def find_best(
    logits, ids, found, shares, temperature,
    num_tokens: tl.constexpr, breadth: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """found and shares [num_rows, breadth]: the likeliest tokens of each row of logits, best first.

    `ids` [num_tokens] are what the tokens are called; shares are of all logits over `temperature`.
    """
    row = tl.program_id(0)
    inner = tl.arange(0, block)
    value = tl.load(logits + row * num_tokens + inner, mask=inner < num_tokens, other=float("-inf"))
    top = tl.max(value, 0)
    total = tl.sum(tl.exp((value - top) / temperature), 0)
    for rank in tl.static_range(breadth):
        best = tl.max(value, 0)
        at = tl.min(tl.where(value == best, inner, block), 0)
        tl.store(found + row * breadth + rank, tl.load(ids + at))
        tl.store(shares + row * breadth + rank, tl.exp((best - top) / temperature) / total)
        value = tl.where(inner == at, float("-inf"), value)


@triton.jit
def choose_beams(
    found, shares, chosen, tokens, sources, survivals,
    num_beams: tl.constexpr, breadth: tl.constexpr, block: tl.constexpr, is_first: tl.constexpr,
):  # fmt: skip
    """The likeliest paths go on: chosen [num_beams] are their places in `found` [num_beams, breadth].

    Their tokens, the rows they come from and how likely they are go to `tokens`, `sources` and `survivals`
    [num_beams]. At first there is one beam, which is certain.
    """
    inner = tl.arange(0, block)
    beam = inner // breadth
    is_found = beam < (1 if is_first else num_beams)
    share = tl.load(shares + inner, mask=is_found, other=0.0)
    if not is_first:
        share *= tl.load(survivals + beam, mask=is_found, other=0.0)
    share = tl.where(is_found, share, -1.0)
    tl.debug_barrier()  # all probabilities are read before one is written
    for rank in tl.static_range(num_beams):
        best = tl.max(share, 0)
        at = tl.min(tl.where(share == best, inner, block), 0)
        tl.store(chosen + rank, at.to(tl.int64))
        tl.store(tokens + rank, tl.load(found + at))
        tl.store(sources + rank, (at // breadth).to(tl.int64))
        tl.store(survivals + rank, best)
        share = tl.where(inner == at, -2.0, share)
