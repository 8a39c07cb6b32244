"""Numbers that come back from the device while it works on."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

_NUM_PLACES = 2  # one is read while the other is written


class ReadBack:
    """Takes copies of one small tensor in the order of `post`; `read` waits for the oldest alone."""

    def __init__(self, source: Tensor) -> None:
        is_cuda = source.is_cuda
        self._source = source
        size = (_NUM_PLACES, *source.shape)
        self._places = torch.zeros(size, dtype=source.dtype, pin_memory=is_cuda)
        self._events = [_event() if is_cuda else None for _ in range(_NUM_PLACES)]
        self._waiting: deque[int] = deque()
        self._num_posted = 0

    def post(self) -> None:
        """Copy the tensor as it will be when the device gets here. ValueError where no place is free."""
        if len(self._waiting) == _NUM_PLACES:
            raise ValueError("read what was posted first")
        at = self._num_posted % _NUM_PLACES
        self._places[at].copy_(self._source, non_blocking=True)
        if (event := self._events[at]) is not None:
            event.record()
        self._waiting.append(at)
        self._num_posted += 1

    def read(self) -> list[int]:
        """The oldest copy that was not read. Waits for it."""
        at = self._waiting.popleft()
        if (event := self._events[at]) is not None:
            event.synchronize()
        numbers: list[int] = self._places[at].tolist()
        return numbers

    def drop(self) -> None:
        """Drop the posted results. Running copies are awaited, so that they do not overwrite later ones."""
        while self._waiting:
            self.read()


def _event() -> torch.cuda.Event:
    return torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch leaves it untyped
