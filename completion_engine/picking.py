"""What the target writes behind each row of a pass, bound by what the text still has to spell."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from completion_engine.sampling import Sampler
from completion_engine.written import Owed


def pick_rows(  # noqa: PLR0913 - how, bound by what, from what, behind which rows, and where they stand
    sampler: Sampler,
    owing: Owed,
    logits: Tensor,
    tokens: Sequence[int],
    parents: Sequence[int],
    position: int,
) -> list[int]:
    """One token for each row of `logits` [num_rows, vocab_size].

    Row 0 is the last written token, the others follow it; `tokens` and `parents` [num_rows] as in
    `LanguageModel.forward`. `owing` is what has to be spelt behind row 0, and `position` where the token
    behind it stands.
    """
    depths, owed = [0], [owing]
    for token, parent in zip(tokens[1:], parents[1:], strict=True):
        above = owed[parent]
        depths.append(depths[parent] + 1)
        owed.append(above.after(token) if above.bytes else above)
    picked = sampler.pick(logits, [position + depth for depth in depths])
    for row, (depth, bound) in enumerate(zip(depths, owed, strict=True)):
        if bound.bytes:
            picked[row] = sampler.pick_out_of(logits[row], bound.candidates(), position + depth)
    return picked
