"""`python -m tests.benchmarks.edits.latency`: the time from the last key of a rename to the next edit.

A script renames names in released modules through real servers, as an editor does: a completion is requested
at each key, an edit once typing has paused. Each server does the same, in turn; one of them has `nextEdit`
off, so the run also shows what edits cost completions, and the processor.
"""

from __future__ import annotations

import asyncio
import random
import shlex
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from completion_engine.config import DEFAULT_TARGET
from lsp_server.commands.language_client import AUTOMATIC, LanguageClient, PendingRequest
from lsp_server.commands.player import SERVER_COMMAND, wait_until_ready
from lsp_server.commands.terminal import progress_bar, show_rows, write_json
from lsp_server.protocol.framing import ResponseError
from lsp_server.workspace.measurements import percentiles
from tests.benchmarks.command_line import Json, Target, run
from tests.benchmarks.edits.renames import Rename, renames_in
from tests.benchmarks.released_sources import released_modules

PAUSE_S = 0.1  # the editors ask for an edit after it
_OPENED_S = 0.5  # after it the server has read a document's rules
_MAX_WAIT_S = 20.0


@dataclass
class Served:
    """One server and what was measured of it, in milliseconds from a key to the answer.

    `certain_ms` has the answers with an edit that no pass decided, `scored_ms` those with one that the target
    scored, `empty_ms` the others, `completion_ms` those of completions. `steps` has what the server tells of
    each scored edit.
    """

    name: str
    client: LanguageClient
    asks_edits: bool
    certain_ms: list[float] = field(default_factory=list)
    scored_ms: list[float] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    empty_ms: list[float] = field(default_factory=list)
    completion_ms: list[float] = field(default_factory=list)
    num_cancelled: int = 0
    typed_s: float = 0.0
    processor_s: float = 0.0

    def as_row(self) -> dict[str, Any]:
        """The figures of one server."""
        per_hour = self.processor_s / self.typed_s * 3600 if self.typed_s else 0.0
        edits = [*self.certain_ms, *self.scored_ms]
        return {
            "server": self.name,
            "edits": len(edits),
            "certain": len(self.certain_ms),
            "none": len(self.empty_ms),
            **_spread("edit", edits),
            **_spread("certain", self.certain_ms),
            **_spread("scored", self.scored_ms),
            **_spread("none", self.empty_ms),
            "completions": len(self.completion_ms),
            **_spread("completion", self.completion_ms),
            "cancelled": self.num_cancelled,
            "processor_s_per_hour": round(per_hour),
        }

    def time_line(self) -> list[tuple[str, str]]:
        """The steps from the last key to a scored edit, each with its median."""
        steps = {
            "pause of the client (ms)": lambda it: it["pause_ms"],
            "server, and waiting for the engine (ms)": lambda it: it["total_ms"] - it["pause_ms"] - it["ms"],
            "search, syntax, prompts and passes (ms)": lambda it: it["ms"],
            "places scored": lambda it: it["num_scored"],
        }
        return [(name, f"{percentiles(map(step, self.steps))['p50']:.0f}") for name, step in steps.items()]


def _spread(name: str, times_ms: Sequence[float]) -> dict[str, int]:
    """Return the median and the 95th percentile; 0 without any."""
    found = percentiles(times_ms)
    return {f"{name}_{which}_ms": round(found[which]) for which in ("p50", "p95")}


def latency(
    *,
    servers: Annotated[
        list[str] | None, typer.Option("--server", help="A command of a further server; repeatable.")
    ] = None,
    renames: Annotated[int, typer.Option(min=1, help="Renames of each module.")] = 4,
    pace: Annotated[float, typer.Option(min=0, help="Milliseconds between keys.")] = 120.0,
    pause: Annotated[float, typer.Option(min=0, help="Milliseconds from a key to a request.")] = 100.0,
    seed: Annotated[int, typer.Option(help="Seed of the renames.")] = 0,
    target: Target = DEFAULT_TARGET,
    json: Json = False,
) -> None:
    """Rename names through real servers, and time the answers."""
    commands = {"this": list(SERVER_COMMAND), "this, off": list(SERVER_COMMAND)}
    commands |= {f"other {at}": shlex.split(command) for at, command in enumerate(servers or ())}
    with tempfile.TemporaryDirectory() as root, progress_bar(quiet=json) as report:
        plan = [
            rename
            for module in released_modules()
            for rename in renames_in(module.read_text("utf-8"), renames, random.Random(seed))  # noqa: S311 - a choice of names
        ]
        typist = _Typist(Path(root), pace / 1e3, pause / 1e3)
        served = asyncio.run(_measured(commands, plan, typist, target, report))
    rows = [one.as_row() for one in served]
    if not json:
        names = list(rows[0])
        show_rows("renames", names, [[str(row[name]) for name in names] for row in rows])
        for one in served:
            show_rows(f"{one.name}: a scored edit's median time line", ("step", "median"), one.time_line())
    write_json({"bench": "edit latency", "target": target, "num_renames": len(plan), "servers": rows})


