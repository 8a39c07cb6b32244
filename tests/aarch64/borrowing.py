"""For emulated processors: whichever process wants a kernel, the machine below compiles it, by `ahead`.

numba takes a minute under emulation and a second there. `SLIPSTREAM_AHEAD` names an interpreter of that
machine. A kernel that is stored already is not compiled again. The emulated interpreter installs this at its
start (`setup.sh`), so that nothing heavy is loaded before a kernel is wanted.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
STORING = "completion_engine.cpu.kernels.stored_kernels"

_one_at_a_time = threading.Lock()


def install() -> None:
    """Kernels are borrowed from now on, in this process."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the module that stores kernels where it lies, and changes it once it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != STORING:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec and spec.loader
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            module._KernelCache.load_overload = _borrowing(module._KernelCache.load_overload)

        spec.loader.exec_module = executed  # type: ignore[method-assign]  # for one module, in place of a loader of its own
        return spec


def _borrowing(load: Callable[..., Any]) -> Callable[..., Any]:
    """`load`, with what it does not find compiled by the machine below."""

    def load_or_borrow(self: Any, signature: Any, target_context: Any) -> Any:
        found = load(self, signature, target_context)
        if found is None:
            _borrow(self, signature, target_context)
            found = load(self, signature, target_context)
            assert found is not None, f"{self._name} was compiled and cannot be loaded"
        return found

    return load_or_borrow


def _borrow(kernel: Any, signature: Any, target_context: Any) -> None:
    from tests.aarch64.ahead import identity

    with _one_at_a_time:
        compiler = _compiler(*target_context.codegen().magic_tuple())
        assert compiler.stdin and compiler.stdout
        pickle.dump((identity(kernel._py_func), signature), compiler.stdin)
        compiler.stdin.flush()
        assert compiler.stdout.readline() == b"stored\n", f"{kernel._name} cannot be compiled"


@cache
def _compiler(*processor: str) -> subprocess.Popen[bytes]:
    """Compiles for the processor of these names, until this process ends."""
    command = [os.environ["SLIPSTREAM_AHEAD"], "-P", "-m", "tests.aarch64.ahead", *processor]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd=ROOT)
    atexit.register(process.communicate)  # nothing more is asked, which ends it
    return process
