"""A drafter's head: on the CPU every token's logit roughly, and those of the promising ones as they are.

A step of a drafter spends much of its time reading the head's weights for unlikely tokens. So a product of
small rank looks at all of them first, and only what stands out is read (SVD-softmax, Shim et al. 2017). Its
rank is spent on the states that the drafter really makes: fitted to the head alone it would take several
times as many numbers (docs/experiments/drafting.md).
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

# Tokens whose logit is worked out, at least.
NUM_EXACT = 128


@dataclass(frozen=True, slots=True)
class Preview:
    """`widen @ narrow` is near one for states as the drafter makes them, as far as the head can tell.

    `narrow` is [rank, hidden_size], `widen` [hidden_size, rank].
    """

    narrow: Tensor
    widen: Tensor

    def check(self, hidden_size: int) -> None:
        """Raises ValueError unless the parts fit together and a drafter of this size."""
        rank = len(self.narrow)
        if tuple(self.narrow.shape) != (rank, hidden_size) or tuple(self.widen.shape) != (hidden_size, rank):
            raise ValueError("the preview has another size than the weights")


class PreviewedHead:
    """The product with the head on the CPU; the logits of unlikely tokens stay rough."""

    def __init__(self, rows: Tensor, preview: Preview, kind: WeightKind) -> None:
        """`rows` [num_tokens, hidden_size] are the head's weights; `preview` was fitted to the drafter."""
        self._narrow = preview.narrow.float().T.contiguous()
        self._rough = Linear(rows.float() @ preview.widen.float(), kind=kind)
        self._levels: Array = np.empty(rows.shape, np.int8)
        self._scales: Floats = np.empty(len(rows), np.float32)
        round_whole_rows(array_of(rows), self._levels, self._scales)
        self.num_bytes = self._narrow.nbytes + self._rough.num_bytes + self._levels.nbytes

    def __call__(self, states: Tensor) -> Tensor:
        """Logits [num_rows, num_tokens], float32, of states [num_rows, hidden_size]."""
        logits = self._rough(states.float() @ self._narrow)
        score_promising(array_of(logits), array_of(states), self._levels, self._scales, NUM_EXACT)
        return logits


def head_for(rows: Tensor, preview: Preview | None, kind: WeightKind) -> Linear | PreviewedHead:
    """The faster head for the device of `rows`; the whole product if there is no preview."""
    if preview is None or rows.device.type != "cpu":
        return Linear(rows, kind=kind)
    return PreviewedHead(rows, preview, kind)
