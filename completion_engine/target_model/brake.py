"""The brake of the pass that runs now. Does not depend on what a pass computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from completion_engine.request import Cancellation


class Brake:
    """Ends a pass before its next kernel: a word that any thread may set and the kernels read.

    Passes of one decoder run through unless they run in a block of `pulled_by`. Used on their thread.
    """

    def __init__(self) -> None:
        self._word: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None

    @property
    def address(self) -> int:
        """Address of a word that is not 0 once the pass should end; 0 if it cannot be ended."""
        return 0 if self._word is None else int(self._word.ctypes.data)

    @contextmanager
    def pulled_by(self, cancellation: Cancellation, is_in_vain: Callable[[], bool]) -> Iterator[None]:
        """End the pass in the block when it is cancelled and the canceller finds that it `is_in_vain`.

        That is called on the thread that cancels.
        """
        # for this block only: a late call stops no later pass
        word = np.zeros(1, np.int64)

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
