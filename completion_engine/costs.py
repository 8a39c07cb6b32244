"""What a pass of the target costs, as measured at load. Plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds of a pass by width, and of each lane beyond the first. One lane where trees cannot be."""

    pass_ms: Mapping[int, float]
    lane_ms: float = 0.0
    max_lanes: int = 1
