"""The keystroke benchmark: how runs become figures, how a person types with llama.vim, and the scoreboard."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from completion_engine.config import DEFAULT_TARGET
from completion_engine.errors import MachineError, UserError
from completion_engine.models import ModelStore
from lsp_server.scripted_typing.screen import Buffer
from lsp_server.scripted_typing.typing_plan import TypingPlan, plan_typing
from tests.benchmarks.command_line import app_of
from tests.benchmarks.keystrokes.__main__ import keystrokes
from tests.benchmarks.keystrokes.figures import COLUMNS, figures_of, markdown, milliseconds, table_row
from tests.benchmarks.keystrokes.file_run import FileRun, Watcher, type_with_llama_vim
from tests.benchmarks.keystrokes.in_neovim import keys_between
from tests.benchmarks.keystrokes.llama_server import PART, PEERS, PROGRAM, LlamaServer, running_llama_server
from tests.benchmarks.keystrokes.measure import (
    SLIPSTREAM,
    SYSTEMS,
    KeystrokeOptions,
    TypedFile,
    measure,
    type_in_neovim,
    type_with_slipstream,
    visited_files,
)
from tests.benchmarks.keystrokes.results import read_results, write_line
from tests.benchmarks.keystrokes.vim_client import LlamaVim
from tests.benchmarks.keystrokes.vim_context import Cursor
from tests.benchmarks.peers.llama import gguf_of
from tests.parts import MissingError

TEXT = "def area(width, height):\n    return width * height\n"


def a_run(**changed: Any) -> FileRun:
    given: dict[str, Any] = {
        "system": "A", "file": "f", "num_chars": 50, "num_not_typed": 10, "num_wrong": 5, "num_accepted": 1,
        "num_late": 1, "first_ms": 300.0, "shown_ms": (20.0, 90.0, 400.0), "empty_ms": (10.0,),
    }  # fmt: skip
    return FileRun(**{**given, **changed})


def test_a_late_key_counts_in_every_share_and_percentile() -> None:
    found = figures_of([a_run()])
    assert found.num_keys == 5
    assert found.p50_ms == 90.0
    assert math.isinf(found.p95_ms)
    assert (found.share_answered_100, found.share_answered_500) == (0.6, 0.8)
    assert (found.share_shown_100, found.share_shown_500) == (0.4, 0.6)
    assert (found.share_not_typed, found.wrong_per_100) == (0.2, 10.0)


def test_files_are_weighed_by_their_keys_and_characters() -> None:
    whole = a_run(num_chars=150, num_not_typed=90, num_wrong=0, num_late=0, first_ms=None)
    found = figures_of([a_run(), whole, a_run(first_ms=100.0)])
    assert found.share_not_typed == 110 / 250
    assert found.num_keys == 14
    assert found.first_ms == 300.0


def test_a_time_that_did_not_come_is_told_in_words_and_is_null_in_json() -> None:
    found = figures_of([a_run(num_late=50, first_ms=None)])
    assert table_row("A", found)[1:3] == ("after the next key",) * 2
    assert milliseconds(12.4) == "12 ms"
    assert found.as_dict()["first_ms"] is None
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["num_keys"] == 54


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_line(path, a_run().as_dict())
    write_line(path, {"bench": "keystrokes", "processor": "P"})
    assert read_results(path) == ([a_run()], {"bench": "keystrokes", "processor": "P"})
    path.write_text("{")
    with pytest.raises(UserError, match="holds no results"):
        read_results(path)


def a_plan() -> TypingPlan:
    """Typing the function's body without typing errors; the user accepts a right suggestion."""
    start = TEXT.index("    return") + 4
    plans = (plan_typing(TEXT, start=start, end=len(TEXT), seed=seed) for seed in range(5000))
    return next(
        plan
        for plan in plans
        if all(stroke.kind == "type" for stroke in plan.strokes) and plan.strokes[1].mood < 0.5
    )


async def typed(answers: Mapping[str, str], pace_ms: float = 10.0) -> FileRun:
    def infill(body: Mapping[str, Any]) -> dict[str, Any]:
        return {"content": answers.get(body["prompt"], "")}

    watcher, plan = Watcher(), a_plan()
    found = await type_with_llama_vim(LlamaVim(infill, "f.py"), plan, pace_ms, watcher)
    return watcher.run_of("llama.vim", "f.py", plan, found)


