"""The measurements measure: they see a difference where there is one, and draw the same prompts again."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.loading.backends import choose_precision
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.commands.local_engine import Sample
from tests.benchmarks.accepting.holes import measure_accepting
from tests.benchmarks.cold.answers import ColdAnswer, one_of_each_file, summary
from tests.benchmarks.command_line import Dtype
from tests.benchmarks.infilling.pass_rate import OURS, measure_infilling
from tests.benchmarks.infilling.pass_rate import PLAIN as PLAIN_TEXT
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.judging import is_whole_as_far, judge, parses_as_well
from tests.benchmarks.judging import summary as judged
from tests.benchmarks.quality.results import QualityResults
from tests.benchmarks.quality.run import (
    PLAIN,
    TYPING,
    USUAL,
    WHOLE,
    QualityRun,
    named_way,
    table_rows,
    way_without,
)
from tests.benchmarks.samples import InfillingTask, Position, from_folder, from_tasks, interleaved

SOURCES = Path(__file__).parents[2] / "completion_engine"


def engine_of(folder: Path, **options: object) -> CompletionEngine:
    config = EngineConfig(target=str(folder), prefix_chars=400, suffix_chars=200, **options)  # type: ignore[arg-type]
    return CompletionEngine(config, load_language_model(folder, "cpu", "auto", 512), load_tokenizer(folder))


def test_the_same_seed_draws_the_same_positions() -> None:
    assert from_folder(SOURCES, 5, seed=2) == from_folder(SOURCES, 5, seed=2)
    assert from_folder(SOURCES, 5, seed=2) != from_folder(SOURCES, 5, seed=3)


def test_a_position_lacks_just_the_rest_of_its_line() -> None:
    for sample in from_folder(SOURCES, 20):
        path = SOURCES / sample.name.split(":")[0]
        assert sample.prefix + sample.expected + sample.suffix == path.read_text(encoding="utf-8")
        assert sample.suffix.startswith("\n")
        assert sample.expected


def test_a_folder_without_sources_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No source files"):
        from_folder(tmp_path, 1)


def test_infilling_tasks_get_a_line_of_their_own(tmp_path: Path) -> None:
    task = {
        "task_id": "t/1",
        "prompt": "def f():\n",
        "suffix": "    return x\n",
        "canonical_solution": "    x = 1\n",
    }
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(task).encode() + b"\n"))
    assert from_tasks(path) == [Sample("t/1", "t/1", "python", "def f():\n", "\n    return x\n", "    x = 1")]


@pytest.mark.parametrize("content", [b"", b"not gzip", gzip.compress(b'{"task_id": 1}\n', mtime=0)])
def test_a_file_without_tasks_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(content)
    if content:
        with pytest.raises(UserError, match="no infilling tasks"):
            from_tasks(path)
    else:
        assert from_tasks(path) == []


def test_groups_take_turns() -> None:
    a, b = (
        [Sample(f"{name}{at}", "", "", "", "", "") for at in range(num)] for name, num in (("a", 3), ("b", 1))
    )
    assert [sample.name for sample in interleaved(a, b)] == ["a0", "b0", "a1", "a2"]


SUM = Sample("a", "a.py", "python", "def f(a, b):\n    return sum", "\n\n\nf(1, 2)\n", "(a, b)")


def test_only_the_first_line_of_an_answer_is_compared() -> None:
    found = [judge(SUM, text, num_prompt_tokens=9) for text in ("(a, b)  \n    more(", "(a, c)", "")]
    assert [(one.is_exact, one.is_shown) for one in found] == [(True, True), (False, True), (False, False)]
    shown = judged(found)
    assert shown["similarity"] == pytest.approx((1 + 5 / 6 + 0) / 3, abs=1e-3)
    assert (shown["parses"], shown["prompt_tokens"]) == (0.5, 9)


@pytest.mark.parametrize(
    ("text", "is_as_good"),
    [("(a, b)", True), ("", True), ("(b)  # whatever", True), ("(a, b", False), ("(a, b)\n)", False)],
)
def test_a_suggestion_may_leave_no_more_errors_than_what_stood_there(text: str, is_as_good: bool) -> None:
    assert parses_as_well(SUM, text) == is_as_good


@pytest.mark.parametrize(
    ("text", "is_as_good"), [("_of(a)", True), ("_of(", True), ("_of[a", True), ("(xy", False)]
)
def test_a_suggestion_may_end_where_what_stood_there_is_not_whole_either(text: str, is_as_good: bool) -> None:
    assert is_whole_as_far(replace(SUM, expected="_of(a, b)"), text) == is_as_good


def test_each_way_of_asking_is_measured_at_each_position_and_context_is_what_differs(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    project = tmp_path / "library"
    project.mkdir()
    (project / "shelf.py").write_text("def put_on_shelf(book: str, place: int) -> bool:\n    return True\n")
    use = "from shelf import put_on_shelf\n\n\ndef tidy(book: str) -> bool:\n    return put_on_shelf"
    sample = Sample("a", "library/tidy.py", "python", use, "\n", "(book, 1)")
    engine = engine_of(tiny_model_dir, context_tokens=120)
    left_out = ("similar", "context", "context+memory")
    ways = [PLAIN, TYPING, USUAL, *map(way_without, left_out), WHOLE]
    results = QualityResults(tmp_path / "results.jsonl")
    done: list[tuple[int, int]] = []
    positions = [Position("python", sample, tmp_path)] * 2
    QualityRun(engine, ways, results).measure(positions, lambda *counts: done.append(counts))
    assert done == [(1, 2), (2, 2)]
    assert [asked.way for asked in results.found] == [way.name for way in ways]
    tokens = {asked.way: found.num_prompt_tokens for asked, found in results.found.items()}
    assert tokens["with everything"] > tokens["without context"] + 10
    assert tokens["without context"] == tokens["without context and memory"]
    bits = {asked.way: found.num_bits for asked, found in results.found.items()}
    assert bits["by default"] == bits["by default, while typing"] > 0
    assert bits["by default"] != bits["without context"]
    assert len(table_rows(results)) == 2 * len(ways)  # rows of the language, and of all languages

    known = QualityResults(tmp_path / "results.jsonl")
    assert known.found == results.found
    nothing_is_left = QualityRun(engine, ways, known, until_s=0.0)
    nothing_is_left.measure(positions[:1], lambda *counts: done.append(counts))
    assert done[2:] == [(1, 1)]


def test_a_measurement_ends_in_time(tiny_model_dir: Path, tmp_path: Path) -> None:
    results = QualityResults()
    run = QualityRun(engine_of(tiny_model_dir), [WHOLE], results, until_s=0.0)
    run.measure([Position("python", SUM, tmp_path)], lambda *_: None)
    assert not results.found


def test_what_was_accepted_at_a_place_is_not_asked_again(tiny_model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "a.py").write_text("def f(a, b):\n    return sum(a, b)\n")
    position = Position("python", replace(SUM, document="library/a.py"), tmp_path)
    results = JsonLines()
    for _ in range(2):
        measure_accepting(engine_of(tiny_model_dir), [position], results, lambda *_: None)
    (found,) = results.objects
    assert (found["place"], found["language"]) == ("a", "python")
    assert 0 <= found["num_accepted"] <= 12


def test_a_task_is_passed_by_what_its_own_tests_accept(tiny_model_dir: Path) -> None:
    tasks = [
        InfillingTask(replace(SUM, name="any"), "f", "def check(candidate):\n    pass"),
        InfillingTask(replace(SUM, name="none"), "f", "def check(candidate):\n    assert False"),
    ]
    before = Sample("", "x.py", "python", "def f():\n    pass\n\n\n# ", "\n", "")
    results = JsonLines()
    for _ in range(2):
        measure_infilling(
            engine_of(tiny_model_dir),
            [replace(task, sample=replace(before, name=task.sample.name)) for task in tasks],
            results,
            lambda *_: None,
        )
    passed = {found["task"]: found["passed"] for found in results.objects}
    assert passed == {name: {OURS: name == "any", PLAIN_TEXT: name == "any"} for name in ("any", "none")}
    assert len(results.objects) == 2


def test_what_is_left_out_is_left_out_of_what_is_usual_for_a_language() -> None:
    assert "definitions" in WHOLE.ingredients_in("typescript")
    assert USUAL.ingredients_in("python") == WHOLE.ingredients_in("python")
    assert way_without("own").ingredients_in("typescript") == ("similar",)
    assert (USUAL.memory, way_without("memory").memory) == ("auto", "off")


def test_what_can_be_left_out_is_known() -> None:
    with pytest.raises(UserError, match="memry"):
        way_without("context+memry")


def test_some_ways_alone_can_be_asked() -> None:
    assert [named_way(name) for name in ("default", "typing")] == [USUAL, TYPING]
    with pytest.raises(UserError, match="fastest"):
        named_way("fastest")


def cold(text: str, ms: float = 1.0, **stats: object) -> ColdAnswer:
    sample = Sample("x", "x.py", "python", "", "", "(a, b)")
    known = {"finish_reason": "stop", "is_provisional": False, "target": "small", "num_prompt_tokens": 9}
    return ColdAnswer(sample, text, ms, {**known, **stats} if text else {}, "" if text else "unsure")


def test_cold_places_are_summed_up() -> None:
    found = summary(
        [
            cold("(a, b)", 20.0, is_provisional=True),
            cold("(a", 10.0, finish_reason="deadline"),
            cold("", 1500.0),
            cold("(a, b)\n", 30.0, target="large"),
        ]
    )
    assert (found["num_places"], found["share_answered"], found["exact"]) == (4, 0.75, 0.5)
    assert (found["ms_p50"], found["ms_max"]) == (20.0, 30.0)
    assert (found["share_whole"], found["share_provisional"]) == (0.667, 0.333)
    assert found["written_by"] == {"small": 2, "large": 1}
    assert found["rules"] == {"unsure": 1}


def test_each_file_is_asked_once() -> None:
    samples = [Sample(name, name[0], "", "", "", "") for name in ("a1", "b1", "a2")]
    assert [sample.name for sample in one_of_each_file(samples)] == ["a1", "b1"]


def test_the_help_names_every_dtype() -> None:
    (option,) = get_args(Dtype)[1:]
    with pytest.raises(UserError) as refused:
        choose_precision("no such dtype", torch.device("cpu"))
    known = set(re.findall(r"auto|[a-z]+\d+", refused.value.advice))
    assert len(known) > 2
    assert set(re.findall(r"auto|[a-z]+\d+", option.help)) == known
