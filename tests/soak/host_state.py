"""The resources of a host, seen from outside and in its own report. Owns the counted things."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass

import psutil

from tests.hosts import Hosts

_SETTLE_S = 60.0
_QUIET_S = 2.0


@dataclass(frozen=True, slots=True)
class HostState:
    """Counts of one host process; memory in bytes, the private part if the system reports it."""

    pid: int
    num_windows: int
    num_engines: int
    num_users: int
    num_threads: int
    num_descriptors: int
    num_memory_bytes: int

    def differences(self, before: HostState, share: float) -> list[str]:
        """What is not back at the start's: counts exactly, memory within `share`."""
        now, then = asdict(self), asdict(before)
        names = [name for name in now if name.startswith("num_") and name != "num_memory_bytes"]
        found = [
            f"{name}: {then[name]} before, {now[name]} after" for name in names if now[name] > then[name]
        ]
        if self.num_memory_bytes > before.num_memory_bytes * (1 + share):
            found.append(
                f"memory: {before.num_memory_bytes >> 20} MB before, {self.num_memory_bytes >> 20} after"
            )
        if self.pid != before.pid:
            found.append("the host is another process")
        return found


def state_of(hosts: Hosts) -> HostState:
    """The one host as it is now."""
    facts = hosts.only()
    process = psutil.Process(facts["pid"])
    memory = process.memory_full_info()
    return HostState(
        pid=process.pid,
        num_windows=facts["num_windows"],
        num_engines=len(facts["engines"]),
        num_users=sum(engine["num_users"] for engine in facts["engines"]),
        num_threads=process.num_threads(),
        num_descriptors=process.num_fds() if hasattr(process, "num_fds") else 0,
        num_memory_bytes=getattr(memory, "uss", memory.rss),
    )


async def settled(hosts: Hosts, num_windows: int) -> HostState:
    """The host once only `num_windows` are left and its threads no longer change, or after a minute."""
    until = time.monotonic() + _SETTLE_S
    state = await asyncio.to_thread(state_of, hosts)
    quiet_since = time.monotonic()
    while time.monotonic() < until:
        await asyncio.sleep(0.2)
        now = await asyncio.to_thread(state_of, hosts)
        if (now.num_threads, now.num_descriptors) != (state.num_threads, state.num_descriptors):
            quiet_since = time.monotonic()
        state = now
        if state.num_windows <= num_windows and time.monotonic() - quiet_since > _QUIET_S:
            break
    return state
