"""What a window feels while another one is hostile, in a host of their own with a scripted engine.

Owns the measurement. Each of the three is a process: the host, the hostile window, and this one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lsp_server.sharing import relay
from tests.faults.attacker import ATTACKS
from tests.hosts import Hosts, own_hosts
from tests.windows import Window, insertion, window_at_host

URI = "file:///innocent/b.py"

# Over what the innocent window feels alone.
MAX_EXTRA_MS = 50.0
KEY_PAUSE_S = 0.01
NUM_ROUNDS, KEYS_OF_ROUND = 3, 100


@dataclass(frozen=True, slots=True)
class Delays:
    """Milliseconds from a key to its suggestion."""

    ms: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """The delay that this share of keys stays under."""
        return sorted(self.ms)[min(len(self.ms) - 1, int(len(self.ms) * share))]


async def type_and_wait(window: Window, num_keys: int) -> list[float]:
    """Type one key after the other, each awaited; the milliseconds of each."""
    window.open(URI, "")
    delays = []
    for column in range(num_keys):
        begin = time.perf_counter()
        window.change(URI, insertion(0, column, "x"), version=column + 2)
        assert await window.suggest(URI, 0, column + 1) == ["x" * (column + 1) + "!"]
        delays.append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(KEY_PAUSE_S)
    return delays


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
        await window.begin()
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


async def measure(name: str) -> tuple[Delays, Delays, Delays]:
    """The innocent window's delays alone, under an attack on another host, and on its own; in turns.

    What the attack on another host costs, the machine costs: its cores are shared.
    """
    found: tuple[list[float], ...] = [], [], []
    with own_hosts() as hosts, own_hosts() as others:
        env, elsewhere = environment(hosts), environment(others)
        async with a_window(env) as window, a_window(elsewhere):
            for _ in range(NUM_ROUNDS):
                found[0].extend(await type_and_wait(window, KEYS_OF_ROUND))
                for delays, attacked in zip(found[1:], (elsewhere, env), strict=True):
                    async with attacked_by(name, attacked):
                        delays.extend(await type_and_wait(window, KEYS_OF_ROUND))
    alone, machine, attacked_ = (Delays(tuple(ms)) for ms in found)
    return alone, machine, attacked_


async def report(*names: str) -> bool:
    """Print a line for each way to be hostile, or for those named; whether they are within the bound.

    Of a machine that is too small for both, the attack on another host tells.
    """
    say = sys.stdout.write
    is_fair = True
    columns = ("p50 alone", "p99 alone", "p50 other", "p99 other", "p50", "p99", "most")
    say(f"{'ms; the hostile window':48}" + "".join(f"{column:>10}" for column in columns) + "\n")
    for attack in (attack for attack in ATTACKS if attack.__name__ in names or not names):
        alone, machine, attacked = await measure(attack.__name__)
        most = attacked.quantile(0.99) - MAX_EXTRA_MS
        is_within = most < alone.quantile(0.99)
        is_fair &= is_within or most < machine.quantile(0.99)
        values = [delays.quantile(share) for delays in (alone, machine, attacked) for share in (0.5, 0.99)]
        shown = "".join(f"{value:10.1f}" for value in (*values, attacked.quantile(1)))
        verdict = "" if is_within else "the machine" if most < machine.quantile(0.99) else "NOT FAIR"
        say(f"{attack.__name__.replace('_', ' '):48}{shown} {verdict}\n")
        sys.stdout.flush()
    return is_fair
