"""What the server itself costs: a keystroke in a very long file, and a request cancelled in mid-decode.

Run as `python -m tests.benchmarks.server`. A real server process with the real target; the time of the engine
itself is subtracted.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from completion_engine.config import DEFAULT_TARGET
from lsp_server.commands.language_client import LanguageClient
from lsp_server.commands.player import running_server, stats_of, wait_until_ready
from lsp_server.commands.terminal import progress_bar, show_figures
from lsp_server.protocol.framing import REQUEST_CANCELLED, ResponseError
from tests.benchmarks.command_line import Json, Target, run

NUM_LINES = 20_000
NUM_KEYSTROKES = 60
NUM_CANCELS = 10
_LINE = "    value = compute(previous, 12)\n"
_SETTLE_S = 0.15  # long enough for the request to be in mid-decode


def measure_server(root: Path, target: str) -> dict[str, Any]:
    """Figures in milliseconds; `outside_engine_ms` includes the pipes and the client."""
    return asyncio.run(_measure(root, target))


async def _measure(root: Path, target: str) -> dict[str, Any]:
    settings = {"target": target, "index": {"enabled": False}}
    async with running_server(root, settings=settings) as client:
        await wait_until_ready(client)
        outside = await _type(client, (root / "long.py").as_uri())
        client.configure(
            {**settings, "deadlineMs": 0, "multiline": "always", "maxTokens": 256, "drafters": []}
        )
        await asyncio.sleep(_SETTLE_S)
        await wait_until_ready(client)
        answered = await _cancel(client, root)
        stats = await stats_of(client)
    return {
        "num_lines": NUM_LINES,
        "num_keystrokes": len(outside),
        "change_ms": stats["change_ms"],
        "outside_engine_ms_p50": round(median(outside), 3),
        "outside_engine_ms_p95": round(sorted(outside)[len(outside) * 95 // 100], 3),
        "num_cancelled": len(answered),
        "cancel_to_answer_ms_p50": round(median(answered), 3) if answered else None,
        "cancel_to_idle_ms": stats["cancel_to_idle_ms"],
    }


async def _type(client: LanguageClient, uri: str) -> list[float]:
    """Type into the middle of the file; for each keystroke the time that the engine did not take."""
    client.open(uri, _LINE * NUM_LINES, language="python")
    line, outside = NUM_LINES // 2, []
    for column in range(NUM_KEYSTROKES):
        at = {"line": line, "character": column}
        begin = time.perf_counter()
        client.change(uri, [{"range": {"start": at, "end": at}, "text": "xyz = "[column % 6]}])
        position = {"line": line, "character": column + 1}
        await client.ask(uri, position)
        elapsed = (time.perf_counter() - begin) * 1e3
        why = await client.request("slipstream/why", {"textDocument": {"uri": uri}, "position": position})
        outside.append(elapsed - why["stats"]["ms"]["total"])
    return outside


async def _cancel(client: LanguageClient, root: Path) -> list[float]:
    """Cancel requests that are being decoded; for each the time to its answer."""
    answered: list[float] = []
    for number in range(NUM_CANCELS):
        uri = (root / f"cancel{number}.py").as_uri()
        client.open(
            uri, f"def add{number}(a, b):\n    return a + b\n\n\ndef twice(a):\n    \n", language="python"
        )
        request = client.ask(uri, {"line": 5, "character": 4})
        await asyncio.sleep(_SETTLE_S)
        begin = time.perf_counter()
        client.cancel(request.id)
        try:
            await request
        except ResponseError as error:
            if error.code == REQUEST_CANCELLED:
                answered.append((time.perf_counter() - begin) * 1e3)
    await asyncio.sleep(1.0)  # the last one's engine time is counted when it is idle
    return answered


def server(*, target: Target = DEFAULT_TARGET, json: Json = False) -> None:
    """Time per keystroke in a 20,000-line file, and how soon a cancelled request frees the engine."""
    with progress_bar(quiet=json) as report, tempfile.TemporaryDirectory() as folder:
        report("Typing and cancelling", 0, 0)
        figures = measure_server(Path(folder), target)
    show_figures({"bench": "server", "target": target, **figures}, json=json, title="The server itself")


if __name__ == "__main__":
    run(server)
