"""How tests are divided between pytest-xdist's workers.

Does not depend on a test's content. Tests of one unit run in one process, in the order in which they are
collected, and share what their fixtures start.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.units import unit_of


class Scheduling(LoadScopeScheduling):
    """Gives whole units to workers, in the order in which tests are collected."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
