"""The garbage collector does not traverse objects of a load again and again."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from lsp_server import app
loads = [app.with_frozen_objects(lambda report, should_stop: number) for number in range(2)]
assert gc.get_freeze_count() == 0
assert loads[0](print, bool) == loads[1](print, bool) == 1
assert len(gc.get_objects()) < 5_000 < gc.get_freeze_count(), (len(gc.get_objects()), gc.get_freeze_count())
late = [[number] for number in range(10_000)]
loads[1](print, bool)
assert len(gc.get_objects()) > 10_000, "what comes later may go again"
"""


def test_all_that_the_first_load_leaves_counts_as_lasting() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
