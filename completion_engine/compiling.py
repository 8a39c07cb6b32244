"""The first start on a machine: its kernels are compiled while the target is still being fetched.

Compiling takes half a minute of one core, and more beside other work. A process of its own does it, so that
a server goes on answering meanwhile, by loading and running a target in miniature. Imports nothing heavy.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from completion_engine.config import EngineConfig
from completion_engine.cpu.kept import KEPT_IN, are_compiled, can_keep, forget_unused, mark_compiled
from completion_engine.models.job import Job, Report, end_program, worker

_POLL_S = 0.1
_MAX_WAIT_S = 300.0  # then kernels are compiled where they are wanted
_WHAT = "Compiling for this processor (once)"


@contextmanager
def compiled_meanwhile(
    config: EngineConfig, report: Report | None = None, should_stop: Callable[[], bool] | None = None
) -> Iterator[None]:
    """What `config` runs on the CPU is compiled beside the block, and ready behind it.

    Where that fails nothing is lost: whatever is missing is compiled when it is first called. Raises
    CancelledError soon after `should_stop` returns True.
    """
    runs_them = config.device != "cuda" and config.dtype in {"auto", "int8"}
    if not runs_them or are_compiled() or not can_keep():
        yield
        return
    job = Job.of(report, should_stop)
    program = worker(__name__, (config.device,), {}, _MAX_WAIT_S)
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


def compile_all(device: str) -> None:
    """Compile what the default target needs on the CPU, by writing a few tokens with one like it.

    Nothing where `device` means a GPU.
    """
    from completion_engine.engine import CompletionEngine  # noqa: PLC0415 - loads torch
    from completion_engine.precision import choose_device  # noqa: PLC0415 - as above
    from completion_engine.specimen import DRAFTER, TARGET, write_specimen  # noqa: PLC0415 - as above

    if choose_device(device).type == "cpu":
        with tempfile.TemporaryDirectory(prefix="slipstream-") as folder:
            write_specimen(Path(folder))
            config = EngineConfig(TARGET, draft_model=str(Path(folder, DRAFTER)), device="cpu")
            CompletionEngine.from_folder(Path(folder, TARGET), config)
    mark_compiled()
    forget_unused(KEPT_IN, time.time())


if __name__ == "__main__":
    compile_all(sys.argv[1])
