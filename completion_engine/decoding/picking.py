"""What is written behind each row of a pass, bound by what it has to spell, and how likely it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from completion_engine.decoding.chances import Chance
from completion_engine.decoding.repository_memory import NUM_LOOKED_UP, RepositoryMemory
from completion_engine.decoding.sampling import Sampler
from completion_engine.decoding.weighing import weigh
from completion_engine.drafting.tree import true_path
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.prompting.written import HealingConstraint


@dataclass(frozen=True, slots=True)
class OpenRows:
    """Rows whose logits are wanted: row 0 is the last token of `path`, the others follow it.

    `tokens` and `parents` [num_rows] as in `LanguageModel.forward`. `bound` is what has to be spelt behind
    row 0.
    """

    path: Sequence[int]
    tokens: Sequence[int]
    parents: Sequence[int]
    bound: HealingConstraint

    def places(self) -> list[tuple[int, HealingConstraint]]:
        """For each row where the token behind it stands, and what it still has to spell."""
        found = [(len(self.path), self.bound)]
        for token, parent in zip(self.tokens[1:], self.parents[1:], strict=True):
            position, above = found[parent]
            found.append((position + 1, above.after(token) if above.bytes else above))
        return found


@dataclass(frozen=True, slots=True)
class Picks:
    """One token for each row, and for the rows that prove true, in their order, how likely theirs was."""

    tokens: list[int]
    chances: list[Chance]


@dataclass(frozen=True, slots=True)
class Picker:
    """How tokens are picked, and the repository's memory where it is mixed in.

    `weighs` tells the chances of what is picked; without it they are unknown.
    """

    sampler: Sampler
    memory: RepositoryMemory | None = None
    weighs: bool = True

    def pick(self, rows: OpenRows, logits: Tensor) -> Picks:
        """What is written behind each row of `logits` [num_rows, vocab_size].

        Where a memory is mixed in, the rows that prove true carry the mixture's picks; nobody writes what the
        others carry.
        """
        places = rows.places()
        picked = self.sampler.pick(logits, [position for position, _ in places])
        for row, (position, healing) in enumerate(places):
            if healing.bytes:
                picked[row] = self.sampler.pick_out_of(logits[row], healing.candidates(), position)
        chances: list[Chance] = []
        if self.memory is None and not self.weighs:
            return Picks(picked, chances)
        context = list(rows.path[-NUM_LOOKED_UP:])

        def pick_true(row: int) -> int:
            if row:
                context.append(rows.tokens[row])
            position, healing = places[row]
            weighed = weigh(logits[row], self.sampler.num_tokens, picked[row], healing, self.memory, context)
            if self.memory is not None:
                # A few tokens are raised: the best of all is one of them, or what was the best without them.
                picked[row] = self.sampler.best_of(weighed.rivals, position)
            chances.append(weighed.chance_of(picked[row]))
            return picked[row]

        true_path(rows.tokens, rows.parents, 0, pick_true)
        return Picks(picked, chances)

    def shares_of(
        self, path: Sequence[int], tokens: Sequence[int], bound: HealingConstraint, logits: Tensor
    ) -> list[float]:
        """How likely each of `tokens` is behind `path` and those before it, among what spells `bound`.

        `logits` [num_tokens, vocab_size] are those behind the last of `path` and all of `tokens` but one.
        The last one may also be written together with a line end, as one token.
        """
        context = list(path[-NUM_LOOKED_UP:])
        found: list[float] = []
        for row, token in enumerate(tokens):
            weighed = weigh(logits[row], self.sampler.num_tokens, token, bound, self.memory, context)
            meant = [token] if row + 1 < len(tokens) else _with_line_end(token, bound.tokenizer)
            found.append(sum(weighed.share_of(one, logits[row]) for one in meant))
            context.append(token)
            bound = bound.after(token)
        return found


def _with_line_end(token: int, tokenizer: Tokenizer) -> list[int]:
    """`token`, and the tokens that spell the same and a line end behind it."""
    spelt = tokenizer.spell([token])
    longer = tokenizer.tokens_towards(spelt) if spelt else []
    return [token, *(other for other in longer if tokenizer.spell([other]).startswith(spelt + b"\n"))]
