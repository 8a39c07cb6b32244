"""Run as `python -m tests.soak [--windows 1000] [--keys 12000]`: the host before and after, and what differs.

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

from completion_engine.loading.toy_model import DRAFTER, TARGET, write_toy_model
from tests.hosts import Hosts, own_hosts
from tests.soak.host_state import settled
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
    return folder, {"target": target, "draftModel": drafter, "device": "cpu", "shadow": 0.05, "eagerness": 1}


async def soak(num_windows: int, num_keys: int, dtype: str) -> dict[str, Any]:
    """Both parts beside one window that stays; returns the state before and after each."""
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary, own_hosts() as hosts:
        folder, settings = _prepare(Path(temporary))
        settings["dtype"] = dtype
        async with await open_window(hosts.env) as stays:
            await stays.initialize(folder, settings=settings)
            while (await stays.request("slipstream/stats"))["state"] != "ready":  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            await come_and_go(hosts, folder, settings, NUM_WARM_WINDOWS, seed=1)
            await type_together(hosts.env, folder, settings, NUM_AT_ONCE, NUM_WARM_KEYS)
            before = await settled(hosts, 1)
            begin = time.monotonic()
            ends = await come_and_go(hosts, folder, settings, num_windows, seed=2)
            after_windows = await settled(hosts, 1)
            middle = time.monotonic()
            num_answered = await type_together(hosts.env, folder, settings, NUM_AT_ONCE, num_keys)
            after = await settled(hosts, 1)
            stats = await stays.request("slipstream/stats")
    return {
        "windows": {"count": num_windows, "ends": dict(ends), "seconds": round(middle - begin)},
        "typing": {
            "keys": NUM_AT_ONCE * num_keys,
            "answered": num_answered,
            "seconds": round(time.monotonic() - middle),
        },
        "before": str(before),
        "after_windows": str(after_windows),
        "after": str(after),
        "left": [*after_windows.differences(before, MEMORY_SHARE), *after.differences(before, MEMORY_SHARE)],
        "exactness": stats["engine"]["exactness"],
        "shadow": stats["shadow"],
    }


def main() -> int:
    """Print the report as JSON; 1 where something is left, differs, or was never checked."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=12_000, help="in each of eight windows")
    parser.add_argument("--dtype", default="auto", help="of the target: another may be exact in another way")
    options = parser.parse_args()
    report = asyncio.run(soak(options.windows, options.keys, options.dtype))
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    shadow = report["shadow"]
    return 1 if report["left"] or shadow["num_different"] or not shadow["num_checked"] else 0


if __name__ == "__main__":
    sys.exit(main())
