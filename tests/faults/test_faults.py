"""Some of the faults of the table, and that no message of a window keeps the loop from the others."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from asyncio import events
from collections.abc import Callable
from typing import Any

import pytest

from lsp_server.workspace.documents import MAX_DOCUMENT_CHARS
from lsp_server.workspace.lines import MAX_LINE_CHARS, split_lines
from tests.faults import fairness
from tests.faults.table import FAULTS, check, framed, is_good
from tests.growth import NUM_ROUNDS, cpu_s
from tests.hosts import own_hosts
from tests.windows import insertion, one_window

# The others take longer; `python -m tests.faults table` has all.
QUICK = (
    "a library panics in a completion",
    "the engine's thread has a bug of its own",
    "a completion holds the interpreter",
    "the host is stopped and goes on",
    "the host crashes",
    "socket and lock are cleaned away",
    "a relay is killed in a message",
    "windows go at each step of the handshake",
    "HTTP clients go in the middle of answers",
    "300 HTTP clients leave at once",
    "the wall clock jumps by a day",
    "rename 1 of the index fails",
    "the model's file is cut short",
)

URI = "file:///hostile/a.py"


def opening(text: str) -> dict[str, Any]:
    item = {"uri": URI, "languageId": "python", "version": 1, "text": text}
    return {"method": "textDocument/didOpen", "params": {"textDocument": item}}


def changing(changes: list[dict[str, Any]]) -> dict[str, Any]:
    params = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": changes}
    return {"method": "textDocument/didChange", "params": params}


def watched(num_files: int) -> dict[str, Any]:
    changes = [{"uri": f"file:///hostile/{number}.py", "type": 2} for number in range(num_files)]
    return {"method": "workspace/didChangeWatchedFiles", "params": {"changes": changes}}


def hostile(name: str) -> list[dict[str, Any]]:
    """The messages of this name."""
    keys = [changing([insertion(0, 9, "y")])] * 20
    edits = [insertion(number % 1000, 0, "y") for number in range(20_000)]
    make: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "60 MB": lambda: [opening("x = 1\n" * 10_000_000)],
        "the largest that is followed": lambda: [opening("x = 12345\n" * (MAX_DOCUMENT_CHARS // 10))],
        "keys in the longest line": lambda: [opening("x" * (MAX_LINE_CHARS - 100)), *keys],
        "20 MB in a line": lambda: [opening("x" * 20_000_000)],
        "20,000 edits": lambda: [opening("x\n" * 1000), changing(edits)],
        "900,000 values": lambda: [{"method": "slipstream/x", "params": [[1, {"a": None}]] * 300_000}],
        "20,000 changed files": lambda: [watched(20_000)],
    }
    return make[name]()


NAMES = (
    "60 MB",
    "the largest that is followed",
    "keys in the longest line",
    "20 MB in a line",
    "20,000 edits",
    "900,000 values",
    "20,000 changed files",
)


@pytest.mark.parametrize("name", QUICK)
async def test_a_fault_costs_a_typing_window_no_more_than_the_table_allows(name: str) -> None:
    (fault,) = (fault for fault in FAULTS if fault.name == name)
    outcome = await check(fault)
    assert is_good(fault, outcome), outcome


async def test_each_key_of_the_measure_of_fairness_gets_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "KEYS_OF_ROUND", 12)
    delays = fairness.Delays()
    with own_hosts() as hosts:
        async with fairness.a_window(fairness.environment(hosts)) as window:
            await fairness.type_and_wait(window, hosts.only()["pid"], delays)
    assert len(delays.ms) == 12


def test_every_fault_has_a_name_of_its_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 40


@pytest.fixture(scope="module")
def document_s() -> float:
    """The processor seconds in which this machine splits the largest document into lines."""
    text = "x = 12345\n" * (MAX_DOCUMENT_CHARS // 10)
    return min(cpu_s(lambda: split_lines(text)) for _ in range(NUM_ROUNDS))


@pytest.mark.parametrize("name", NAMES)
async def test_no_message_keeps_the_loop_from_other_windows(
    name: str, monkeypatch: pytest.MonkeyPatch, document_s: float
) -> None:
    """Without bounds a turn of the loop takes ten times as long."""
    longest_s = []
    for _ in range(NUM_ROUNDS):
        longest_s.append(await longest_turn_s(name, monkeypatch))
        if longest_s[-1] < document_s:
            return
    pytest.fail(f"turns of {longest_s} seconds, where the largest document takes {document_s}")


async def longest_turn_s(name: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """Send these messages to a server; return the processor seconds of its loop's longest turn."""
    turns_s: list[float] = []
    run = events.Handle._run

    def measured(handle: events.Handle) -> None:
        turns_s.append(cpu_s(lambda: run(handle)))

    messages = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in hostile(name)]
    data = b"".join(map(framed, messages))
    async with one_window() as window:
        descriptor = os.dup(window.writer.get_extra_info("socket").fileno())
        with monkeypatch.context() as patch, socket.socket(fileno=descriptor) as connection:
            patch.setattr(events.Handle, "_run", measured)
            await asyncio.to_thread(send, connection, data)
            await window.request("slipstream/stats")
    return max(turns_s)


def send(connection: socket.socket, data: bytes) -> None:
    """All of it, on a socket that does not wait by itself."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[connection.send(rest) :]
        except BlockingIOError:
            time.sleep(0.001)