async def _measured(
    commands: dict[str, list[str]], plan: Sequence[Rename], typist: _Typist, target: str, report: Any
) -> list[Served]:
    """Start all servers, and let each do every rename, in an order that turns."""
    served: list[Served] = []
    try:
        for name, command in commands.items():
            client = await LanguageClient.start(command, cwd=typist.root)
            asks = not name.endswith("off")
            settings = {
                "target": target,
                "index": {"enabled": False},
                "nextEdit": "automatic" if asks else "off",
            }
            await client.initialize(typist.root, settings=settings)
            await wait_until_ready(client)
            served.append(Served(name, client, asks))
        for at, rename in enumerate(plan):
            report("Renaming", at, len(plan))
            turn = at % len(served)
            for one in (*served[turn:], *served[:turn]):
                await typist.rename(one, rename)
    finally:
        for one in served:
            await one.client.shutdown()
    return served


class _Typist:
    """Types renames, and requests what an editor requests."""

    def __init__(self, root: Path, pace_s: float, pause_s: float) -> None:
        self.root, self._pace_s, self._pause_s = root, pace_s, pause_s
        self._numbers = count()

    async def rename(self, served: Served, rename: Rename) -> None:
        """Rename a name at its first two occurrences, and ask for an edit after each."""
        uri = (self.root / f"m{next(self._numbers)}.py").as_uri()
        client, process = served.client, psutil.Process(served.client.process.pid)
        client.open(uri, rename.text, language="python")
        await asyncio.sleep(_OPENED_S)
        begin_s, before_s = time.perf_counter(), _processor_s(process)
        for line, column in rename.places:
            last_s = await self._type(served, uri, line, column, rename)
            if served.asks_edits:
                await self._ask_for_edit(served, uri, line, column, last_s)
            else:
                await asyncio.sleep(self._pause_s)
        served.processor_s += _processor_s(process) - before_s
        served.typed_s += time.perf_counter() - begin_s
        client.close(uri)

    async def _type(self, served: Served, uri: str, line: int, column: int, rename: Rename) -> float:
        """Replace a selected name key by key; returns when the last key was pressed."""
        end, asked, at_s = column + len(rename.old), None, 0.0
        for number, char in enumerate(rename.new):
            start = column + number
            change = {"range": _range(line, start, end if not number else start), "text": char}
            at_s = time.perf_counter()
            served.client.change(uri, [change])
            asked = served.client.ask(uri, {"line": line, "character": start + 1})
            timed = asyncio.create_task(_timed(served, asked, at_s))
            if number < len(rename.new) - 1:
                await asyncio.sleep(self._pace_s)
                if not timed.done():
                    served.client.cancel(asked.id)
                await timed
        return at_s

    async def _ask_for_edit(self, served: Served, uri: str, line: int, column: int, last_s: float) -> None:
        await asyncio.sleep(max(0.0, last_s + self._pause_s - time.perf_counter()))
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        params = {**place, "context": {"triggerKind": AUTOMATIC, "otherDocuments": True}}
        found = await asyncio.wait_for(
            served.client.request("textDocument/copilotInlineEdit", params), _MAX_WAIT_S
        )
        ms = (time.perf_counter() - last_s) * 1e3
        if not found["edits"]:
            served.empty_ms.append(ms)
            return
        (record_id,) = found["edits"][0]["command"]["arguments"]
        why = await served.client.request("slipstream/why", {"id": record_id})
        (served.scored_ms if why["num_scored"] else served.certain_ms).append(ms)
        if why["num_scored"]:
            served.steps.append({**why, "total_ms": ms, "pause_ms": self._pause_s * 1e3})


async def _timed(served: Served, asked: PendingRequest, at_s: float) -> None:
    """Note the time of a completion's answer."""
    try:
        await asked.answer
    except ResponseError:
        served.num_cancelled += 1
    else:
        served.completion_ms.append((time.perf_counter() - at_s) * 1e3)


def _processor_s(process: psutil.Process) -> float:
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def _range(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


if __name__ == "__main__":
    run(latency)
