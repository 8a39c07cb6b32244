"""What the user is told in sentences: each once, and of a file that is changed without end only now and then.

Owns what was told. Must not know what a sentence means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsprotocol.types import MessageType

# A file that is wrong in another way each time is heard of so often.
PAUSE_S = 30.0
# So many sentences are remembered; one that is forgotten may be told again.
MAX_TOLD = 1000


@dataclass(slots=True)
class _File:
    """The last state of one file, what of it is wrong, and the end of the pause after what was told of it."""

    problems: Sequence[str] = ()
    kind: MessageType = MessageType.Warning
    timer: asyncio.TimerHandle | None = None


class Notices:
    """Shows sentences by `show(kind, sentence)`. Used on the event loop only."""

    def __init__(self, show: Callable[[MessageType, str], None]) -> None:
        self._show = show
        self._told: dict[str, None] = {}
        self._files: dict[str, _File] = {}
        self._has_stopped = False

    def is_new(self, sentence: str) -> bool:
        """Whether this was never told; from now on it was."""
        if sentence in self._told:
            return False
        self._told[sentence] = None
        if len(self._told) > MAX_TOLD:
            del self._told[next(iter(self._told))]
        return True

    def tell(self, sentences: Sequence[str], kind: MessageType) -> None:
        """Show each sentence that is new."""
        for sentence in filter(self.is_new, () if self._has_stopped else sentences):
            self._show(kind, sentence)

    def tell_of_file(self, path: str, problems: Sequence[str], kind: MessageType) -> None:
        """Show what is new of all that is wrong with a file now; in a pause, of its last state then."""
        if self._has_stopped:
            return
        file = self._files.setdefault(path, _File())
        file.problems, file.kind = problems, kind
        if file.timer is None:
            self._flush(file)

    def stop(self) -> None:
        """Nothing is shown any more, nor is anything begun: a file may be read still when its window goes."""
        self._has_stopped = True
        for file in self._files.values():
            if file.timer is not None:
                file.timer.cancel()
        self._files.clear()

    def _flush(self, file: _File) -> None:
        file.timer = None
        if any(problem not in self._told for problem in file.problems):
            self.tell(file.problems, file.kind)
            file.timer = asyncio.get_running_loop().call_later(PAUSE_S, self._flush, file)
