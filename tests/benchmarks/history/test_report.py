"""Figures, and a screen that shows hostile text as text."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lsp_server.scripted_typing.screen import ScreenLog
from tests.benchmarks.history import block_typing
from tests.benchmarks.history.block_typing import SeenSuggestion, TypedBlock
from tests.benchmarks.history.blocks import Block
from tests.benchmarks.history.commit_replay import HistoryRecord, ReplayedCommit
from tests.benchmarks.history.git_objects import Commit, GitObjects
from tests.benchmarks.history.report import (
    best_suggestions,
    commit_line,
    report_of,
    show_report,
    totals,
    totals_by,
    worst_misses,
)

EVIL = '<script>alert(1)</script>"&\x1b[31m\u202e'
COMMIT = Commit("c" * 40, ("p" * 40,), EVIL)


def seen(text: str, *, num_saved: int = 0, num_wrong: int = 0) -> SeenSuggestion:
    return SeenSuggestion(EVIL, "c" * 40, EVIL, text, EVIL, num_saved, num_wrong, 5.0, (EVIL,))


def typed(path: str = "a.py", **counts: Any) -> TypedBlock:
    return TypedBlock(Block(COMMIT, path, EVIL * 9, 0, 9), **counts)


def test_totals_add_up() -> None:
    blocks = [
        typed(
            num_chars=80,
            num_keys=70,
            screen=ScreenLog(num_accepted=5, num_accepted_chars=30, num_keys_skipped=25),
            warm_ms=[1.0, 3.0],
            first_ms=[9],
        ),
        typed("b.go", num_chars=20, num_keys=30, screen=ScreenLog(num_wrong=7), warm_ms=[2.0]),
    ]
    found = totals(blocks)
    assert (found["share_not_typed"], found["num_keys_saved"], found["share_keys_saved"]) == (0.3, 20, 0.2)
    assert (found["shown_wrong_per_100"], found["warm_ms"]["p50"], found["first_ms"]["count"]) == (
        7.0,
        2.0,
        1,
    )
    by_language = totals_by(lambda one: one.block.language, blocks)
    assert [(name, group["num_chars"]) for name, group in by_language.items()] == [("python", 80), ("go", 20)]
    assert totals([])["share_not_typed"] == 0.0


def test_examples_are_the_extremes_each_once() -> None:
    suggestions = [seen("one", num_saved=9), seen("one", num_saved=8), seen("two", num_saved=4)]
    misses = [seen("bad", num_wrong=5), seen("worse", num_wrong=50), seen("half", num_saved=6, num_wrong=99)]
    blocks = [typed(suggestions=suggestions), typed(suggestions=misses)]
    assert [(one["text"], one["num_saved"]) for one in best_suggestions(blocks)] == [
        ("one", 9),
        ("half", 6),
        ("two", 4),
    ]
    assert [one["text"] for one in worst_misses(blocks)] == ["worse", "bad"]


@pytest.mark.parametrize("num_chars", [0, 18])
def test_a_commit_s_subject_shows_no_secret(num_chars: int) -> None:
    commit = ReplayedCommit(Commit("c" * 40, (), 'Set password = "tulip"'), [typed(num_chars=num_chars)], 0)
    assert "tulip" not in commit_line(commit)


def test_a_suggestion_is_kept_without_a_secret_that_the_lines_above_name() -> None:
    written = "kind: Secret\ndata:\n  a: dHVsaXAx\n"
    at = written.index("dHVs")
    typist = SimpleNamespace(
        buffer=SimpleNamespace(left=written[:at]),
        plan=SimpleNamespace(text=written, end=len(written)),
        offset=at,
    )
    answer = SimpleNamespace(suggestion=SimpleNamespace(text="dHVsaXAx\n"), why={}, ms=1.0)
    found = block_typing._seen(Block(COMMIT, "a.yaml", written, 0, len(written)), typist, answer, 1, 0)
    assert "dHVsaXAx" not in f"{found.before}{found.text}{found.wanted}"


@pytest.fixture
def record() -> HistoryRecord:
    found = HistoryRecord(GitObjects(Path("/somewhere/<b>name"), bool), EVIL, num_chosen=2)
    suggestions = [seen(EVIL, num_saved=9), seen("x" + EVIL, num_wrong=9)]
    block = typed(EVIL + ".py", num_chars=9, num_keys=9, warm_ms=[5.0], first_ms=[70.0])
    block.suggestions, block.screen = suggestions, ScreenLog(num_accepted_chars=4)
    found.replayed = [ReplayedCommit(COMMIT, [block], 0), ReplayedCommit(COMMIT, [], 0)]
    found.left_out[EVIL] = 3
    return found


def test_the_screen_is_one_screen(record: HistoryRecord, capsys: pytest.CaptureFixture[str]) -> None:
    show_report(report_of(record))
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 40
    assert "44.4% of 9 characters" in shown
    assert "no time" in commit_line(record.replayed[1])
