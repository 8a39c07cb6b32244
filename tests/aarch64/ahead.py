"""Compiles kernels on x86 for a processor that need not be here, at the request of an emulated one.

Started by `borrowing`, with LLVM's name of that processor. Each request is a kernel's module, name and
closed-over values, and the types it is called with. The result lies where both look for compiled kernels. The
same compiler makes it of the same source as on such a machine, only sooner. Nothing of it is run.
"""

from __future__ import annotations

import importlib
import pickle
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import binding
from numba import config
from numba.core import codegen


class _Library(codegen.JITCodeLibrary):
    """Machine code that is kept and not loaded."""

    def _finalize_specific(self) -> None:
        if self._object_caching_enabled:
            self._compiled_object = self._codegen._tm.emit_object(self._final_module)

    def get_pointer_to_function(self, name: str) -> int:
        return 1  # whatever is not 0: nothing calls it


class _Codegen(codegen.JITCPUCodegen):
    _library_class = _Library

    def _add_module(self, module: Any) -> None:
        self._engine._load_defined_symbols(module)

    def set_env(self, env_name: str, env: Any) -> None:
        """Without code there is nothing to set."""


def compile_for(triple: str, name: str, features: str) -> None:
    """From now on numba compiles for this processor; before anything is compiled."""
    machine = triple.split("-", maxsplit=1)[0]
    platform.machine = lambda: machine  # some kernels are written for the machine
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.get_process_triple = binding.get_default_triple = lambda: triple
    target = binding.Target.from_triple(triple)
    binding.Target.from_default_triple = lambda: target
    codegen.JITCPUCodegen = _Codegen
    config.CPU_NAME, config.CPU_FEATURES = name, features


def identity(function: Callable[..., Any]) -> tuple[str, str, tuple[Any, ...]]:
    """A kernel's module, name and closed-over values, the same in both processes."""
    closed = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return function.__module__, function.__qualname__, closed


def kernels_of(module: Any) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """All kernels that stand in a module, alone or in a table, with the functions they are compiled from."""
    for found in vars(module).values():
        for value in found.values() if isinstance(found, dict) else (found,):
            function = getattr(value, "py_func", None) or getattr(value, "_function", None)
            if getattr(function, "__module__", None) == module.__name__:
                yield value, function


def compiled(wanted: tuple[str, str, tuple[Any, ...]], signature: Any) -> None:
    """Compile that kernel for these types and store it."""
    for value, function in kernels_of(importlib.import_module(wanted[0])):
        if identity(function) == wanted:
            if hasattr(value, "py_func"):
                value.compile(signature)
            else:
                assert value.address
            return
    raise LookupError(f"No kernel is {wanted}.")


def main() -> None:
    answers, requests = sys.stdout, sys.stdin.buffer
    sys.stdout = sys.stderr
    compile_for(*sys.argv[1:])
    while True:
        try:
            wanted, signature = pickle.load(requests)  # noqa: S301 - from the process that started this one
        except EOFError:
            return
        compiled(wanted, signature)
        print("stored", file=answers, flush=True)


if __name__ == "__main__":
    main()
