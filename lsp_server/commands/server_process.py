"""A server process for a replay or a measurement: started, and waited for until it can answer."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from completion_engine.errors import MachineError, UserError
from completion_engine.request import Progress
from lsp_server.commands.language_client import LanguageClient

# -P keeps the current folder off the module path: it may hold modules of these names.
SERVER_COMMAND = (sys.executable, "-P", "-m", "lsp_server")
_POLL_S = 0.1
_LOADING_S = 1800.0


@asynccontextmanager
async def running_server(
    root: Path,
    *,
    settings: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> AsyncIterator[LanguageClient]:
    """A client of a new server process that works in `root`; the process ends with the block."""
    async with await LanguageClient.start(SERVER_COMMAND, cwd=root, env=env) as client:
        await client.initialize(root, settings=settings, capabilities=capabilities)
        yield client


async def stats_of(client: LanguageClient) -> dict[str, Any]:
    """The server's state and counters."""
    return dict(await client.request("slipstream/stats", {}))


async def wait_until_ready(client: LanguageClient, report: Progress) -> dict[str, Any]:
    """Wait for the model, and for the indexes; returns the server's last stats.

    Raises UserError with the server's own message when it cannot load, MachineError after half an hour.
    """
    start = time.monotonic()
    while True:
        stats = await stats_of(client)
        if stats["state"] == "error":
            raise UserError(stats["message"] or "The engine failed.", advice=stats["advice"])
        building = [one for one in stats["index"] if one["state"] in {"waiting", "building"}]
        if stats["state"] == "loading":
            if time.monotonic() - start > _LOADING_S:
                raise MachineError(f"The model is not loaded after {_LOADING_S:.0f} s.")
            progress = stats["progress"]
            report(stats["message"] or "Loading the model", progress["done"], progress["total"])
        elif not building:
            return stats
        for index in building:
            progress = index["progress"]
            report(f"Indexing {Path(index['folder']).name}", progress["done"], progress["total"])
        await asyncio.sleep(_POLL_S)
