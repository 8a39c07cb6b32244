"""Time of a key in a minified file: `python -m tests.benchmarks.long_lines`.

A real server with default settings gets each key of a statement at the end of one very long line.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from lsp_server.commands.player import running_server, wait_until_ready
from lsp_server.commands.terminal import show_figures
from tests.benchmarks.command_line import Json, Target, run

_TYPED = "var total=items.map(function(item){return item.price*item.count})"


def minified(num_chars: int) -> str:
    """One line of that many characters: short functions of different names after each other."""
    functions = (
        f"function f{number}(a,b){{var c=a.x{number % 97}+b[{number}];return c>0?'p{number}':\"q\"}}"
        for number in range(num_chars)
    )
    text = ""
    while len(text) < num_chars:
        text += next(functions)
    return text[:num_chars].rpartition("}")[0] + "};"


async def times_ms(server: Sequence[str], root: Path, target: str, num_chars: int) -> tuple[list[float], int]:
    """Milliseconds from each key to its answer, each after the answer to the last, and how many hold text."""
    text = minified(num_chars)
    uri = (root / "app.min.js").as_uri()
    found: list[float] = []
    num_shown = 0
    async with running_server(root, settings={"target": target}, command=server) as client:
        await wait_until_ready(client)
        client.open(uri, text + "\n", language="javascript")
        for at, char in enumerate(_TYPED):
            start = {"line": 0, "character": len(text) + at}
            begin = time.perf_counter()
            client.change(uri, [{"range": {"start": start, "end": start}, "text": char}])
            answer = await client.ask(uri, {"line": 0, "character": len(text) + at + 1})
            found.append((time.perf_counter() - begin) * 1e3)
            num_shown += bool((answer or {}).get("items"))
    return found, num_shown


def long_lines(
    *,
    chars: Annotated[int, typer.Option("--chars", min=1_000, help="Characters before the cursor.")] = 96_000,
    server: Annotated[str, typer.Option("--server", help="The server's command.")] = "",
    target: Target = "qwen2.5-coder-0.5b",
    json: Json = False,
) -> None:
    """Milliseconds from a key to its answer in a minified file."""
    command = shlex.split(server) or [sys.executable, "-m", "lsp_server"]
    with tempfile.TemporaryDirectory() as home:
        found, num_shown = asyncio.run(times_ms(command, Path(home).resolve(), target, chars))
    p50, p95 = np.percentile(found, [50, 95])
    figures = {"num_keys": len(found), "num_shown": num_shown, "first_ms": round(found[0], 1)}
    figures |= {"ms_p50": round(p50, 1), "ms_p95": round(p95, 1)}
    show_figures({"bench": "long_lines", "chars": chars, **figures}, json=json, title="Keys in a long line")


if __name__ == "__main__":
    run(long_lines)
