"""What a target computes in. Names only: what a machine can do is asked in `loading.precision`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

WeightKind = Literal[
    "float", "int8", "int4"
]  # how weights are held: in their own type or rounded; int4 on a GPU


@dataclass(frozen=True, slots=True)
class Precision:
    """What the target computes in, and whether its large weights are held in bytes."""

    name: str
    dtype: torch.dtype
    kind: WeightKind = "float"
