"""How tests are divided between pytest-xdist's workers.

Does not depend on a test's content. Tests of one unit run in one process, in the order in which they are
collected, and share what their fixtures start.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.units import is_waiting, unit_of


class Scheduling(LoadScopeScheduling):
    """Gives whole units to workers, in the order in which tests are collected.

    Every second worker begins with tests that wait for other programs and the others with tests that compute,
    so that at no time all of them wait, or all of them compute. Each goes on with what the others leave.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _assign_work_unit(self, node: WorkerController) -> None:
        number = int(node.gateway.id.removeprefix("gw"))
        fitting = (unit for unit in self.workqueue if is_waiting(unit) == (number % 2 == 0))
        self.workqueue.move_to_end(next(fitting, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
