"""The arguments of a kernel: numbers in a row, declared once by name for Python and for the kernel.

A declaration is a NamedTuple of integers. Python fills in one; a kernel reads `task[AT.name]`, where `AT` is
the declaration's `places`. numba takes those for constants, so that a name costs what a number does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

COUNTER = 0  # the place of the work that no thread has taken yet
FIRST_FIELD = 1

_Fields = TypeVar("_Fields", bound=NamedTuple)


def places(declaration: type[_Fields], first: int = FIRST_FIELD) -> _Fields:
    """Where each field lies, under the field's own name; `first` is the place of the first one."""
    return declaration._make(range(first, first + len(declaration._fields)))


def task_of(fields: Sequence[int]) -> NDArray[Any]:
    """A declaration filled in, as its kernel reads it: a counter that threads take work from goes before."""
    return np.array([0, *fields], np.int64)


def bits_of(number: float) -> int:
    """A float32 as a task holds it."""
    return int(np.float32(number).view(np.int32))
