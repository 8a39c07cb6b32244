"""Picking tokens from logits: greedy, or at a temperature with noise fixed by seed and position.

Temperature sampling adds Gumbel noise to the logits and takes the largest, which draws exactly from
softmax(logits / temperature) (Gumbel 1954; "Gumbel-max trick"). The noise depends on the seed and the
token's position alone, so a drafted run picks the very tokens that a plain run picks: with a draft that
names one token, accepting it when it is the token picked is the exact acceptance rule of speculative
sampling (Leviathan et al. 2022, section 2.3) for a one-point draft distribution. Of equal ones the lowest
token is picked, however many may be written: so a pick stays the best of every narrower choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from completion_engine.cpu.kernels.language import array_of
from completion_engine.cpu.kernels.top_k import largest
from completion_engine.target_model.ranking import first_largest, lowest_best


@dataclass(frozen=True, slots=True)
class Sampler:
    """How a token is picked. `num_tokens` cuts off the vocabulary's padding."""

    num_tokens: int
    temperature: float = 0.0
    seed: int = 0

    @property
    def setting(self) -> tuple[float, int]:
        """What the picks depend on, besides the logits."""
        return (self.temperature, self.seed if self.temperature else 0)

    def pick(self, logits: Tensor, positions: Sequence[int]) -> list[int]:
        """One token for each row of `logits` [num_rows, vocab_size], which stand at `positions`."""
        if self.temperature > 0:
            noise = self._noise(positions).to(logits.device)
            logits = logits[:, : self.num_tokens].float() / self.temperature + noise
        if logits.device.type == "cpu":
            places = np.empty(len(logits), np.int64)
            largest(array_of(logits), self.num_tokens, places)
            return [int(token) for token in places]
        return [int(token) for token in first_largest(logits[:, : self.num_tokens]).tolist()]

    def pick_out_of(self, logits: Tensor, allowed: Sequence[int], position: int) -> int:
        """The pick of one row [vocab_size] when only the tokens in `allowed` may be written."""
        choice = torch.tensor(allowed, device=logits.device)
        return self._best(logits[choice], choice, position)

    def best_of(self, logits: Mapping[int, float], position: int) -> int:
        """The pick among the tokens whose logits are given."""
        return self._best(torch.tensor(list(logits.values())), torch.tensor(list(logits)), position)

    def _best(self, logits: Tensor, tokens: Tensor, position: int) -> int:
        if self.temperature > 0:
            noise = self._noise([position])[0].to(logits.device)
            logits = logits.float() / self.temperature + noise[tokens]
        return int(lowest_best(logits, tokens))

    def _noise(self, positions: Sequence[int]) -> Tensor:
        """Gumbel noise [num_positions, num_tokens]; the same for every row at a position."""
        drawn: dict[int, Tensor] = {}
        for position in positions:
            if position not in drawn:
                generator = torch.Generator().manual_seed(self.seed * 1_000_003 + position)
                uniform = torch.rand(self.num_tokens, generator=generator, dtype=torch.float64)
                drawn[position] = -(-uniform.clamp_min(1e-300).log()).log()
        return torch.stack([drawn[position] for position in positions]).float()
