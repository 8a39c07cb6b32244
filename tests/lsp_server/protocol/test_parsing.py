"""Messages of any size are parsed as JSON is, or in parts, and never hold others up for long."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import Any

import pytest

from lsp_server.protocol import parsing
from lsp_server.protocol.parsing import CUT, MAX_CHANGES, Unparsed, cut_long_strings, parse


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


def test_what_is_long_beside_long_strings_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_STRING_BYTES", 40)
    monkeypatch.setattr(parsing, "MAX_WHOLE_BYTES", 400)
    assert list(parse(json.dumps(["x" * 1000]).encode())) == [[CUT]]
    (value,) = parse(json.dumps(["x" * 30] * 20).encode())
    assert isinstance(value, Unparsed)


def test_long_strings_are_cut_wherever_they_stand_and_all_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_STRING_BYTES", 40)
    chance = random.Random(1)  # noqa: S311 - a test's choices
    for _ in range(300):
        alphabet = ['"', "\\", "a", "\n", "é", "{", ",", ":"]
        texts = ["".join(chance.choices(alphabet, k=chance.choice([0, 1, 5, 100]))) for _ in range(6)]
        message = {"a": texts[0], texts[1][:5]: [texts[2], {"text": texts[3]}], "z": texts[4:]}

        def cut(value: Any) -> Any:
            match value:
                case str():
                    return CUT if len(json.dumps(value)) - 1 > 40 else value
                case list():
                    return [cut(item) for item in value]
                case dict():
                    return {key: cut(item) for key, item in value.items()}
            raise TypeError(value)

        assert json.loads(cut_long_strings(json.dumps(message).encode())) == cut(message)


@pytest.mark.parametrize(
    "body", [b'"' + b"x" * 100, b"x" * 100, b'"' + b"\\" * 100, b'{"a": "' + b'\\"' * 50]
)
def test_what_never_ends_is_left_as_it_is(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_STRING_BYTES", 40)
    assert cut_long_strings(body) == body


@pytest.mark.parametrize(
    ("method", "name"),
    [("textDocument/didChange", "contentChanges"), ("workspace/didChangeWatchedFiles", "changes")],
)
def test_long_lists_of_changes_come_in_parts(method: str, name: str) -> None:
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


def test_a_large_message_lets_others_run() -> None:
    """While 2 MB of small values are parsed on one thread, another one gets its turn many times."""
    body = json.dumps({"a": [{"b": [1, "x", None]} for _ in range(60_000)]}).encode()
    is_done = threading.Event()
    thread = threading.Thread(target=lambda: (list(parse(body)), is_done.set()), daemon=True)
    num_turns = 0
    thread.start()
    while not is_done.is_set():
        time.sleep(0.001)
        num_turns += 1
    assert num_turns > 20


@pytest.mark.parametrize("value", [[1], {"a": 1}, "x", []])
def test_a_message_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.setattr(parsing, "MAX_QUICK_BYTES", 10)
    monkeypatch.setattr(parsing, "MAX_VALUES", 1_000)
    few, many = ({"params": [value] * number} for number in (400, 1_001))
    assert list(parse(json.dumps(few).encode())) == [few]
    (refused,) = parse(json.dumps(many).encode())
    assert refused == Unparsed("it holds more than 1,000 values")