async def test_a_right_suggestion_is_accepted_and_its_characters_are_not_typed() -> None:
    found = await typed({"    r": "eturn width * height\n"})
    assert found.num_not_typed == len("eturn width * height")
    assert (found.num_accepted, found.num_wrong, found.num_late) == (1, 0, 0)
    assert found.num_keys == 3  # the first letter, the acceptance, the line end
    assert found.first_ms is not None
    assert len(found.shown_ms) == 1


async def test_a_wrong_suggestion_is_counted_once_and_typed_over() -> None:
    found = await typed({"    r": "aise\n"})
    assert (found.num_not_typed, found.num_accepted, found.num_wrong) == (0, 0, len("aise"))
    assert found.num_keys == len("return width * height\n")


async def test_a_slow_program_is_late() -> None:
    def slow(_body: Mapping[str, Any]) -> dict[str, Any]:
        time.sleep(0.2)
        return {"content": "nothing like it"}

    watcher, plan = Watcher(), a_plan()
    answers = await type_with_llama_vim(LlamaVim(slow, "f.py"), plan, 1.0, watcher)
    found = watcher.run_of("llama.vim", "f.py", plan, answers)
    assert found.num_late == found.num_keys
    assert found.first_ms is None
    assert found.num_wrong == 0  # nothing was on the screen


async def test_slipstream_is_typed_through_its_real_server(tiny_model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(TEXT)
    file = TypedFile(tmp_path, "shapes.py", plan_typing(TEXT, start=25, end=45, seed=1))
    options = KeystrokeOptions(str(tiny_model_dir), [SLIPSTREAM], pace_ms=50.0)
    found = await type_with_slipstream(file, {"target": str(tiny_model_dir), "device": "cpu"}, options)
    assert found.system == SLIPSTREAM
    assert found.file == f"{tmp_path.name}/shapes.py"
    assert found.num_keys > 0
    assert found.num_chars == 20


def test_the_files_beside_the_typed_one_are_visited(tmp_path: Path) -> None:
    for name in "fedcba":
        (tmp_path / f"{name}.py").write_text("x = 1\n" * 50)
    (tmp_path / "tiny.py").write_text("")
    file = TypedFile(tmp_path, "b.py", a_plan())
    assert [path.name for path in visited_files(file)] == ["a.py", "c.py", "d.py", "e.py"]


def test_a_missing_llama_server_is_named_with_the_command_that_sets_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_parts: object, part: str, _program: str) -> Path:
        raise MissingError(f"{part} is not set up; run: make llama-server")

    monkeypatch.setattr(type(PEERS), "find", missing)
    monkeypatch.setattr("tests.benchmarks.keystrokes.measure.gguf_of", lambda _target: Path("m.gguf"))
    with pytest.raises(UserError, match="is not set up") as caught:
        measure([], KeystrokeOptions("m", SYSTEMS), lambda *_: None, lambda _run: None)
    assert "make llama-server" in caught.value.advice


def test_a_llama_server_that_ends_at_once_is_told_with_its_last_line(tmp_path: Path) -> None:
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\necho no such model\nexit 1\n")
    program.chmod(0o755)
    with (
        pytest.raises(MachineError, match="no such model"),
        running_llama_server(program, tmp_path / "model.gguf"),
    ):
        pass


@pytest.fixture(scope="module")
def llama_server() -> Iterator[LlamaServer]:
    try:
        program = PEERS.find(PART, PROGRAM)
    except MissingError as error:
        pytest.skip(str(error))
    model = gguf_of(DEFAULT_TARGET, ModelStore())
    if isinstance(model, str):
        pytest.skip(f"{model}; run: slipstream models pull {DEFAULT_TARGET}")
    with running_llama_server(program, model) as server:
        yield server


async def test_the_real_llama_server_completes_what_llama_vim_asks(llama_server: LlamaServer) -> None:
    lines = ["def area(width, height):", "    return width * ", "", "print(area(2, 3))"]
    client = LlamaVim(llama_server.infill, "shapes.py", stop=["\n"])
    client.moved(lines, Cursor(1, len(lines[1])))
    await client.finish()
    assert client.hint is not None
    assert client.hint.text.startswith("height")
    assert client.num_requests >= 1


