"""What ends a pass before its next kernel: a word that any thread may set and the kernels read.

Owns the word. Must not know who asks for the end, nor what a pass is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from completion_engine.request import Cancellation


class Brake:
    """Passes of one decoder run through unless they run in a block of `pulled_by`. Used on their thread."""

    def __init__(self) -> None:
        self._word: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None

    @property
    def address(self) -> int:
        """Of a word that is no longer 0 once the pass is to end; 0 where nobody may ask for that."""
        return 0 if self._word is None else int(self._word.ctypes.data)

    @contextmanager
    def pulled_by(self, cancellation: Cancellation, is_in_vain: Callable[[], bool]) -> Iterator[None]:
        """End the pass that runs in the block when somebody cancels and what it finds `is_in_vain` then.

        That is asked on the thread that cancels.
        """
        word = np.zeros(1, np.int64)  # of this block alone: who pulls late stops nothing that comes after

        def pull() -> None:
            if is_in_vain():
                word[0] = 1

        before, self._word = self._word, word
        take_back = cancellation.when_cancelled(pull)
        try:
            yield
        finally:
            take_back()
            self._word = before
