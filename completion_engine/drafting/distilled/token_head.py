"""The head of a distilled drafter: approximate logits for all tokens, accurate ones for the most promising.

Multiplying by the whole head takes much of a drafter's step, mostly for unlikely tokens. On the CPU, a
product of small rank first approximates all logits, and only the rows of the best tokens are multiplied
accurately (SVD-softmax, Shim et al. 2017). The low-rank factors are fitted to states that the drafter really
produces: fitted to the head's weights alone, they would need several times the rank
(docs/experiments/drafting.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from completion_engine.cpu.kernels.language import Array, Floats, array_of
from completion_engine.cpu.kernels.rows import round_whole_rows
from completion_engine.cpu.kernels.top_k import score_promising
from completion_engine.cpu.linear import Linear
from completion_engine.target_model.weights import WeightKind

# The least number of tokens that get an accurate logit.
NUM_EXACT = 128


@dataclass(frozen=True, slots=True)
class Preview:
    """Low-rank factors: `head @ widen @ (narrow @ state)` approximates `head @ state` for the drafter's
    states.

    `narrow` is [rank, hidden_size], `widen` [hidden_size, rank].
    """

    narrow: Tensor
    widen: Tensor

    def check(self, hidden_size: int) -> None:
        """Raises ValueError unless the two factors fit each other and `hidden_size`."""
        rank = len(self.narrow)
        if tuple(self.narrow.shape) != (rank, hidden_size) or tuple(self.widen.shape) != (hidden_size, rank):
            raise ValueError("the preview has another size than the weights")


class PreviewedHead:
    """The product with the head on the CPU; the logits of unlikely tokens stay approximate."""

    def __init__(self, rows: Tensor, preview: Preview, kind: WeightKind) -> None:
        """`rows` [num_tokens, hidden_size] are the head's weights; `preview` was fitted to the drafter."""
        self._narrow = preview.narrow.float().T.contiguous()
        self._rough = Linear(rows.float() @ preview.widen.float(), kind=kind)
        self._levels: Array = np.empty(rows.shape, np.int8)
        self._scales: Floats = np.empty(len(rows), np.float32)
        round_whole_rows(array_of(rows), self._levels, self._scales)
        self.num_bytes = self._narrow.nbytes + self._rough.num_bytes + self._levels.nbytes

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits [num_rows, num_tokens], float32, of states [num_rows, hidden_size]."""
        logits = self._rough(states.float() @ self._narrow)
        score_promising(array_of(logits), array_of(states), self._levels, self._scales, NUM_EXACT)
        return logits


def head_for(rows: Tensor, preview: Preview | None, kind: WeightKind) -> Linear | PreviewedHead:
    """Return the faster head for the device of `rows`; without a preview, the full product."""
    if preview is None or rows.device.type != "cpu":
        return Linear(rows, kind=kind)
    return PreviewedHead(rows, preview, kind)
