"""What the target writes behind each row of a pass, bound by what the text still has to spell."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from completion_engine.decoding.sampling import Sampler
from completion_engine.prompting.written import HealingConstraint


def pick_rows(  # noqa: PLR0913 - how, bound by what, from what, behind which rows, and where they stand
    sampler: Sampler,
    bound: HealingConstraint,
    logits: Tensor,
    tokens: Sequence[int],
    parents: Sequence[int],
    position: int,
) -> list[int]:
    """One token for each row of `logits` [num_rows, vocab_size].

    Row 0 is the last written token, the others follow it; `tokens` and `parents` [num_rows] as in
    `LanguageModel.forward`. `bound` is what has to be spelt behind row 0, and `position` where the token
    behind it stands.
    """
    depths, healing = [0], [bound]
    for token, parent in zip(tokens[1:], parents[1:], strict=True):
        above = healing[parent]
        depths.append(depths[parent] + 1)
        healing.append(above.after(token) if above.bytes else above)
    picked = sampler.pick(logits, [position + depth for depth in depths])
    for row, (depth, rest) in enumerate(zip(depths, healing, strict=True)):
        if rest.bytes:
            picked[row] = sampler.pick_out_of(logits[row], rest.candidates(), position + depth)
    return picked
