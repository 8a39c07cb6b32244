"""A server of our own for a measurement: started, waited for, asked for its state.

Knows the server's command line and its `slipstream/stats`. Must not know what is measured.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from completion_engine.errors import MachineError, UserError
from completion_engine.request import Progress
from lsp_server.commands.language_client import LanguageClient

# -P keeps the current folder off the module path: it may hold anything, modules of these names too.
SERVER_COMMAND = (sys.executable, "-P", "-m", "lsp_server")
POLL_S = 0.1


@asynccontextmanager
async def running_server(
    root: Path, *, settings: Mapping[str, Any], env: Mapping[str, str] | None = None
) -> AsyncIterator[LanguageClient]:
    """A client of a new server process that works in `root`; the process ends with the block."""
    async with await LanguageClient.start(SERVER_COMMAND, cwd=root, env=env) as client:
        await client.initialize(root, settings=settings)
        yield client


async def stats_of(client: LanguageClient) -> dict[str, Any]:
    """The server's state and counters."""
    return dict(await client.request("slipstream/stats", {}))


async def wait_until_ready(
    client: LanguageClient, report: Progress, *, loading_s: float = 1800.0
) -> dict[str, Any]:
    """Wait for the model, and for the index if there is one; returns the server's last stats.

    Raises UserError with the server's own words when it cannot load, MachineError when it takes longer than
    `loading_s`.
    """
    start = time.monotonic()
    while True:
        stats = await stats_of(client)
        waited = time.monotonic() - start
        progress = stats["progress"]
        match stats["state"]:
            case "error":
                raise UserError(stats["message"] or "The engine failed.", advice=stats["advice"])
            case "loading" if waited > loading_s:
                raise MachineError(f"The model is not loaded after {loading_s:.0f} s.")
            case "loading":
                report(stats["message"] or "Loading the model", progress["done"], progress["total"])
            case _ if not _report_indexing(stats["index"], report):
                return stats
        await asyncio.sleep(POLL_S)


def _report_indexing(indexes: Sequence[Mapping[str, Any]], report: Progress) -> bool:
    """Whether an index is still being built; tells how far each is."""
    for index in indexes:
        if total := index["progress"]["total"]:
            report(f"Indexing {Path(index['folder']).name}", index["progress"]["done"], total)
    return any(index["state"] in {"waiting", "building"} for index in indexes)
