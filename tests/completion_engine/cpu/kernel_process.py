"""Compiles or loads one kernel in a process of its own.

The process is forked from one that has imported numba and torch, which takes most of the time, but nothing of
ours: the folder of compiled kernels is read from the environment when the kernels are imported.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

EXPECTED = [1.0, 1.0]

_PROCESSES = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    _PROCESSES.set_forkserver_preload(["numba", "torch"])


def run_kernel(cache: Path, umask: int, messages: Path) -> int | None:
    """Run a kernel with this cache folder; return the exit code. Its messages are written to a file."""
    process = _PROCESSES.Process(target=_run, args=(str(cache), umask, str(messages)))
    process.start()
    process.join()
    return process.exitcode


def _run(cache: str, umask: int, messages: str) -> None:
    with Path(messages).open("w") as file:
        os.dup2(file.fileno(), 2)
    os.umask(umask)
    os.environ["XDG_CACHE_HOME"] = cache

    import numpy as np

    from completion_engine.cpu.kernels import rows

    normed = np.empty((1, 2), np.float32)
    rows.norm(np.full((1, 2), 3.0, np.float32), 0.0, normed)
    assert normed[0].tolist() == EXPECTED, normed
