"""The lanes of a pass as kernels read them: which rows attend in each, to whose keys, which are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from completion_engine.cpu.language import Array

# Places of what a lane's part of the table says.
FIRST, NUMBER, KEYS, VALUES, START, PATH, PATH_SIZE = range(7)
LANE_SIZE = 7
NO_PATH: Array = np.empty(0, np.int64)  # of rows that only look


class TableLane(NamedTuple):
    """Rows `first` to `first + number` attend here; rows `path` [num_path] int64 are written from `start` on.

    `keys` and `values` are addresses of a cache.
    """

    first: int
    number: int
    keys: int
    values: int
    start: int
    path: Array


class LaneTable:
    """A table that stays where it is while what it says changes from pass to pass."""

    def __init__(self, max_lanes: int) -> None:
        self._numbers: Array = np.zeros(1 + max_lanes * LANE_SIZE, np.int64)
        self._paths: list[Array] = []
        self.address = self._numbers.ctypes.data

    def tell(self, lanes: Sequence[TableLane]) -> None:
        """From now on these are the lanes."""
        self._paths = [lane.path for lane in lanes]
        said = [(*lane[:-1], lane.path.ctypes.data, len(lane.path)) for lane in lanes]
        self._numbers[0] = len(lanes)
        self._numbers[1 : 1 + len(lanes) * LANE_SIZE] = np.array(said, np.int64).ravel()
