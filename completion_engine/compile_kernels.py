"""The program that compiles every kernel a start needs, by running a toy model. A child of `warmup`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from completion_engine.config import EngineConfig
from completion_engine.cpu.kernels.kernel_cache import KERNEL_FOLDER, forget_unused, mark_compiled
from completion_engine.cpu.kernels.stored_kernels import are_all_stored
from completion_engine.engine import CompletionEngine
from completion_engine.loading.rungs import plan_here
from completion_engine.loading.toy_model import DRAFTER, TARGET, write_toy_model


def compile_all(device: str) -> None:
    """Compile what the default target needs on the CPU, by writing a few tokens with one like it.

    Nothing where `device` means a GPU.
    """
    kind = plan_here(device, "auto").rungs[0].device.type
    if kind == "cpu":
        with tempfile.TemporaryDirectory(prefix="slipstream-") as folder:
            write_toy_model(Path(folder))
            config = EngineConfig(TARGET, draft_model=str(Path(folder, DRAFTER)), device="cpu")
            CompletionEngine.from_folder(Path(folder, TARGET), config)
    if are_all_stored():
        mark_compiled(kind)
    forget_unused(KERNEL_FOLDER, time.time())


if __name__ == "__main__":
    compile_all(sys.argv[1])
