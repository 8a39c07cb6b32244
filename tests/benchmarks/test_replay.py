"""Wrong text and cut text of a replay, and transformers at the same cursor positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from completion_engine.request import CompletionStats
from lsp_server.commands.player import Answer
from lsp_server.commands.replay import ReplayOptions
from lsp_server.scripted_typing.screen import ShownSuggestion
from tests.benchmarks.replay import transformers_baseline
from tests.benchmarks.replay.__main__ import replayed
from tests.benchmarks.replay.shown_wrong import ShownWrong, key_figures, num_left_of_line
from tests.faultless_typist import type_until

CALL = "result = total(values)\nreturn result"


@pytest.mark.parametrize(
    ("text", "num_left"),
    [("os", 0), ("o", 1), ("", 2), ("ox", 0), ("os\n", 0), ("os\n\n\nde", len("f total(values):"))],
)
def test_what_a_right_suggestion_leaves_of_its_line(text: str, num_left: int) -> None:
    typist = type_until("import os\n\n\ndef total(values):\n", len("import "))
    assert num_left_of_line(typist, ShownSuggestion(text, 0)) == num_left


@pytest.mark.parametrize(
    ("typed", "shown", "wrong"),
    [
        ("result", ShownSuggestion(" = total(values)", 0), (22, "")),
        ("result", ShownSuggestion(" = total(other)", 0), (15, "other)")),
        ("result ", ShownSuggestion("= total(other)", 0), (15, "other)")),
        ("result", ShownSuggestion(" + total", 0), (7, "+ total")),
        ("result = total(", ShownSuggestion("values)", 1), (22, "")),
        ("result = total(", ShownSuggestion("values", 0), (21, "")),
    ],
)
def test_what_a_suggestion_says_wrong_begins_where_the_file_differs(
    typed: str, shown: ShownSuggestion, wrong: tuple[int, str]
) -> None:
    assert type_until(CALL, len(typed)).wrong_part(shown) == wrong


def shown(finish: str = "stop", *, text: str = "x", is_first: bool = False) -> Answer:
    stats = CompletionStats(num_tokens=4)
    stats.finish_reason = finish
    suggestion = ShownSuggestion(text, 0) if text else None
    return Answer("shown" if text else "empty", 1.0, is_first, {"stats": stats.as_dict()}, suggestion)


def test_what_a_deadline_cut_of_warm_suggestions_is_counted() -> None:
    typist = type_until("import os\nreturn values\n", len("import "))
    answers = [
        shown(text="os\n"),
        shown(text="o"),  # a whole suggestion may end within a line
        shown("deadline", text="os\nreturn va"),
        shown("deadline", text="o"),
        shown("deadline", text="wrong"),
        shown("deadline", text="os"),  # a cut one may end with its line
        shown("deadline", text=""),
        shown("deadline", text="o", is_first=True),
    ]
    found = ShownWrong()
    for answer in answers:
        found.add(answer, typist)
    assert found.as_dict(40)["whole"] == {
        "share_whole": 0.3333,
        "num_cut": 4,
        "num_cut_within_right_line": 2,
        "num_chars_lost": len("lues") + len("s"),
    }
    assert (found.num_chars_wrong, found.as_dict(40)["shown_wrong_per_100"]) == (5, 12.5)


def test_a_wrong_part_that_stays_on_the_screen_is_counted_once() -> None:
    typist = type_until("import os\n", len("import "))
    found = ShownWrong()
    for text in ("other", "other", "os", "other"):
        found.add(shown(text=text), typist)
    assert found.num_chars_wrong == 2 * len("ther")


def test_keys_that_accept_suggestions_are_pressed_too() -> None:
    result = {"num_requests": 3, "num_accepted": 1, "num_partially_accepted": 1}
    assert key_figures(result, 20) == {
        "num_keys": 20,
        "share_keys_not_pressed": 0.95,
        "share_keys_spared": 0.85,
    }


async def test_transformers_is_timed_at_the_same_positions(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers_baseline, "SETTLE_S", 0.0)
    (tmp_path / "shapes.py").write_text(
        "class Square:\n    def __init__(self, side):\n        self.side = side\n\n"
        "    def area(self):\n        return self.side * self.side\n"
    )
    settings = {"target": str(tiny_model_dir), "device": "cpu"}
    options = ReplayOptions(30, settings=settings, has_index=False)
    report = await replayed([tmp_path / "shapes.py"], options, lambda *_: None, compare=True)
    assert report["compare"]["num_places"] > 0
    assert report["compare"]["transformers_ms"]["p50"] > 0
    assert report["num_keys"] > 0
    assert report["whole"]["share_whole"] <= 1