def test_the_real_llama_server_says_which_request_it_cannot_read(llama_server: LlamaServer) -> None:
    with pytest.raises(MachineError, match="answered 4"):
        llama_server.infill({"input_prefix": 3})
    assert llama_server.version


def test_a_table_for_a_page_is_markdown() -> None:
    lines = markdown({"A": figures_of([a_run(num_late=0)])})
    assert lines[0].startswith("| program | answered: p50 | p95 |")
    assert lines[1] == "| " + " | ".join(["---"] * len(COLUMNS)) + " |"
    assert (
        lines[2]
        == "| A | 90 ms | 400 ms | 75% | 100% | 50% | 75% | 300 ms | 20% | 10 | 0 | 0% | 0.0 | 0 | 4 |"
    )


def test_a_table_of_result_files_tells_of_a_busy_machine(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_line(path, a_run().as_dict())
    facts = {"target": "m", "num_cores": 2, "processor": "P"}
    for load, is_busy in ((0.1, False), (3.5, True)):
        write_line(path, {**facts, "load_before": load})
        shown = CliRunner().invoke(app_of(keystrokes), ["--show", str(path)])
        assert shown.exit_code == 0, shown.output
        assert ("do not compare" in shown.output) is is_busy


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        (("a", "z"), ("ab", "z"), "b"),
        (("ab", "z"), ("a", "z"), "<BS>"),
        (("f", ""), ("f(", ")"), "()<Left>"),
        (("f(", "\n)x"), ("f()", "x"), "<Del><Del>)"),
        (("if {", "}"), ("if {\n  ", "\n}"), "<CR><Space><Space><CR><Left>"),
        (("a", "b"), ("a<\\|\t", "b"), "<lt><Bslash><Bar><C-v><Tab>"),
    ],
)
def test_keys_make_the_change_of_the_buffer(
    before: tuple[str, str], after: tuple[str, str], keys: str
) -> None:
    assert keys_between(*before, Buffer(*after)) == keys


def a_typed_file(root: Path) -> TypedFile:
    """The function's body is typed, above other code."""
    text = f"{TEXT}\n\nprint(area(2, 3))\n"
    (root / "shapes.py").write_text(text)
    plan = plan_typing(text, start=text.index("    return"), end=len(TEXT), seed=1)
    return TypedFile(root, "shapes.py", plan)


async def test_slipstream_is_typed_in_a_real_neovim(tiny_model_dir: Path, tmp_path: Path) -> None:
    file = a_typed_file(tmp_path)
    options = KeystrokeOptions(str(tiny_model_dir), pace_ms=50.0)
    try:
        found = await type_in_neovim(file, "Slipstream in Neovim", options, None)
    except MissingError as error:
        pytest.skip(str(error))
    assert found.num_keys and found.num_keys + found.num_not_typed > 20
    assert found.empty_ms == ()  # a screen does not show that nothing will come


async def test_the_real_llama_vim_shows_what_the_real_server_answers(
    llama_server: LlamaServer, tmp_path: Path
) -> None:
    if not os.environ.get("SLIPSTREAM_CLIENTS"):
        pytest.skip("SLIPSTREAM_CLIENTS names no folder with llama.vim")
    file = a_typed_file(tmp_path)
    options = KeystrokeOptions(DEFAULT_TARGET, pace_ms=1000.0)
    found = await type_in_neovim(file, "llama.vim in Neovim", options, llama_server)
    assert found.shown_ms
    assert found.num_not_typed > 0


@pytest.mark.real_model
async def test_the_real_llama_vim_shows_what_slipstream_answers_over_http(
    real_model_dir: Path, tmp_path: Path
) -> None:
    if not os.environ.get("SLIPSTREAM_CLIENTS"):
        pytest.skip("SLIPSTREAM_CLIENTS names no folder with llama.vim")
    options = KeystrokeOptions(str(real_model_dir), pace_ms=1000.0)
    try:
        found = await type_in_neovim(
            a_typed_file(tmp_path), "llama.vim with Slipstream in Neovim", options, None
        )
    except MissingError as error:
        pytest.skip(str(error))
    assert found.shown_ms
    assert found.num_not_typed > 0
