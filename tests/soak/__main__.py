"""Run as `python -m tests.soak [--windows 1000] [--keys 12000] [--minutes 0]`: what it leaves in the host.

12,000 keys in each of 8 windows are a long working day of eight people. Exits with 1 where anything is left.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from completion_engine.compile_kernels import DRAFTER, TARGET, write_toy_model
from tests.hosts import Hosts, own_hosts
from tests.soak.host_state import HostState, settled
from tests.soak.windows import one_window, open_window, type_together

NUM_AT_ONCE = 8
MEMORY_SHARE = 0.05

# Before the first look, all one-time loads are done and all bounded stores are full.
NUM_WARM_WINDOWS = 64
NUM_WARM_KEYS = 6000


async def come_and_go(
    hosts: Hosts, folder: Path, settings: Mapping[str, Any], num_windows: int, seed: int
) -> Counter[str]:
    """Windows that end at every step, some at once; returns the number of ends per step."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    places = asyncio.Semaphore(NUM_AT_ONCE)

    async def one(number: int) -> str:
        async with places:
            return await one_window(hosts.env, folder, settings, number, rng)

    return Counter(await asyncio.gather(*(one(number) for number in range(num_windows))))


def _prepare(place: Path) -> tuple[Path, dict[str, Any]]:
    """A repository to type in, and settings that name the toy target with its drafter."""
    models, folder = place / "models", place / "repository"
    models.mkdir()
    folder.mkdir()
    write_toy_model(models)
    (folder / "known.py").write_text("def area(width, height):\n    return width * height\n")
    target, drafter = str(models / TARGET), str(models / DRAFTER)
    return folder, {"target": target, "draftModel": drafter, "device": "cpu", "eagerness": 1}


async def soak(num_windows: int, num_keys: int, minutes: float, dtype: str) -> dict[str, Any]:
    """Windows that come and go while others type; the state before and after each round.

    One more window stays all the time. Rounds follow each other for some minutes; there is at least one.
    """
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary, own_hosts() as hosts:
        folder, settings = _prepare(Path(temporary))
        settings["dtype"] = dtype
        async with await open_window(hosts.env) as stays:
            await stays.initialize(folder, settings=settings)
            while (await stays.request("slipstream/stats"))["state"] != "ready":  # noqa: ASYNC110
                await asyncio.sleep(0.1)

            async def together(num_windows: int, num_keys: int, seed: int) -> tuple[Counter[str], int]:
                coming = come_and_go(hosts, folder, settings, num_windows, seed)
                typing = type_together(hosts.env, folder, settings, NUM_AT_ONCE, num_keys)
                return await asyncio.gather(coming, typing)

            await together(NUM_WARM_WINDOWS, NUM_WARM_KEYS, seed=1)
            before, begin = await settled(hosts, 1), time.monotonic()
            ends, num_answered, states = Counter[str](), 0, list[HostState]()
            while not states or time.monotonic() - begin < 60 * minutes:
                more, num_more = await together(num_windows, num_keys, seed=2 + len(states))
                ends, num_answered = ends + more, num_answered + num_more
                states.append(await settled(hosts, 1))
            stats = await stays.request("slipstream/stats")
    return {
        "seconds": round(time.monotonic() - begin),
        "windows": {"count": ends.total(), "ends": dict(ends)},
        "typing": {"keys": NUM_AT_ONCE * num_keys * len(states), "answered": num_answered},
        "before": str(before),
        "after": [str(state) for state in states],
        "left": states[-1].differences(before, MEMORY_SHARE),
        "exactness": stats["engine"]["exactness"],
    }


def main() -> int:
    """Print the report as JSON; 1 where something is left."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=12_000, help="in each of eight windows")
    parser.add_argument("--dtype", default="auto", help="of the target: another may be exact in another way")
    parser.add_argument("--minutes", type=float, default=0.0, help="repeat both for so long")
    options = parser.parse_args()
    report = asyncio.run(soak(options.windows, options.keys, options.minutes, options.dtype))
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if report["left"] else 0


if __name__ == "__main__":
    sys.exit(main())
