"""Messages of any size are parsed as JSON is, or in parts, and never hold others up for long."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lsp_server.app import SWITCH_INTERVAL_S
from lsp_server.protocol import parsing
from lsp_server.protocol.parsing import MAX_CHANGES, MAX_QUICK_BYTES, Unparsed, parse


@pytest.mark.parametrize("is_patient", [False, True])
@pytest.mark.parametrize(
    "body",
    [b"{}", b"[1, 2.5e3, -1, null, true, false]", b'"x"', b"7", b" {} ",
     b'{"a": {"b": ["\\ud83d\\ude00 \xc3\xa9\\n", "\\ud83d"]}}'],
)  # fmt: skip
def test_values_are_what_json_says(body: bytes, is_patient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_QUICK_BYTES", 0 if is_patient else 1000)
    assert list(parse(body)) == [json.loads(body)]


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a": "x', b"[" * 300_000, b"\xff", b"1" * 10_000, b'{"a" 1}', b"{} {}"]
)
@pytest.mark.parametrize("is_patient", [False, True])
def test_what_is_no_json_says_so(body: bytes, is_patient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_QUICK_BYTES", 0 if is_patient else 1_000_000)
    (value,) = parse(body)
    assert isinstance(value, Unparsed)


def test_long_lists_of_edits_come_in_parts() -> None:
    name, method = "contentChanges", "textDocument/didChange"
    changes = [{"text": str(number)} for number in range(3 * MAX_CHANGES + 5)]
    message = {"jsonrpc": "2.0", "method": method, "params": {name: changes, "textDocument": {"uri": "a"}}}
    parts = list(parse(json.dumps(message).encode()))
    assert [len(part["params"][name]) for part in parts] == [MAX_CHANGES] * 3 + [5]
    assert [change for part in parts for change in part["params"][name]] == changes
    assert all({**part, "params": {**part["params"], name: changes}} == message for part in parts)


@pytest.mark.parametrize(
    "message", [{"method": ["x"]}, {"method": "textDocument/didChange", "params": 1}, [1], 1]
)
def test_odd_shapes_pass_through(message: Any) -> None:
    assert list(parse(json.dumps(message).encode())) == [message]


@pytest.fixture
def _quick_switches() -> Iterator[None]:
    """Threads take turns as in the server."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    yield
    sys.setswitchinterval(before_s)


@pytest.mark.usefixtures("_quick_switches")
@pytest.mark.parametrize(
    ("value", "num_values"),
    [({"b": ["x", None]}, 60_000), ([1, 2], 80_000), (1.5, 240_000), (-7, 240_000)],
    ids=str,
)
def test_a_large_message_lets_others_run(value: Any, num_values: int) -> None:
    """While a message of nearly as many values as are taken is parsed, another thread gets its turn."""
    body = json.dumps({"a": [value] * num_values}).encode()
    assert len(body) > MAX_QUICK_BYTES
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(parse(body)), daemon=True)
    num_turns = 0
    thread.start()
    while not found:
        time.sleep(0.0005)
        num_turns += 1
    assert found == [{"a": [value] * num_values}]
    assert num_turns > 5


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":['])
def test_a_large_message_that_nests_deeply_is_refused(opening: bytes) -> None:
    body = opening * 80_000 + b'"' + b" " * MAX_QUICK_BYTES
    (value,) = parse(body)
    assert isinstance(value, Unparsed)
