"""The latency of a window beside a hostile one, in a host of their own with a scripted engine.

Owns the measurement. Each of the three is a process: the host, the hostile window, and this one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lsp_server.sharing import relay
from tests.faults.attacker import ATTACKS
from tests.hosts import Hosts, own_hosts
from tests.windows import Window, insertion, window_at_host

URI = "file:///innocent/b.py"

# Over what the innocent window feels alone.
MAX_EXTRA_MS = 50.0
KEY_PAUSE_S = 0.01
NUM_ROUNDS, KEYS_OF_ROUND = 3, 100


@dataclass(slots=True)
class Delays:
    """From a key to its suggestion: milliseconds, and those of a processor that the host burnt meanwhile.

    The second are what the first would be at most on a machine with nothing else to do.
    """

    ms: list[float] = field(default_factory=list)
    burnt_ms: list[float] = field(default_factory=list)


def quantile(ms: list[float], share: float) -> float:
    """The value that this share of them stays under."""
    return sorted(ms)[min(len(ms) - 1, int(len(ms) * share))]


def burnt_ms(pid: int) -> float:
    """Processor time of a process so far, all threads, to a microsecond; 0 if the system has no figure."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    burnt_ns = 0
    for file in files:
        with suppress(OSError):  # a thread that has ended meanwhile
            burnt_ns += int(file.read_text().split()[0])
    return burnt_ns / 1e6


async def type_and_wait(window: Window, pid: int, delays: Delays) -> None:
    """Type one key after the other, each awaited, and none that continues the answer before it."""
    window.open(URI, "")
    typed = ""
    for column in range(KEYS_OF_ROUND):
        begin, burnt = time.perf_counter(), burnt_ms(pid)
        key = "x" if typed else "y"
        window.change(URI, insertion(0, column, key), version=column + 2)
        typed += key
        assert await window.suggest(URI, 0, column + 1) == [f"{typed}!"]
        delays.ms.append((time.perf_counter() - begin) * 1000)
        delays.burnt_ms.append(burnt_ms(pid) - burnt)
        await asyncio.sleep(KEY_PAUSE_S)


def environment(hosts: Hosts, *faults: str) -> dict[str, str]:
    """Where windows find the host of a test, and nothing of the user's own."""
    places = {name: str(hosts.folder / name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    index = {"SLIPSTREAM_INDEX_DIR": str(hosts.folder / "index")}
    named = {"SLIPSTREAM_TEST_FAULTS": ",".join(faults)} if faults else {}
    return {**os.environ, **hosts.env, **places, **index, **named, "SLIPSTREAM_HOST_LINGER_S": "5"}


@asynccontextmanager
async def a_window(env: dict[str, str]) -> AsyncIterator[Window]:
    """An innocent window on a host whose engine is scripted."""
    relay.HOST_ARGUMENTS = ("-m", "tests.faults.host_main", "--host")
    window = await window_at_host(env)
    try:
        await window.begin(deadlineMs=60_000)  # an answer in part would be none of the measured ones
        yield window
    finally:
        await window.close()


@asynccontextmanager
async def attacked_by(name: str, env: dict[str, str]) -> AsyncIterator[None]:
    """A hostile window at the same host."""
    arguments = [sys.executable, "-m", "tests.faults.attacker", name]
    attacker = await asyncio.create_subprocess_exec(*arguments, env=env, stdout=asyncio.subprocess.PIPE)
    assert attacker.stdout is not None
    assert await attacker.stdout.readline() == b"begins\n"
    try:
        await asyncio.sleep(1)  # until it is well under way
        yield
    finally:
        attacker.kill()
        await attacker.wait()


async def measure(name: str) -> tuple[Delays, Delays]:
    """The innocent window's delays alone, and under the attack of this name, in turns."""
    alone, attacked = Delays(), Delays()
    with own_hosts() as hosts:
        env = environment(hosts)
        async with a_window(env) as window:
            pid = hosts.only()["pid"]
            for _ in range(NUM_ROUNDS):
                await type_and_wait(window, pid, alone)
                async with attacked_by(name, env):
                    await type_and_wait(window, pid, attacked)
    return alone, attacked


async def report(*names: str) -> bool:
    """Print a line for each way to be hostile, or for those named; whether they are within the bound.

    Where the delay is beyond it and what the host burnt is not, the machine had other things to do.
    """
    say = sys.stdout.write
    is_fair = True
    columns = ("p50 alone", "p99 alone", "p50", "p99", "most", "burnt p99", "alone")
    say(f"{'ms; the hostile window':48}" + "".join(f"{column:>10}" for column in columns) + "\n")
    for attack in (attack for attack in ATTACKS if attack.__name__ in names or not names):
        alone, attacked = await measure(attack.__name__)
        pairs = (attacked.ms, alone.ms), (attacked.burnt_ms, alone.burnt_ms)
        is_late, burns = (
            quantile(now, 0.99) - quantile(before, 0.99) >= MAX_EXTRA_MS for now, before in pairs
        )
        is_fair &= not (is_late and (burns or not any(alone.burnt_ms)))
        values = [quantile(delays.ms, share) for delays in (alone, attacked) for share in (0.5, 0.99)]
        values += [max(attacked.ms), quantile(attacked.burnt_ms, 0.99), quantile(alone.burnt_ms, 0.99)]
        verdict = "" if not is_late else "NOT FAIR" if burns else "the machine"
        shown = "".join(f"{value:10.1f}" for value in values)
        say(f"{attack.__name__.replace('_', ' '):48}{shown} {verdict}\n")
        sys.stdout.flush()
    return is_fair
