"""A whole step of drafted decoding on the device, without the networks: look up, score, build_tree, accept.

`text` [num_span_tokens + capacity] holds spans of other text, then what is written, each token at its
position in the cache; -1 where there is nothing. For `pass_inputs` see `kernels.attention`. Candidates for a
draft: `block` for each depth of a search, as it found them, then `length` for text that is looked up.
"""

import triton
import triton.language as tl

from completion_engine.gpu.kernels.attention import HEADER

HANDICAP: tl.constexpr = tl.constexpr(2)  # tokens more that a span has to agree for, to be believed as much


@triton.jit
def look_up(
    pass_inputs, text, best,
    num_span_tokens: tl.constexpr, size: tl.constexpr, most: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """best [num_programs]: where what was written last stood before, as length * size + its last place.

    The longest run of at most `most` tokens, and the latest of those; 0 where there is none. A run in a span
    counts for less than its length. One program for `block` places.
    """
    place = tl.program_id(0) * block + tl.arange(0, block)
    last = num_span_tokens + tl.load(pass_inputs + 3)
    follower = tl.load(text + place + 1, mask=place < last, other=-1)
    is_same = (place < last) & (follower >= 0)
    length = tl.zeros([block], tl.int64)
    for back in range(most):
        wanted = tl.load(text + last - back, mask=back <= last - num_span_tokens, other=-2)
        found = tl.load(text + place - back, mask=is_same & (place >= back), other=-1)
        is_same = is_same & (found == wanted)
        length += is_same.to(tl.int64)
    length -= tl.where(place < num_span_tokens, HANDICAP, 0)
    tl.store(best + tl.program_id(0), tl.max(tl.where(length > 0, length * size + place, 0), 0))


@triton.jit
def put(at, tokens, parents, places, survivals, chances, token, parent, place, survival, chance):
    """Write down the candidates `at`: one of them or a block."""
    tl.store(tokens + at, token)
    tl.store(parents + at, parent)
    tl.store(places + at, place)
    tl.store(survivals + at, survival)
    tl.store(chances + at, chance)


@triton.jit
def score(
    pass_inputs, text, best, weights, found, shares, chosen, tokens, parents, places, survivals, chances,
    num_best: tl.constexpr, best_block: tl.constexpr,
    num_span_tokens: tl.constexpr, size: tl.constexpr, most: tl.constexpr, length: tl.constexpr,
    num_depths: tl.constexpr, num_beams: tl.constexpr, beam_block: tl.constexpr,
    breadth: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """All candidates [num_depths * block + length]: token, parent, place in `text`, acceptance probability,
    share.

    The drafter and the text that is looked up both guess: after a run of n tokens the text has weights[n]
    [most + 1], and the drafter's shares the rest, so that siblings sum to at most one. Parent and place are
    -1 if there is none; so is the acceptance probability without a candidate.
    """
    longest = tl.load(best + tl.arange(0, best_block), mask=tl.arange(0, best_block) < num_best, other=0)
    key = tl.max(longest, 0)
    match, place = key // size, key % size
    last = num_span_tokens + tl.load(pass_inputs + 3)
    inner, beams = tl.arange(0, block), tl.arange(0, beam_block)
    beam = inner // breadth
    on = key * 0  # the beam that goes along the text; -1 where none does
    above, survival_above = key * 0 - 1, 1.0  # the candidate that the text continues
    is_going = match > 0
    for depth in tl.static_range(length):
        spot = place + 1 + depth
        token = tl.load(text + spot, mask=is_going & (spot <= last), other=-1)
        is_going = token >= 0
        weight = tl.load(weights + tl.minimum(match + depth, most), mask=is_going, other=0.0)
        hit = key * 0 - 1
        if depth < num_depths:
            first = depth * num_beams * breadth
            is_found = inner < (breadth if depth == 0 else num_beams * breadth)
            guess = tl.load(found + first + inner, mask=is_found, other=-1)
            share = tl.load(shares + first + inner, mask=is_found, other=0.0)
            parent, before = tl.zeros([block], tl.int64) - 1, tl.full([block], 1.0, tl.float32)
            if depth > 0:
                source = tl.load(chosen + (depth - 1) * num_beams + beam, mask=is_found, other=0)
                parent = (depth - 1) * block + source
                before = tl.load(survivals + parent, mask=is_found, other=0.0)
            is_along = is_found & (beam == on)
            is_hit = is_along & is_going & (guess == token)
            chance = tl.where(is_along, share * (1.0 - weight), share) + tl.where(is_hit, weight, 0.0)
            chance = tl.minimum(chance, 1.0)  # rounding must not make a child likelier than its parent
            survival = before * chance
            hit = tl.max(tl.where(is_hit, inner, -1), 0).to(tl.int64)
            put(
                depth * block + inner, tokens, parents, places, survivals, chances,
                guess, parent, tl.where(is_hit, spot, -1), tl.where(is_found, survival, -1.0), chance,
            )  # fmt: skip
            survival_above = tl.where(hit >= 0, tl.max(tl.where(is_hit, survival, 0.0), 0), survival_above)
            goes_on = tl.load(chosen + depth * num_beams + beams, mask=beams < num_beams, other=-1)
            on = tl.max(tl.where((goes_on == hit) & (hit >= 0), beams, -1), 0).to(tl.int64)
        # Where no beam has it, the text's token is a candidate of its own.
        is_own = is_going & (hit < 0)
        survival_above = tl.where(is_own, survival_above * weight, survival_above)
        own = num_depths * block + depth
        put(
            own, tokens, parents, places, survivals, chances,
            token, above, tl.where(is_own, spot, -1), tl.where(is_own, survival_above, -1.0), weight,
        )  # fmt: skip
        above = tl.where(is_own, own, tl.where(hit >= 0, depth * block + hit, above))
        tl.debug_barrier()  # the next depth reads what this one wrote


@triton.jit
def build_tree(
    start, pass_inputs, tokens, parents, places, survivals, chances, row_of, row_places, row_chances,
    num_candidates: tl.constexpr, candidate_block: tl.constexpr,
    num_depths: tl.constexpr, block: tl.constexpr, num_rows: tl.constexpr,
):  # fmt: skip
    """The likeliest candidates become the inputs of a pass, after the one row of `start`.

    A parent is as likely as its child at least and comes before it, so all chosen rows hang together.
    `row_of` [num_candidates] is work space; place and share of each row go to `row_places` and `row_chances`
    [num_rows].
    """
    inner = tl.arange(0, candidate_block)
    survival = tl.load(survivals + inner, mask=inner < num_candidates, other=-1.0)
    is_before = (inner[None, :] < inner[:, None]) & (survival[None, :] == survival[:, None])
    is_before = is_before | (survival[None, :] > survival[:, None])
    row = 1 + tl.sum(is_before.to(tl.int64), 1)
    is_row = (row < num_rows) & (survival > 0.0)
    num_used = 1 + tl.sum(is_row.to(tl.int64), 0)
    tl.store(row_of + inner, row, mask=is_row)
    every, header = tl.arange(0, num_rows), tl.arange(0, HEADER)
    ancestors = pass_inputs + HEADER + 2 * num_rows
    tl.store(pass_inputs + header, tl.where(header == 4, num_used, tl.load(start + header)))
    tl.store(pass_inputs + HEADER + every, tl.where(every == 0, tl.load(start + HEADER), 0))
    tl.store(pass_inputs + HEADER + num_rows + every, every.to(tl.int64) * 0)
    tl.store(row_places + every, every.to(tl.int64) * 0 - 1)
    tl.store(row_chances + every, every.to(tl.float32) * 0.0)
    for line in range(num_rows):
        tl.store(ancestors + line * num_rows + every, every.to(tl.int64) * 0)
    tl.debug_barrier()  # all rows are known, and idle ones are empty

    own_depth = tl.where(inner < num_depths * block, inner // block, inner - num_depths * block) + 1
    tl.store(pass_inputs + HEADER + row, tl.load(tokens + inner, mask=is_row, other=0), mask=is_row)
    tl.store(pass_inputs + HEADER + num_rows + row, own_depth.to(tl.int64), mask=is_row)
    tl.store(row_places + row, tl.load(places + inner, mask=is_row, other=-1), mask=is_row)
    tl.store(row_chances + row, tl.load(chances + inner, mask=is_row, other=0.0), mask=is_row)
    node = inner.to(tl.int64)
    for up in range(num_rows - 1):  # from the deepest place of the table; row 0 stands on every way
        depth = num_rows - 1 - up
        is_path = is_row & (depth <= own_depth)
        above = tl.load(row_of + node, mask=is_path, other=0)
        tl.store(ancestors + row * num_rows + depth, above, mask=is_path)
        node = tl.where(is_path, tl.load(parents + node, mask=is_path, other=-1), node)


@triton.jit
def accept(
    pass_inputs, picked, states, row_places, row_chances, matched, sources, text, after, after_state, record,
    num_span_tokens: tl.constexpr, num_rows: tl.constexpr,
    hidden_size: tl.constexpr, hidden_block: tl.constexpr,
):  # fmt: skip
    """The true rows of a pass; `picked` [num_rows] is the target's token after each.

    A row is true where it and all rows on the way to it carry what was picked before them; siblings differ,
    so at most one row of a depth is. The result is in `record` [3 + 4 * num_rows]: the number of true rows,
    the target's token after them, the number of all rows, then by depth their tokens, places in `text`,
    shares in millionths, and the rows themselves. `sources` [num_rows] is where each row is to be taken from;
    `after` [HEADER + 2] and `after_state` are what the next step starts from. `matched` [num_rows] is work
    space.
    """
    row = tl.arange(0, num_rows)
    ancestors = pass_inputs + HEADER + 2 * num_rows
    depth = tl.load(pass_inputs + HEADER + num_rows + row)
    parent = tl.load(ancestors + row * num_rows + tl.maximum(depth - 1, 0))
    is_match = (tl.load(pass_inputs + HEADER + row) == tl.load(picked + parent)) | (row == 0)
    tl.store(matched + row, is_match.to(tl.int64))
    tl.debug_barrier()
    line = tl.load(ancestors + row[:, None] * num_rows + row[None, :])
    is_known = tl.load(matched + line) | (row[None, :] > depth[:, None]).to(tl.int64)
    num_used = tl.load(pass_inputs + 4)
    is_true = (tl.min(is_known, 1) > 0) & (row < num_used)
    deepest = tl.max(tl.where(is_true, depth * num_rows + row, 0), 0)
    num_true, end = deepest // num_rows + 1, deepest % num_rows

    path = tl.load(ancestors + end * num_rows + row, mask=row < num_true, other=0)
    token = tl.load(pass_inputs + HEADER + path)
    written = tl.load(picked + end)
    place = tl.load(row_places + path, mask=row < num_true, other=-1)
    chance = tl.load(row_chances + path, mask=(row < num_true) & (row > 0), other=0.0)
    tl.store(sources + row, tl.where(row < num_true, path, row))
    counted = tl.where(row == 0, num_true, tl.where(row == 1, written, num_used))
    tl.store(record + row, counted, mask=row < 3)
    tl.store(record + 3 + row, token)
    tl.store(record + 3 + num_rows + row, place)
    tl.store(record + 3 + 2 * num_rows + row, (chance * 1e6).to(tl.int64))
    tl.store(record + 3 + 3 * num_rows + row, path)

    start = tl.load(pass_inputs + 3)
    tl.store(text + num_span_tokens + start + row, token, mask=row < num_true)
    tl.store(text + num_span_tokens + start + num_true + row, row * 0 + written, mask=row == 0)
    header = tl.arange(0, HEADER)
    tl.store(after + header, tl.load(pass_inputs + header) + tl.where(header == 3, num_true, 0))
    tl.store(after + HEADER + row, row * 0 + written, mask=row == 0)
    inner = tl.arange(0, hidden_block)
    state = tl.load(states + end * hidden_size + inner, mask=inner < hidden_size)
    tl.store(after_state + inner, state, mask=inner < hidden_size)
