"""A second process that ends a host which hangs, without using the host's interpreter.

Holds the shared memory with the number of heartbeats. Imported before anything heavy, because a process is
forked.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import select
import signal
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

BEAT_S = 1.0

# A host without heartbeats is ended when one of its threads used this much processor time meanwhile, which a
# stopped or a starved one does not. It is also ended after a number of missed beats during which it could
# run: it waits for an event that will never happen.
BUSY_CPU_S = 8.0
SILENT_BEATS = 60

# The host's traceback is written within this time.
TRACEBACK_S = 1.0
TRACEBACK_SIGNAL = signal.SIGUSR2 if hasattr(signal, "SIGUSR2") else None

_BEATS = struct.Struct("=Q")
_memory = mmap.mmap(-1, _BEATS.size)  # both processes see it


def beat() -> None:
    """Record a heartbeat of the host's event loop. Call it every `BEAT_S`."""
    _BEATS.pack_into(_memory, 0, _num_beats() + 1)


def _num_beats() -> int:
    """Return the number of heartbeats; 0 before the host serves."""
    return int(_BEATS.unpack_from(_memory)[0])


def start() -> None:
    """Watch this process from another one, until it ends. Call it before any other thread starts."""
    if sys.platform == "win32" or TRACEBACK_SIGNAL is None:
        return  # this system cannot fork
    faulthandler.enable()
    faulthandler.register(TRACEBACK_SIGNAL, all_threads=True)
    host = os.getpid()
    life, _held_open = os.pipe()
    if os.fork():
        os.close(life)
        return
    try:
        os.close(_held_open)
        _watch(host, life)
    finally:
        os._exit(0)


@dataclass(slots=True)
class _Silence:
    """A time without heartbeats, and which threads worked in it. Created at the first missed beat."""

    process: psutil.Process
    num_beats: int = 0
    before_s: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before_s = self._cpu_s()

    def missed(self) -> None:
        """Count a missed heartbeat, unless the system has stopped the host."""
        self.num_beats += self.process.status() not in {"stopped", "tracing-stop"}

    def is_hang(self) -> bool:
        """Whether the host hangs for good."""
        burnt_s = (cpu_s - self.before_s.get(id_, 0.0) for id_, cpu_s in self._cpu_s().items())
        return max(burnt_s, default=0.0) >= BUSY_CPU_S or self.num_beats >= SILENT_BEATS

    def _cpu_s(self) -> dict[int, float]:
        threads: list[Any] = self.process.threads()
        return {thread.id: thread.user_time + thread.system_time for thread in threads}


def _watch(host: int, life: int) -> None:
    import psutil  # noqa: PLC0415 - the host starts without it

    with contextlib.suppress(psutil.Error, ProcessLookupError):
        process = psutil.Process(host)
        num_beats, silence = 0, None
        while not select.select([life], [], [], BEAT_S)[0]:
            now = _num_beats()
            if now == 0 or now != num_beats:
                num_beats, silence = now, None
                continue
            silence = silence or _Silence(process)
            silence.missed()
            if silence.is_hang():
                _end(host)


def _end(host: int) -> None:
    """Let the host log the stack of each thread, then end it."""
    if TRACEBACK_SIGNAL is not None:
        os.kill(host, TRACEBACK_SIGNAL)
        time.sleep(TRACEBACK_S)
    sys.stderr.write("CRITICAL: the host hung, and is ended; its threads are above.\n")
    sys.stderr.flush()
    if sys.platform != "win32":
        os.kill(host, signal.SIGKILL)
