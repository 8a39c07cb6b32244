"""Training of a target's own small drafter: code in, a folder with a drafter out.

The plans here are plain values, so that arguments are checked before torch is imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Duration and settings of a training.

    A step takes `batch_windows` windows. The first `short_share` of the steps drafts one token in advance,
    the rest `draft_tokens`, each counting `depth_weight` times as much as the one before. A step looks at the
    `num_common` most frequent tokens, at those in its windows and at `num_others` more.
    """

    num_steps: int = 600
    batch_windows: int = 4
    draft_tokens: int = 3
    short_share: float = 0.6
    depth_weight: float = 0.7
    matrix_rate: float = 1.5e-3
    other_rate: float = 1e-3
    num_common: int = 1536
    num_others: int = 768
    checkpoint_steps: int = 25
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DistillPlan:
    """What to train. `num_tokens` positions of the target are collected; the drafter guesses `vocabulary`.

    It is measured in the code below `held_out`; without one, in a part of the files it is trained on
    that is kept aside. Training begins with the drafter in `begin_with`, whose shape and tokens then hold,
    or else anew; the windows it is trained on are drawn by its weights, so that they are others than its own.
    """

    target: str
    num_tokens: int = 1_200_000
    window_tokens: int = 1024
    vocabulary: int = 16_384
    training: TrainingPlan = field(default_factory=TrainingPlan)
    num_measured: int = 60
    tokens_measured: int = 40
    held_out: Path | None = None
    begin_with: Path | None = None
