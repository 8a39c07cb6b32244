"""What a further window costs: a server of its own beside one that shares its engine.

Run as `python -m tests.benchmarks.shared_windows`: types the same keys into both in turn, with the default
model. Owns this one measurement; its windows are clients of the protocol without an editor.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from completion_engine.config import DEFAULT_TARGET
from lsp_server.commands.language_client import LanguageClient
from lsp_server.commands.player import wait_until_ready
from tests.hosts import Hosts, own_hosts

TEXT = "def overdue(loans, today):\n    "
TYPED = "return [loan for loan in loans if loan.due < today]"
POLL_S = 0.01
PAUSE_S = 0.02


@dataclass
class Window:
    """A client, the seconds until its server was ready, and the milliseconds of what it asked."""

    client: LanguageClient
    ready_s: float
    stats_ms: list[float] = field(default_factory=list)
    key_ms: list[float] = field(default_factory=list)

    @property
    def memory_mb(self) -> float:
        """Memory of the process that the editor started."""
        return psutil.Process(self.client.process.pid).memory_info().rss / 1e6


async def open_window(hosts: Hosts, folder: Path, *, is_shared: bool) -> Window:
    """Start a server and wait until it can complete."""
    argv = [sys.executable, "-P", "-m", "lsp_server", *(["--shared"] if is_shared else [])]
    homes = {
        name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "SLIPSTREAM_INDEX_DIR")
    }
    client = await LanguageClient.start(argv, cwd=folder, env={**hosts.env, **homes})
    begin = time.perf_counter()
    await client.initialize(folder, settings={"target": DEFAULT_TARGET, "deadlineMs": 0})
    await wait_until_ready(client)
    return Window(client, time.perf_counter() - begin)


async def type_key(window: Window, uri: str, column: int) -> None:
    """Type one key, wait for its suggestion, then send a request that needs no engine."""
    place = {"line": 1, "character": 4 + column}
    behind = {"line": 1, "character": 5 + column}
    begin = time.perf_counter()
    window.client.change(uri, [{"range": {"start": place, "end": place}, "text": TYPED[column]}])
    await window.client.ask(uri, behind)
    answered = time.perf_counter()
    await window.client.request("slipstream/stats")
    window.key_ms.append((answered - begin) * 1e3)
    window.stats_ms.append((time.perf_counter() - answered) * 1e3)


async def measure(hosts: Hosts, folder: Path) -> dict[str, Any]:
    """Three windows: one alone, one that starts the shared process, a further one."""
    alone = await open_window(hosts, folder, is_shared=False)
    first, further = [await open_window(hosts, folder, is_shared=True) for _ in range(2)]
    uri = (folder / "loans.py").as_uri()
    for window in (alone, first):
        window.client.open(uri, TEXT, language="python")
    for column in range(len(TYPED)):
        for window in (alone, first) if column % 2 else (first, alone):
            await type_key(window, uri, column)
            await asyncio.sleep(PAUSE_S)
    found = {
        "ready_s": {"alone": alone.ready_s, "first": first.ready_s, "further": further.ready_s},
        "memory_mb": {
            "alone": alone.memory_mb,
            "shared": hosts.only()["num_memory_bytes"] / 1e6,
            "each window beside it": further.memory_mb,
        },
        "key_ms": {"alone": median(alone.key_ms), "shared": median(first.key_ms)},
        "without_engine_ms": {"alone": median(alone.stats_ms), "shared": median(first.stats_ms)},
    }
    for window in (alone, first, further):
        await window.client.shutdown()
    return found


def main() -> None:
    """Measure and print."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, own_hosts() as hosts:
        found = asyncio.run(measure(hosts, Path(name)))
    lines = [f"Load of the machine at the start: {load:.1f} on {os.cpu_count()} cores"]
    for what, figures in found.items():
        lines.append(f"{what:<20}" + "  ".join(f"{name} {figure:.2f}" for name, figure in figures.items()))
    sys.stdout.write("\n".join([*lines, json.dumps(found)]) + "\n")


if __name__ == "__main__":
    main()
