"""The client that follows llama.vim: its windows, ghost text, cache, ring and requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from completion_engine.errors import MachineError
from tests.benchmarks.keystrokes.vim_client import LlamaVim
from tests.benchmarks.keystrokes.vim_context import Cursor, hint_of, local_context
from tests.benchmarks.keystrokes.vim_ring import NUM_CHUNKS, Ring, similarity
from tests.waiting import until

FILE = ["import os", "", "def area(a, b):", "    return a * b", "", "print(area(2, 3))"]


def test_a_request_has_the_line_up_to_the_cursor_between_both_windows() -> None:
    found = local_context(FILE, Cursor(3, 10))
    assert found.prefix == "import os\n\ndef area(a, b):\n"
    assert found.middle == "    return"
    assert found.suffix == " a * b\n\nprint(area(2, 3))\n"
    assert found.num_indent == 4


def test_the_windows_hold_256_and_64_lines() -> None:
    lines = [str(number) for number in range(1000)]
    found = local_context(lines, Cursor(500, 3))
    assert found.prefix.split("\n")[:-1] == lines[244:500]
    assert found.suffix.split("\n") == ["", *lines[501:565], ""]


def test_a_blank_line_is_requested_from_its_beginning() -> None:
    found = local_context(["def f():", "    ", "x"], Cursor(1, 4))
    assert (found.middle, found.suffix, found.num_indent) == ("", "\nx\n", 0)


def test_the_request_ahead_has_the_shown_text_in_its_window() -> None:
    found = local_context(["def f():", "    y", "x"], Cursor(1, 5), ("es = 1", "    no = 2", "    z"), 4)
    assert found.prefix == "def f():\n    yes = 1\n    no = 2\n"
    assert (found.middle, found.suffix, found.num_indent) == ("    z", "\nx\n", 4)


@pytest.mark.parametrize(
    ("content", "column", "text", "is_acceptable"),
    [
        ("_x = 1\n", 1, "_x = 1", True),
        ("_x = 1\nb = 2", 1, "_x = 1\nb = 2", True),
        ("", 1, "", False),
        ("\n\n", 1, "", False),
        ("fter", 1, "", False),  # the line below again
        ("fter\nlas", 1, "", False),  # and the beginning of the one below that
        ("fter\nmore", 1, "fter\nmore", True),
    ],
)
def test_what_is_shown_leaves_out_what_stands_below(
    content: str, column: int, text: str, is_acceptable: bool
) -> None:
    found = hint_of(content, ["a", "", "after", "last"], Cursor(0, column))
    assert (found.text, found.is_acceptable) == (text, is_acceptable)


def test_on_a_blank_line_the_indentation_that_is_there_is_not_shown_again() -> None:
    found = hint_of("    return 1\n    x", ["def f():", "    ", "y"], Cursor(1, 4))
    assert found.text == "return 1\n    x"


def test_ghost_text_ends_before_the_text_right_of_the_cursor() -> None:
    found = hint_of("value", ["call()", "x"], Cursor(0, 5))
    assert (found.text, found.lines) == ("value", ("value)",))


def test_similarity_is_the_share_of_common_words() -> None:
    assert similarity(["a b c"], ["a b c"]) == 1.0
    assert similarity(["a b"], ["c d"]) == 0.0
    assert similarity(["a b"], ["a d"]) == 0.5


def test_the_ring_holds_16_chunks_and_drops_those_like_the_text_at_the_cursor() -> None:
    ring = Ring()
    for number in range(NUM_CHUNKS + 3):
        ring.pick([f"{number}a", f"{number}b", f"{number}c"], "f.py", evicts=True)
        assert ring.use_next()
    assert [chunk.lines[0] for chunk in ring.chunks] == [f"{number}a" for number in range(3, 19)]
    ring.drop_near(["5a 5b", "5c"], 0)
    assert len(ring.chunks) == NUM_CHUNKS - 1
    assert not ring.use_next()


def test_the_ring_takes_no_tiny_chunk_and_no_chunk_twice() -> None:
    ring = Ring()
    ring.pick(["a", "b"], "f.py", evicts=True)
    assert not ring.queued
    for _ in range(2):
        ring.pick(["a", "b", "c"], "f.py", evicts=True)
    assert len(ring.queued) == 1


def test_a_long_text_gives_a_part_of_33_lines() -> None:
    ring = Ring()
    ring.pick([f"word{number}" for number in range(200)], "f.py", evicts=True)
    assert len(ring.queued[0].lines) == 33


class ScriptedServer:
    """Answers a request with what `answers` has for the text before the cursor, once it is let go."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.bodies: list[Mapping[str, Any]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._answers = answers

    def __call__(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        assert self.may_answer.wait(10)
        return {"content": self._answers.get(body["prompt"], "")}


async def test_a_suggestion_is_shown_when_it_arrives_and_stays_while_it_is_typed_along() -> None:
    server = ScriptedServer({"ret": "urn x"})
    editor = LlamaVim(server, "f.py")
    editor.moved(["ret"], Cursor(0, 3))
    assert editor.shown_at is None
    await until(lambda: editor.shown_at is not None)
    editor.moved(["retu"], Cursor(0, 4))
    assert editor.hint is not None
    assert editor.hint.text == "rn x"
    assert editor.shown_at is not None
    editor.moved(["reto"], Cursor(0, 4))
    assert editor.shown_at is None
    await editor.finish()


async def test_an_answer_is_found_again_when_the_window_has_moved_down() -> None:
    above = [str(number) for number in range(300)]
    editor = LlamaVim(ScriptedServer({"x": "y\nz"}), "f.py")
    editor.moved([*above, "x"], Cursor(300, 1))
    await until(lambda: editor.shown_at is not None)
    editor.moved([*above, "xy", ""], Cursor(301, 0))
    assert editor.hint is not None
    assert editor.hint.text == "z"
    await editor.finish()


async def test_the_request_is_llama_vims_and_what_follows_is_asked_for_ahead() -> None:
    server = ScriptedServer({"ret": "urn x"})
    editor = LlamaVim(server, "f.py", stop=["\n"])
    editor.moved(["ret", "y"], Cursor(0, 3))
    await until(lambda: len(server.bodies) == 2)
    first, ahead = server.bodies
    assert {name: first[name] for name in ("n_predict", "t_max_prompt_ms", "cache_prompt", "id_slot")} == {
        "n_predict": 128,
        "t_max_prompt_ms": 500,
        "cache_prompt": True,
        "id_slot": 0,
    }
    assert (first["input_prefix"], first["input_suffix"], first["stop"]) == ("\n", "\ny\n", ["\n"])
    assert first["samplers"] == ["top_k", "top_p", "infill"]
    assert (first["t_max_predict_ms"], ahead["t_max_predict_ms"]) == (250, 1000)
    assert ahead["prompt"] == "return x"
    await editor.finish()


async def test_one_request_runs_at_a_time_and_the_next_key_is_asked_for_later() -> None:
    server = ScriptedServer({"ab": "c"})
    server.may_answer.clear()
    editor = LlamaVim(server, "f.py")
    editor.moved(["a"], Cursor(0, 1))
    editor.moved(["ab"], Cursor(0, 2))
    await asyncio.sleep(0.25)
    assert [body["prompt"] for body in server.bodies] == ["a"]
    assert (editor.shown_at, editor.settled_at) == (None, None)
    server.may_answer.set()
    await until(lambda: editor.shown_at is not None)
    assert [body["prompt"] for body in server.bodies][:2] == ["a", "ab"]
    await editor.finish()


async def test_an_empty_answer_settles_that_nothing_is_shown() -> None:
    editor = LlamaVim(ScriptedServer({}), "f.py")
    editor.moved(["a"], Cursor(0, 1))
    await until(lambda: editor.settled_at is not None)
    assert editor.shown_at is None
    await editor.finish()


async def test_nothing_is_requested_before_more_than_eight_characters() -> None:
    server = ScriptedServer({})
    editor = LlamaVim(server, "f.py")
    editor.moved(["a" + "b" * 9], Cursor(0, 1))
    assert editor.settled_at is not None
    await editor.finish()
    assert not server.bodies


async def test_visited_files_are_sent_as_extra_context() -> None:
    server = ScriptedServer({})
    editor = LlamaVim(server, "f.py")
    await editor.visit(["one", "two", "three"], 0, "other.py")
    editor.moved(["a"], Cursor(0, 1))
    await editor.finish()
    ring, request = server.bodies[:2]
    assert ring["n_predict"] == 0
    assert request["input_extra"] == ring["input_extra"]
    assert request["input_extra"] == [{"text": "one\ntwo\nthree\n", "filename": "other.py"}]


async def test_a_server_that_fails_ends_the_typing() -> None:
    def fail(_body: Mapping[str, Any]) -> dict[str, Any]:
        raise MachineError("it is gone")

    editor = LlamaVim(fail, "f.py")
    editor.moved(["a"], Cursor(0, 1))
    with pytest.raises(MachineError, match="it is gone"):
        await editor.finish()
