"""Key to suggestion with the servers so far away, and with the target on this machine: the same files typed.

Each way types through a real language server of its own, one after the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from completion_engine.errors import UserError
from completion_engine.request import Progress
from lsp_server.commands.replay import ReplayOptions, replay_files
from tests.benchmarks.remote.counters import Counts, read_counts
from tests.benchmarks.remote.relay import delaying_relay

HERE = "this machine"


async def typed_from_afar(
    files: Sequence[Path],
    options: ReplayOptions,
    remote: Mapping[str, str],
    round_trips_ms: Sequence[float],
    metrics: Sequence[str],
    report: Progress,
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The results of a replay of the files, for this machine and for each round trip, with the replicas'
    counts.

    Raises SlipstreamError.
    """
    parts = urlsplit(remote["url"])
    if parts.hostname not in {"localhost", "127.0.0.1"} or parts.port is None:
        raise UserError(
            "A longer way is only simulated to servers on this machine: their certificate names it.",
            advice="Name a URL like https://localhost:8443, or leave out --round-trip.",
        )
    yield HERE, await replay_files(files, options, report)
    for round_trip_ms in round_trips_ms:
        async with delaying_relay(parts.hostname, parts.port, round_trip_ms) as port:
            settings = {**remote, "url": f"{parts.scheme}://{parts.hostname}:{port}"}
            far = replace(options, settings={**options.settings, "remote": settings})
            before = read_counts(metrics)
            replayed = await replay_files(files, far, report)
            counts = read_counts(metrics) - before
        yield f"{round_trip_ms:g} ms away", {**replayed, "counts": counts}


def rows(found: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """For a table: each way's times in ms, what was spared, and the prompt tokens that were cached."""
    shown = []
    for name, replayed in found.items():
        warm, first = replayed["latency_ms"]["warm"], replayed["latency_ms"]["first"]
        times = (f"{value:.0f}" for value in (warm["p50"], warm["p95"], first["p50"]))
        counts = replayed.get("counts", Counts())
        asked = (f"{counts.share_cached:.0%}", str(counts.num_requests)) if counts.num_requests else ("", "")
        not_typed = f"{replayed['share_not_typed']:.0%}"
        num_here = sum(num for device, num in replayed["answered_on"].items() if device != "remote")
        shown.append([name, *times, not_typed, str(replayed["num_requests"]), str(num_here), *asked])
    return shown


COLUMNS = (
    "",
    "key to answer, p50",
    "p95",
    "the first",
    "not typed",
    "keys",
    "answered here",
    "cached",
    "asked",
)
