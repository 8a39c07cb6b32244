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
    num_span_tokens: tl.constexpr, size: tl.constexpr, most: tl.constexpr, most_block: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """best [num_programs]: where what was written last stood before, as length * size + its last place.

    The longest run of at most `most` tokens, and the latest of those; 0 where there is none. A run in a span
    counts for less than its length. One program for `block` places; no load waits for another's result.
    """
    place = tl.program_id(0) * block + tl.arange(0, block)
    back = tl.arange(0, most_block)
    last = num_span_tokens + tl.load(pass_inputs + 3)
    follower = tl.load(text + place + 1, mask=place < last, other=-1)
    wanted = tl.load(text + last - back, mask=(back < most) & (back <= last - num_span_tokens), other=-2)
    spot = place[:, None] - back[None, :]
    found = tl.load(text + spot, mask=(spot >= 0) & (place < last)[:, None], other=-1)
    length = tl.min(tl.where(found == wanted[None, :], most, back[None, :]), 1)
    length = tl.where(follower >= 0, length, 0).to(tl.int64)
    length -= tl.where(place < num_span_tokens, HANDICAP, 0)
    tl.store(best + tl.program_id(0), tl.max(tl.where(length > 0, length * size + place, 0), 0))


@triton.jit
def put(at, is_put, tokens, parents, places, survivals, chances, token, parent, place, survival, chance):
    """Write down the candidates `at`, a block of them."""
    tl.store(tokens + at, token, mask=is_put)
    tl.store(parents + at, parent, mask=is_put)
    tl.store(places + at, place, mask=is_put)
    tl.store(survivals + at, survival, mask=is_put)
    tl.store(chances + at, chance, mask=is_put)


@triton.jit
def score(
    pass_inputs, text, best, weights, found, shares, chosen, tokens, parents, places, survivals, chances,
    num_best: tl.constexpr, best_block: tl.constexpr,
    num_span_tokens: tl.constexpr, size: tl.constexpr, most: tl.constexpr,
    length: tl.constexpr, length_block: tl.constexpr, num_depths: tl.constexpr,
    num_beams: tl.constexpr, beam_block: tl.constexpr, breadth: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """All candidates [num_depths * block + length]: token, parent, place in `text`, acceptance probability,
    share.

    The drafter and the text that is looked up both guess: after a run of n tokens the text has weights[n]
    [most + 1], and the drafter's shares the rest, so that siblings sum to at most one. Parent and place are
    -1 if there is none; so is the acceptance probability without a candidate. Everything is read first;
    from one depth to the next the values stay in registers.
    """
    longest = tl.load(best + tl.arange(0, best_block), mask=tl.arange(0, best_block) < num_best, other=0)
    key = tl.max(longest, 0)
    match, place = key // size, key % size
    last = num_span_tokens + tl.load(pass_inputs + 3)
    steps = tl.arange(0, length_block)
    spots = place + 1 + steps
    is_read = (match > 0) & (steps < length) & (spots <= last)
    texts = tl.load(text + spots, mask=is_read, other=-1)
    num_texts = tl.min(tl.where(texts < 0, steps, length), 0)  # the text ends before its first gap
    is_text = steps < num_texts
    powers = tl.load(weights + tl.minimum(match + steps, most), mask=is_text, other=0.0)

    inner, beams = tl.arange(0, block), tl.arange(0, beam_block)
    beam = tl.minimum(inner // breadth, num_beams - 1)
    guesses, portions, ways, texts_at, powers_at = (), (), (), (), ()
    for depth in tl.static_range(num_depths):
        cells, is_there = depth * num_beams * breadth + inner, inner < (num_beams if depth else 1) * breadth
        guesses = guesses + (tl.load(found + cells, mask=is_there, other=-1),)
        portions = portions + (tl.load(shares + cells, mask=is_there, other=0.0),)
        way = tl.load(chosen + depth * num_beams + beams, mask=beams < num_beams, other=-1)
        ways = ways + (way,)
        texts_at = texts_at + (tl.load(text + place + 1 + depth, mask=depth < num_texts, other=-2),)
        power = tl.load(weights + tl.minimum(match + depth, most), mask=depth < num_texts, other=0.0)
        powers_at = powers_at + (power,)

    on = key * 0  # the beam that goes along the text; -1 where none does
    above, survival_above, num_hits = key * 0 - 1, 1.0, key * 0  # the candidate that the text continues
    survival = tl.full([block], 1.0, tl.float32)
    for depth in tl.static_range(num_depths):
        is_there, weight = inner < (num_beams if depth else 1) * breadth, powers_at[depth]
        parent = tl.zeros([block], tl.int64) - 1
        if depth > 0:
            source = tl.gather(ways[depth - 1], beam, 0)
            parent = (depth - 1) * block + source
            survival = tl.gather(survival, source.to(tl.int32), 0)
        is_along = is_there & (beam == on)
        is_hit = is_along & (guesses[depth] == texts_at[depth])
        share = portions[depth]
        chance = tl.where(is_along, share * (1.0 - weight), share) + tl.where(is_hit, weight, 0.0)
        chance = tl.minimum(chance, 1.0)  # rounding must not make a child likelier than its parent
        survival = survival * chance
        put(
            depth * block + inner, inner < block, tokens, parents, places, survivals, chances,
            guesses[depth], parent, tl.where(is_hit, place + 1 + depth, -1),
            tl.where(is_there, survival, -1.0), chance,
        )  # fmt: skip
        hit = tl.max(tl.where(is_hit, inner, -1), 0).to(tl.int64)
        survival_above = tl.where(hit >= 0, tl.max(tl.where(is_hit, survival, 0.0), 0), survival_above)
        above = tl.where(hit >= 0, depth * block + hit, above)
        num_hits += (hit >= 0).to(tl.int64)
        goes_on = (ways[depth] == hit) & (beams < num_beams) & (hit >= 0)
        on = tl.max(tl.where(goes_on, beams, -1), 0).to(tl.int64)

    # From where no beam has them, the text's tokens are candidates of their own, each after the one before.
    is_own = is_text & (steps >= num_hits)
    own_survival = survival_above * tl.cumprod(tl.where(steps >= num_hits, powers, 1.0), 0)
    own = num_depths * block + steps
    put(
        own, steps < length, tokens, parents, places, survivals, chances,
        texts, tl.where(steps == num_hits, above, own - 1), tl.where(is_own, spots, -1),
        tl.where(is_own, own_survival, -1.0), powers,
    )  # fmt: skip


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
