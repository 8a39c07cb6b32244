"""Picks the token after each row of a pass from logits, within what it must spell, and scores it.

A pick is greedy, or at a temperature with noise that seed and position fix. Temperature sampling adds Gumbel
noise to the logits and takes the largest, which draws exactly from softmax(logits / temperature) (Gumbel
1954; "Gumbel-max trick"). The noise depends on the seed and the token's position alone, so a drafted run
picks the very tokens that a plain run picks: with a draft that names one token, accepting it when it is the
token picked is the exact acceptance rule of speculative sampling (Leviathan et al. 2022, section 2.3) for a
one-point draft distribution. The lowest of equally likely tokens
is picked, so a pick stays the best of every narrower choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.top_k import largest, likeliest
from completion_engine.decoding.repository_bias import NUM_LOOKED_UP, RepositoryBias
from completion_engine.decoding.reuse import sampling_setting
from completion_engine.drafting.tree import accepted_path
from completion_engine.probability import NUM_RIVALS, TokenProbability
from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.ranking import first_largest, lowest_best


@dataclass(frozen=True, slots=True)
class Sampler:
    """How a token is picked. `num_tokens` cuts off the vocabulary's padding."""

    num_tokens: int
    temperature: float = 0.0
    seed: int = 0

    @property
    def setting(self) -> tuple[float, int]:
        """The inputs of a pick besides the logits."""
        return sampling_setting(self.temperature, self.seed)

    def pick(self, logits: Tensor, positions: Sequence[int]) -> list[int]:
        """Return one token for each row of `logits` [num_rows, vocab_size], which stand at `positions`."""
        if self.temperature > 0:
            noise = self._noise(positions).to(logits.device)
            logits = logits[:, : self.num_tokens].float() / self.temperature + noise
        if logits.device.type == "cpu":
            found = np.empty(len(logits), np.int64)
            largest(array_of(logits), self.num_tokens, found)
            return [int(token) for token in found]
        return [int(token) for token in first_largest(logits[:, : self.num_tokens]).tolist()]

    def pick_out_of(self, logits: Tensor, allowed: Sequence[int], position: int) -> int:
        """Return the pick of one row [vocab_size] when only the tokens in `allowed` may be written."""
        choice = torch.tensor(allowed, device=logits.device)
        return self._best(logits[choice], choice, position)

    def best_of(self, logits: Mapping[int, float], position: int) -> int:
        """Return the pick among the tokens whose logits are given."""
        return self._best(torch.tensor(list(logits.values())), torch.tensor(list(logits)), position)

    def _best(self, logits: Tensor, tokens: Tensor, position: int) -> int:
        if self.temperature > 0:
            noise = self._noise([position])[0].to(logits.device)
            logits = logits.float() / self.temperature + noise[tokens]
        return int(lowest_best(logits, tokens))

    def _noise(self, positions: Sequence[int]) -> Tensor:
        """Return Gumbel noise [num_positions, num_tokens]; the same for every row at a position."""
        drawn: dict[int, Tensor] = {}
        for position in positions:
            if position not in drawn:
                generator = torch.Generator().manual_seed(self.seed * 1_000_003 + position)
                uniform = torch.rand(self.num_tokens, generator=generator, dtype=torch.float64)
                drawn[position] = -(-uniform.clamp_min(1e-300).log()).log()
        return torch.stack([drawn[position] for position in positions]).float()


@dataclass(frozen=True, slots=True)
class OpenRows:
    """Rows whose logits are wanted: row 0 is the last token of `path`, the others follow it.

    `tokens` and `parents` [num_rows] as in `LanguageModel.forward`. The tokens after row 0 must spell
    `bound`.
    """

    path: Sequence[int]
    tokens: Sequence[int]
    parents: Sequence[int]
    bound: HealingConstraint

    def positions(self) -> list[tuple[int, HealingConstraint]]:
        """Return for each row the position of the token after it, and what that must still spell."""
        found = [(len(self.path), self.bound)]
        for token, parent in zip(self.tokens[1:], self.parents[1:], strict=True):
            position, above = found[parent]
            found.append((position + 1, above.after(token) if above.bytes else above))
        return found


@dataclass(frozen=True, slots=True)
class Picks:
    """One token for each row; for the rows that prove true, in order, the probability of theirs."""

    tokens: list[int]
    probabilities: list[TokenProbability]


