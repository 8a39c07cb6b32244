"""The threads that programs of kernels run on.

They sleep between programs and spin while one runs. The thread that runs the program opens a step, computes
it too, closes it, and waits only for the helpers that entered it. A helper that is late, or has no core,
delays nothing, because a kernel's work is taken from a counter. OpenMP's threads wait for each other at every
step, which costs two to four times as much where other programs need the cores (docs/experiments/threads.md).
One program at a time has the helpers; another one meanwhile runs on its own thread.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from completion_engine.cpu.kernels.language import SharedKernel, inlined, places, task_of
from completion_engine.cpu.kernels.vectors import I32, I64, int64_at

MAX_HELPERS = 255

# What all threads of the team see. Words that different threads write lie in cache lines of their own.
_LINE = 16
_IS_RUNNING = 0  # 0 sends helpers to sleep
_TURN = _LINE  # odd while a step is open; each step has a number of its own, which never comes again
# the open step; written while no helper is inside
_KERNEL, _TASK = 2 * _LINE, 2 * _LINE + 1
_INSIDE = 3 * _LINE  # then for each helper a line: whether it may be at work


class HelperTask(NamedTuple):
    """The arguments of a helper: the address of the team's words, and which helper it is."""

    words: int
    number: int


_AT = places(HelperTask)
# The instruction for a waiting thread: LLVM's name for it, and its argument.
_PAUSES: dict[str, tuple[str, list[int]]] = {
    **dict.fromkeys(("x86_64", "amd64"), ("llvm.x86.sse2.pause", [])),
    **dict.fromkeys(("arm64", "aarch64"), ("llvm.aarch64.hint", [1])),
}


def call_address(_: Any, function: Any, task: Any) -> Any:
    """The kernel at an address, as numba's `intrinsic` wants it."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        kernel = ir.FunctionType(ir.VoidType(), [I64]).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kernel), [arguments[1]])
        return context.get_dummy_value()

    return types.void(function, task), generate


def _loaded(_: Any, words: Any, __: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.load_atomic(builder.gep(arguments[0], [arguments[1]]), "seq_cst", 8)

    return types.int64(words, types.int64), generate


def _stored(_: Any, words: Any, __: Any, ___: Any) -> Any:
    def generate(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], builder.gep(arguments[0], [arguments[1]]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), generate


def _paused(_: Any) -> Any:
    def generate(context: Any, builder: Any, _: Any, __: Any) -> Any:
        if found := _PAUSES.get(platform.machine().lower()):
            name, numbers = found
            kind = ir.FunctionType(ir.VoidType(), [I32] * len(numbers))
            builder.call(builder.module.declare_intrinsic(name, fnty=kind), [I32(x) for x in numbers])
        return context.get_dummy_value()

    return types.void(), generate


call: Any = intrinsic(call_address)
# All of these in one order that every thread sees: a helper that says it is inside before it looks again
# whether the step is still open is seen by who closes it, or sees that it is closed.
load: Any = intrinsic(_loaded)
_store: Any = intrinsic(_stored)
_pause: Any = intrinsic(_paused)


@inlined
def share(words: Any, kernel: Any, task: Any, num_helpers: Any) -> None:
    """Run a kernel on this thread and those helpers that come; only within kernels."""
    words[_KERNEL], words[_TASK] = kernel, task
    turn = load(words, _TURN) + 1
    _store(words, _TURN, turn)
    call(kernel, task)
    _store(words, _TURN, turn + 1)
    for helper in range(num_helpers):
        while load(words, _INSIDE + helper * _LINE):
            _pause()


@SharedKernel
def _help(task: Any) -> None:
    words = int64_at(task[_AT.words])
    inside = _INSIDE + task[_AT.number] * _LINE
    seen = 0
    while load(words, _IS_RUNNING):
        turn = load(words, _TURN)
        if turn == seen or turn % 2 == 0:
            _pause()
            continue
        seen = turn
        _store(words, inside, 1)
        if load(words, _TURN) == turn:
            call(words[_KERNEL], words[_TASK])
        _store(words, inside, 0)


class Team:
    """The helpers of this process, started when they are first wanted; they never end."""

    def __init__(self) -> None:
        self._words = np.zeros(_INSIDE + MAX_HELPERS * _LINE, np.int64)
        self._taken = threading.Lock()
        self._wakes: list[threading.Lock] = []

    @property
    def words(self) -> int:
        """The address of what the threads share."""
        return int(self._words.ctypes.data)

    @contextmanager
    def gathered(self, num_threads: int) -> Iterator[int]:
        """The number of helpers for a program that runs in the block; 0 where another program has them.

        They may still be on their way when it begins.
        """
        if num_threads < 2:
            yield 0
            return
        _ = _help.address  # compiled by the caller, and stored before the mark is written
        if not self._taken.acquire(blocking=False):
            yield 0
            return
        try:
            self._start(num_threads - 1)
            self._words[_IS_RUNNING] = 1
            for wake in self._wakes[: num_threads - 1]:
                if wake.locked():
                    wake.release()
            yield len(self._wakes)
        finally:
            self._words[_IS_RUNNING] = 0
            self._taken.release()

    def _start(self, num_wanted: int) -> None:
        while len(self._wakes) < min(num_wanted, MAX_HELPERS):
            wake = threading.Lock()
            wake.acquire()
            number = len(self._wakes)
            helper = threading.Thread(
                target=self._helper, args=(number, wake), name=f"kernels {number}", daemon=True
            )
            try:
                helper.start()
            except RuntimeError:  # the system gives no more threads
                return
            self._wakes.append(wake)

    def _helper(self, number: int, wake: threading.Lock) -> None:
        task = task_of(HelperTask(self.words, number))
        while True:
            wake.acquire()  # it is given back by who wants help
            _help.run(task)


TEAM = Team()
