"""A hostile window in a process of its own: ten ways to be hostile. `python -m tests.faults.attacker NAME`.

Owns the ways. Has no access to the measurement.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from lsp_server.workspace.documents import MAX_DOCUMENT_CHARS
from lsp_server.workspace.lines import MAX_LINE_CHARS
from tests.windows import Window, insertion, window_at_host

HOSTILE = "file:///hostile/a.py"

OpenWindow = Callable[..., Awaitable[Window]]


async def _hostile(open_window: OpenWindow, *, reads: bool = True) -> Window:
    window = await open_window(reads=reads)
    if reads:
        await window.begin()
    return window


async def floods_with_requests(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    window.open(HOSTILE, "x")
    while True:
        for _ in range(100):
            window.ask(HOSTILE, 0, 1)
        await window.writer.drain()
        await asyncio.sleep(0)


async def floods_and_reads_nothing(open_window: OpenWindow) -> None:
    window = await _hostile(open_window, reads=False)
    window.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    window.notify("initialized", {})
    with suppress(ConnectionError):
        while True:
            for _ in range(100):
                window.send("slipstream/stats", None)
            await asyncio.wait_for(window.writer.drain(), 5)
            await asyncio.sleep(0)


async def opens_huge_documents(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    text = "value = compute(previous)\n" * (60 * 1024 * 1024 // 26)
    body = json.dumps(_open(text)).encode()
    await _repeat(window, body)


async def opens_the_largest_documents_that_are_followed(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    text = "value = compute(previous)\n" * (MAX_DOCUMENT_CHARS // 26)
    await _repeat(window, json.dumps(_open(text)).encode())


async def types_in_a_huge_line(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    window.open(HOSTILE, "x" * (MAX_LINE_CHARS - 1000))
    for number in range(900):
        window.change(HOSTILE, insertion(0, 1000, "y"), version=number + 2)
        window.ask(HOSTILE, 0, 1000)
        await window.writer.drain()
        await asyncio.sleep(0)


async def sends_a_line_of_20_megabytes(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    await _repeat(window, json.dumps(_open("x" * 20 * 1024 * 1024)).encode())


async def sends_many_edits_at_once(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    window.open(HOSTILE, "x\n" * 1000)
    changes = [insertion(number % 1000, 0, "y") for number in range(20_000)]
    params = {"textDocument": {"uri": HOSTILE, "version": 2}, "contentChanges": changes}
    message = {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}
    await _repeat(window, json.dumps(message).encode())


async def sends_values_without_end(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    message = {"jsonrpc": "2.0", "method": "slipstream/nothing", "params": [[1, {"a": None}]] * 300_000}
    await _repeat(window, json.dumps(message).encode())


async def comes_and_goes(open_window: OpenWindow) -> None:
    while True:
        window = await _hostile(open_window, reads=False)
        window.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        window.notify("initialized", {})
        await window.writer.drain()
        await asyncio.sleep(0.01)
        window.vanish()


async def tells_of_changed_files_without_end(open_window: OpenWindow) -> None:
    window = await _hostile(open_window)
    changes = [{"uri": f"file:///hostile/{number}.py", "type": 2} for number in range(20_000)]
    message = {"jsonrpc": "2.0", "method": "workspace/didChangeWatchedFiles", "params": {"changes": changes}}
    await _repeat(window, json.dumps(message).encode())


ATTACKS: tuple[Callable[[OpenWindow], Any], ...] = (
    floods_with_requests,
    floods_and_reads_nothing,
    opens_huge_documents,
    opens_the_largest_documents_that_are_followed,
    types_in_a_huge_line,
    sends_a_line_of_20_megabytes,
    sends_many_edits_at_once,
    sends_values_without_end,
    comes_and_goes,
    tells_of_changed_files_without_end,
)


def _open(text: str) -> dict[str, object]:
    item = {"uri": HOSTILE, "languageId": "python", "version": 1, "text": text}
    return {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}}


async def _repeat(window: Window, body: bytes) -> None:
    """Send the same message for ever, as fast as it is read."""
    head = b"Content-Length: %d\r\n\r\n" % len(body)
    pieces = [body[first : first + 65536] for first in range(0, len(body), 65536)]
    while True:
        window.writer.write(head)
        for piece in pieces:
            window.writer.write(piece)
            await window.writer.drain()
            await asyncio.sleep(0)


async def main(name: str) -> None:
    """Be hostile until the process is ended; a host that disconnects is found again."""
    attack = next(attack for attack in ATTACKS if attack.__name__ == name)
    print("begins", flush=True)  # noqa: T201 - for who waits for it
    while True:
        with suppress(OSError):
            await attack(functools.partial(window_at_host, os.environ))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
