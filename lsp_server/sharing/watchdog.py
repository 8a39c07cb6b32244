"""A second process that ends a host which hangs: it needs nothing of the host's interpreter.

Owns the memory that both share: the host's beats, and what each of its threads works on. Must not know what
a host does. Imported before anything heavy, because a process is forked.
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
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

BEAT_S = 1.0

# A silent host is ended when one of its threads burnt so much processor time meanwhile, which a stopped or a
# starved one does not. Or when it was silent for so many beats while it could run: what it waits for will
# never come.
BUSY_CPU_S = 8.0
SILENT_BEATS = 60

# The host's traceback is written within this time.
TRACEBACK_S = 1.0
TRACEBACK_SIGNAL = signal.SIGUSR2 if hasattr(signal, "SIGUSR2") else None

_BEATS = struct.Struct("=Q")
_SLOT = struct.Struct("=QH")
NUM_SLOTS, SLOT_BYTES = 64, 1024


class Pulse:
    """What the host says of itself in memory that the watchdog reads."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BEATS.size + NUM_SLOTS * SLOT_BYTES)
        self._lock = threading.Lock()
        self._slots: dict[int, int] = {}

    @property
    def num_beats(self) -> int:
        """How often the host beat; 0 before it serves."""
        return int(_BEATS.unpack_from(self._memory)[0])

    def beat(self) -> None:
        """The host goes on."""
        _BEATS.pack_into(self._memory, 0, self.num_beats + 1)

    def work_on(self, subject: str) -> None:
        """This thread works on `subject` from now on."""
        thread = threading.get_native_id()
        name = subject.encode("utf-8", "surrogateescape")[: SLOT_BYTES - _SLOT.size]
        with self._lock:
            if thread not in self._slots and len(self._slots) >= NUM_SLOTS:
                alive = {running.native_id for running in threading.enumerate()}
                self._slots = {id_: slot for id_, slot in self._slots.items() if id_ in alive}
            free = set(range(NUM_SLOTS)) - set(self._slots.values())
            slot = self._slots.get(thread, min(free, default=-1))
            if slot < 0:
                return  # so many work at once that this one stays without a name
            self._slots[thread] = slot
            start = _BEATS.size + slot * SLOT_BYTES
            _SLOT.pack_into(self._memory, start, thread, len(name))
            self._memory[start + _SLOT.size : start + _SLOT.size + len(name)] = name

    def subjects(self) -> dict[int, str]:
        """What each thread works on, by the system's number of the thread."""
        found = {}
        for slot in range(NUM_SLOTS):
            start = _BEATS.size + slot * SLOT_BYTES
            thread, num_bytes = _SLOT.unpack_from(self._memory, start)
            name = self._memory[start + _SLOT.size : start + _SLOT.size + num_bytes]
            if thread:
                found[thread] = name.decode("utf-8", "surrogateescape")
        return found


_pulse = Pulse()


def beat() -> None:
    """The host's event loop goes on; to be called every `BEAT_S`."""
    _pulse.beat()


def work_on(subject: str) -> None:
    """This thread works on `subject`, a folder, from now on; a hang of the thread is put down to that."""
    _pulse.work_on(subject)


def start() -> None:
    """Watch this process from another one, until it ends. Before it has any other thread."""
    if sys.platform == "win32" or TRACEBACK_SIGNAL is None:
        return  # no process can be forked there
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
    """How long a host is silent, and who worked meanwhile. Made at the first beat that is missed."""

    process: psutil.Process
    num_beats: int = 0
    before_s: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before_s = self._cpu_s()

    def missed(self) -> None:
        """Another beat is missed; one that the system has stopped cannot beat."""
        self.num_beats += self.process.status() not in {"stopped", "tracing-stop"}

    def is_hang(self) -> bool:
        """Whether the host will not come back."""
        return self.busiest()[1] >= BUSY_CPU_S or self.num_beats >= SILENT_BEATS

    def busiest(self) -> tuple[int, float]:
        """The thread that burnt most since, and how many seconds of a processor."""
        burnt_s = {id_: cpu_s - self.before_s.get(id_, 0.0) for id_, cpu_s in self._cpu_s().items()}
        return max(burnt_s.items(), key=lambda item: item[1], default=(0, 0.0))

    def _cpu_s(self) -> dict[int, float]:
        threads: list[Any] = self.process.threads()
        return {thread.id: thread.user_time + thread.system_time for thread in threads}


def _watch(host: int, life: int) -> None:
    import psutil  # noqa: PLC0415 - the host starts without it

    with contextlib.suppress(psutil.Error, ProcessLookupError):
        process = psutil.Process(host)
        num_beats, silence = 0, None
        while not select.select([life], [], [], BEAT_S)[0]:
            if _pulse.num_beats == 0 or _pulse.num_beats != num_beats:
                num_beats, silence = _pulse.num_beats, None
                continue
            silence = silence or _Silence(process)
            silence.missed()
            if silence.is_hang():
                _end(host, silence)


def _end(host: int, silence: _Silence) -> None:
    """Write down who hung and where, then end the host."""
    from lsp_server.sharing import hangs  # noqa: PLC0415 - as above

    if TRACEBACK_SIGNAL is not None:
        os.kill(host, TRACEBACK_SIGNAL)
        time.sleep(TRACEBACK_S)
    thread, burnt_s = silence.busiest()
    subject = _pulse.subjects().get(thread, "") if burnt_s >= BUSY_CPU_S else ""
    if subject:
        with contextlib.suppress(OSError):
            hangs.record(subject)
    work = f", at work on {subject}" if subject else ""
    sys.stderr.write(f"CRITICAL: the host hung{work}, and is ended; its threads are above.\n")
    sys.stderr.flush()
    if sys.platform != "win32":
        os.kill(host, signal.SIGKILL)