@dataclass(frozen=True, slots=True)
class Picker:
    """How tokens are picked, with the repository bias that is mixed in.

    Without `scores`, the probabilities of the picks are unknown.
    """

    sampler: Sampler
    bias: RepositoryBias | None = None
    scores: bool = True

    def pick(self, rows: OpenRows, logits: Tensor) -> Picks:
        """Return what is written after each row of `logits` [num_rows, vocab_size].

        With a bias, the rows that prove true carry the mixture's picks; the others' picks are never written.
        """
        positions = rows.positions()
        picked = self.sampler.pick(logits, [position for position, _ in positions])
        for row, (position, healing) in enumerate(positions):
            if healing.bytes:
                picked[row] = self.sampler.pick_out_of(logits[row], healing.candidates(), position)
        probabilities: list[TokenProbability] = []
        if self.bias is None and not self.scores:
            return Picks(picked, probabilities)
        context = list(rows.path[-NUM_LOOKED_UP:])

        def pick_accepted(row: int) -> int:
            if row:
                context.append(rows.tokens[row])
            position, healing = positions[row]
            scored = score(logits[row], self.sampler.num_tokens, picked[row], healing, self.bias, context)
            if self.bias is not None:
                # A few tokens are raised: the best of all is one of them, or the best without a bias.
                picked[row] = self.sampler.best_of(scored.rivals, position)
            probabilities.append(scored.probability_of(picked[row]))
            return picked[row]

        accepted_path(rows.tokens, rows.parents, 0, pick_accepted)
        return Picks(picked, probabilities)

    def probabilities_of(
        self, path: Sequence[int], tokens: Sequence[int], bound: HealingConstraint, logits: Tensor
    ) -> list[float]:
        """Return the probability of each of `tokens` after `path` and those before it, among what spells
        `bound`.

        `logits` [num_tokens, vocab_size] are those after the last of `path` and all of `tokens` but one.
        The last one may also be written together with a line end, as one token.
        """
        context = list(path[-NUM_LOOKED_UP:])
        found: list[float] = []
        for row, token in enumerate(tokens):
            scored = score(logits[row], self.sampler.num_tokens, token, bound, self.bias, context)
            meant = [token] if row + 1 < len(tokens) else _with_line_end(token, bound.tokenizer)
            found.append(sum(scored.value_of(one, logits[row]) for one in meant))
            context.append(token)
            bound = bound.after(token)
        return found


def _with_line_end(token: int, tokenizer: Tokenizer) -> list[int]:
    """Return `token`, and the tokens that spell the same and a line end after it."""
    spelt = tokenizer.spell([token])
    longer = tokenizer.tokens_towards(spelt) if spelt else []
    return [token, *(other for other in longer if tokenizer.spell([other]).startswith(spelt + b"\n"))]


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """The logits of the tokens that count in a row; `log_sum` is that of all which may be written there.

    Each is the logarithm of a sum of e**logit. `rivals` holds the token that the target alone has picked,
    those that a bias raises, and the likeliest of the others.
    """

    rivals: Mapping[int, float]
    log_sum: float

    def probability_of(self, picked: int) -> TokenProbability:
        """Return the probability of the picked token and of its likeliest rivals."""
        values = {token: math.exp(min(0.0, logit - self.log_sum)) for token, logit in self.rivals.items()}
        others = sorted((-value, token) for token, value in values.items() if token != picked)
        return TokenProbability(
            values[picked], tuple((token, -value) for value, token in others[:NUM_RIVALS])
        )

    def value_of(self, token: int, logits: Tensor) -> float:
        """Return the probability of any token that may be written there; `logits` [vocab_size] as for
        `score`.
        """
        logit = self.rivals.get(token, float(logits[token]))
        return math.exp(min(0.0, logit - self.log_sum))


def score(  # noqa: PLR0913 - what a pick depends on
    logits: Tensor,
    num_tokens: int,
    picked: int,
    healing: HealingConstraint,
    bias: RepositoryBias | None,
    context: Sequence[int],
) -> ScoredRow:
    """Score the row `logits` [vocab_size] after `context`; without a bias the target picks `picked`."""
    rivals, whole = _likeliest(logits, num_tokens)
    raised = bias.raised(logits, context, whole) if bias else {}
    if healing.bytes:
        rivals, whole = _among(logits, healing.candidates())
        raised = {token: gain for token, gain in raised.items() if healing.allows(token)}
    rivals.setdefault(picked, float(logits[picked]))
    for token, gain in raised.items():
        rivals[token] = gain.mixed
    top = max(whole, *rivals.values())
    added = sum(math.exp(gain.mixed - top) - math.exp(gain.own - top) for gain in raised.values())
    return ScoredRow(rivals, top + math.log(math.exp(whole - top) + added))


def _likeliest(logits: Tensor, num_tokens: int) -> tuple[dict[int, float], float]:
    """Return the best few tokens of a row with their logits, and the logarithm of the sum of all e**logit."""
    row = logits[:num_tokens]
    if row.device.type != "cpu":
        best = row.float().topk(min(NUM_RIVALS, num_tokens))
        rivals = dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        return rivals, float(torch.logsumexp(row.float(), -1))
    found = np.empty((1, min(NUM_RIVALS, num_tokens)), np.int64)
    values = np.empty(found.shape, np.float32)
    likeliest(array_of(row[None]), 1.0, found, values)
    tokens = found[0].tolist()
    rivals = dict(zip(tokens, row[tokens].tolist(), strict=True))
    return rivals, rivals[tokens[0]] - math.log(values[0, 0])


def _among(logits: Tensor, allowed: Sequence[int]) -> tuple[dict[int, float], float]:
    """Return the same of some tokens alone."""
    tokens = torch.tensor(allowed, device=logits.device)
    row = logits[tokens].float()
    best = row.topk(min(NUM_RIVALS, len(allowed)))
    rivals = dict(zip(tokens[best.indices].tolist(), best.values.tolist(), strict=True))
    return rivals, float(torch.logsumexp(row, -1))
