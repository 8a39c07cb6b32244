"""How tests are divided between pytest-xdist's workers, and that what measures time runs alone, at the end.

Must not know what a test does. Tests of one unit run in one process, in the order in which they are
collected, and share what their fixtures start.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.units import TIMING, unit_of


class Scheduling(LoadScopeScheduling):
    """Gives whole units to workers; the timing tests to the last worker, once all others have ended."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False  # the collection is in the order that is wanted
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _must_wait(self) -> bool:
        """Whether only timing tests are left to give, and other workers have not ended."""
        return list(self.workqueue) == [TIMING] and len(self.nodes) > 1

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._must_wait():
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if not self._must_wait():
            super()._reschedule(node)
        elif any(other is not node and not other.shutting_down for other in self.nodes):
            node.shutdown()  # after what it has; one worker stays

    def remove_node(self, node: WorkerController) -> str | None:
        crashed = super().remove_node(node)
        for left in self.nodes:
            self._reschedule(left)
        return crashed
