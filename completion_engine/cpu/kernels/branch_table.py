"""The branches of a pass as kernels read them: which rows attend in each, to whose keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from completion_engine.cpu.kernels.language import Array, places

NO_PATH: Array = np.empty(0, np.int64)  # for rows that only look


class BranchFields(NamedTuple):
    """What the table holds of a branch: `TableBranch`, with the address of its path and how long that is."""

    first: int
    number: int
    keys: int
    values: int
    start: int
    path: int
    num_path: int


BRANCH = places(BranchFields, 0)  # counted from where a branch begins
BRANCH_SIZE = len(BRANCH)
NUM_BRANCHES, FIRST_BRANCH = 0, 1  # places in the table


class TableBranch(NamedTuple):
    """Rows `first` to `first + number` attend here; rows `path` [num_path] int64 are written from `start` on.

    `keys` and `values` are addresses of a cache.
    """

    first: int
    number: int
    keys: int
    values: int
    start: int
    path: Array

    @property
    def fields(self) -> BranchFields:
        """As the table holds it; the path must outlive that."""
        return BranchFields(
            first=self.first,
            number=self.number,
            keys=self.keys,
            values=self.values,
            start=self.start,
            path=self.path.ctypes.data,
            num_path=len(self.path),
        )


class BranchTable:
    """A table that stays where it is while what it says changes from pass to pass."""

    def __init__(self, max_branches: int) -> None:
        self.numbers: Array = np.zeros(FIRST_BRANCH + max_branches * BRANCH_SIZE, np.int64)
        self.address = self.numbers.ctypes.data
        self._paths: list[Array] = []

    def fill(self, branches: Sequence[TableBranch]) -> None:
        """From now on these are the branches."""
        self._paths = [branch.path for branch in branches]
        fields = np.array([branch.fields for branch in branches], np.int64).ravel()
        self.numbers[NUM_BRANCHES] = len(branches)
        self.numbers[FIRST_BRANCH : FIRST_BRANCH + len(fields)] = fields
