"""The text on the screen at given times after a key at a new place, without another key.

The client asks once, shows the answer, and asks again each time it is notified that the suggestion grew.
Without `knows_growth` the client does not announce this, and is not notified.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from completion_engine.next_edit.edits import common_ends
from lsp_server.commands.language_client import AUTOMATIC, INVOKED, LanguageClient
from lsp_server.commands.local_engine import Sample
from lsp_server.commands.player import running_server, wait_until_ready
from lsp_server.scripted_typing.screen import Buffer
from lsp_server.workspace.growth import GREW
from tests.benchmarks.cold.answers import Progress, until_settled

TIMES_S = (0.1, 0.3, 0.6, 1.2, 2.5)
_MAX_WAIT_S = 60.0


class Screen:
    """One document in a client: the text that is shown, and each of its changes with its time."""

    def __init__(self, client: LanguageClient, uri: str, position: Mapping[str, int]) -> None:
        self._client, self._uri, self._position = client, uri, position
        self.changes: list[tuple[float, str]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._begin = time.perf_counter()

    def begin(self) -> None:
        """Ask as after a key."""
        self._begin = time.perf_counter()
        self._tasks.append(asyncio.create_task(self.ask()))

    def grew(self, params: Mapping[str, Any]) -> None:
        """Ask again, if the notification is about this cursor."""
        if params["textDocument"]["uri"] == self._uri and params["position"] == self._position:
            self._tasks.append(asyncio.create_task(self.ask()))

    async def ask(self, kind: int = AUTOMATIC) -> None:
        """Ask, and show the answer."""
        result = await self._client.ask(self._uri, self._position, kind)
        items = (result or {}).get("items", [])
        self.changes.append((time.perf_counter() - self._begin, items[0]["insertText"] if items else ""))

    def text_at(self, seconds: float) -> str:
        """The text on the screen so long after the key."""
        return next((text for at, text in reversed(self.changes) if at <= seconds), "")

    async def end(self) -> None:
        """Wait for the answers that are under way."""
        await asyncio.gather(*self._tasks)


def growing_texts(
    samples: Sequence[Sample],
    root: Path,
    settings: Mapping[str, Any],
    progress: Progress,
    *,
    knows_growth: bool,
) -> list[dict[str, Any]]:
    """The texts at each place: at `TIMES_S`, by a key afterwards, and without a deadline."""
    return asyncio.run(_measure(samples, root, settings, progress, knows_growth=knows_growth))


async def _measure(
    samples: Sequence[Sample],
    root: Path,
    settings: Mapping[str, Any],
    progress: Progress,
    *,
    knows_growth: bool,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    own = {**settings, "index": {"enabled": False}}
    more: dict[str, Any] | None = None if knows_growth else {"experimental": {}}
    async with running_server(root, settings=own, env=dict(os.environ), capabilities=more) as client:
        await wait_until_ready(client)
        await until_settled(client)
        for sample in samples:
            found.append(await _look(client, sample, root))
            progress(len(found), len(samples))
    return found


async def _look(client: LanguageClient, sample: Sample, root: Path) -> dict[str, Any]:
    uri = (root / sample.document).as_uri()
    client.open(uri, sample.prefix + sample.suffix, language=sample.language)
    screen = Screen(client, uri, Buffer(sample.prefix, "").position)
    stop_listening = client.on_notification(GREW, screen.grew)
    screen.begin()
    await asyncio.sleep(TIMES_S[-1])
    stop_listening()  # a notification that crosses the request below would replace it
    async with asyncio.timeout(_MAX_WAIT_S):
        await screen.end()
    shown = [screen.text_at(seconds) for seconds in TIMES_S]
    await screen.ask(INVOKED)
    client.close(uri)
    return {
        "sample": sample,
        "at": shown,
        "by_key": screen.changes[-1][1],
        "num_changes": len(screen.changes) - 1,
        "grows_only": all(b.startswith(a) for a, b in pairwise(shown) if a),
    }


def figures(places: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The right text at each time, and after a request by a key."""
    at = {
        f"{seconds} s": right([(place["sample"], place["at"][number]) for place in places])
        for number, seconds in enumerate(TIMES_S)
    }
    return {
        **at,
        "by a key then": right([(place["sample"], place["by_key"]) for place in places]),
        "num_changes": sum(place["num_changes"] for place in places),
        "share_growing_only": round(sum(place["grows_only"] for place in places) / max(1, len(places)), 3),
    }


def right(shown: Sequence[tuple[Sample, str]]) -> dict[str, float]:
    """The share of places with the whole line right, and the mean number of right and of wrong characters."""
    count = max(1, len(shown))
    lines = [(sample.expected.rstrip(), text.partition("\n")[0].rstrip()) for sample, text in shown]
    num_right = [common_ends(expected, line)[0] for expected, line in lines]
    return {
        "whole_line": round(sum(expected == line for expected, line in lines) / count, 3),
        "right_chars": round(sum(num_right) / count, 2),
        "wrong_chars": round(sum(len(line) for _, line in lines) / count - sum(num_right) / count, 2),
    }
