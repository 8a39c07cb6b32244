"""A plugin of pytest for emulated processors: kernels are compiled by the machine below, by `ahead`.

What numba takes a minute for under emulation takes a second there. `SLIPSTREAM_AHEAD` names an interpreter of
that machine. A kernel that is stored already is not compiled again.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from completion_engine.cpu.kernels import language, stored_kernels
from tests.aarch64.ahead import identity

ROOT = Path(__file__).parents[2]
_load = stored_kernels._KernelCache.load_overload


@cache
def _compiler(*processor: str) -> subprocess.Popen[bytes]:
    """Compiles for the processor of these names, until this process ends."""
    command = [os.environ["SLIPSTREAM_AHEAD"], "-P", "-m", "tests.aarch64.ahead", *processor]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd=ROOT)
    atexit.register(process.communicate)  # nothing more is asked, which ends it
    return process


def _load_or_borrow(self: Any, signature: Any, target_context: Any) -> Any:
    found = _load(self, signature, target_context)
    if found is None:
        compiler = _compiler(*target_context.codegen().magic_tuple())
        assert compiler.stdin and compiler.stdout
        pickle.dump((identity(self._py_func), signature), compiler.stdin)
        compiler.stdin.flush()
        assert compiler.stdout.readline() == b"stored\n", f"{self._name} cannot be compiled"
        found = _load(self, signature, target_context)
        assert found is not None, f"{self._name} was compiled and cannot be loaded"
    return found


assert language.tell_compiler  # before anything is compiled
stored_kernels._KernelCache.load_overload = _load_or_borrow  # type: ignore[method-assign]
