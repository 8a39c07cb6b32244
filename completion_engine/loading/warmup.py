"""The first start on a machine: compiles the kernels while the target is still being downloaded.

Compiling takes half a minute of one core, and more beside other work. A separate process does it, by loading
and running a miniature target, so that a server can answer meanwhile. This module imports nothing heavy.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from completion_engine.config import EngineConfig
from completion_engine.cpu.kernels.kernel_cache import are_compiled, can_store
from completion_engine.models.job import Monitor, end_program, worker
from completion_engine.request import Progress

_POLL_S = 0.1
_MAX_WAIT_S = 300.0  # after this, kernels are compiled at their first call
_WHAT = "Compiling for this processor (once)"


@contextmanager
def compiled_meanwhile(
    config: EngineConfig, report: Progress | None = None, should_stop: Callable[[], bool] | None = None
) -> Iterator[None]:
    """Compile the CPU kernels of `config` in another process while the block runs; they are ready after it.

    If that fails, missing kernels are compiled at their first call. Raises CancelledError soon after
    `should_stop` returns True.
    """
    runs_them = config.device != "cuda" and config.dtype in {"auto", "int8"}
    if not runs_them or are_compiled(config.device) or not can_store():
        yield
        return
    job = Monitor.of(report, should_stop)
    program = worker("completion_engine.compile_kernels", (config.device,), {}, _MAX_WAIT_S)
    child = subprocess.Popen(
        program.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(program.env),
    )
    try:
        yield
        until = time.monotonic() + program.stall_s
        while child.poll() is None and time.monotonic() < until:
            job.report(_WHAT, 0, 0)
            job.check()
            time.sleep(_POLL_S)
    finally:
        end_program(child)
