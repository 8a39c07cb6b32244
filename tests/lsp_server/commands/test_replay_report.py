"""The totals of a replay's answers."""

from __future__ import annotations

from typing import Literal

import pytest

from completion_engine.request import CompletionStats
from lsp_server.commands.player import Answer, shown_suggestion
from lsp_server.commands.replay_report import kind_of, summary
from lsp_server.scripted_typing.screen import Buffer, ShownSuggestion
from lsp_server.scripted_typing.typist import How


def answer(
    outcome: Literal["shown", "empty", "cancelled", "failed"] = "shown",
    ms: float = 1.0,
    *,
    num_forwards: int = 1,
    num_accepted: int = 0,
    how: How | None = None,
    taken: int = 0,
    is_first: bool = False,
    rule: str = "",
) -> Answer:
    stats = CompletionStats(num_tokens=4, num_forwards=num_forwards, num_accepted=num_accepted)
    stats.accepted_by_source["ngram"] = num_accepted
    stats.num_prompt_tokens, stats.num_cached_tokens = 100, 90
    why = {"rule": rule, "stats": stats.as_dict()} if outcome in {"shown", "empty"} else {}
    counts = {"num_taken_chars": taken}
    return Answer(outcome, ms, is_first, why, how=how, **counts)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (answer(num_forwards=0), "typed through"),
        (answer("empty", num_forwards=0), "no verification"),
        (answer(num_accepted=3), "accepted draft"),
        (answer("empty"), "decode"),
    ],
)
def test_an_answer_is_of_one_kind(given: Answer, kind: str) -> None:
    assert kind_of(given) == kind


def test_first_cancelled_and_failed_answers_do_not_count_as_warm() -> None:
    answers = [
        answer(ms=900, is_first=True),
        answer(ms=10),
        answer("empty", ms=20, rule="blank"),
        answer("cancelled", ms=5),
        answer("failed", ms=7),
    ]
    report = summary(answers, num_chars=10)
    assert report["latency_ms"]["warm"]["count"] == 2
    assert report["latency_ms"]["first"]["max"] == 900
    assert report["cancel_ms"]["max"] == 5
    assert report["rules"] == {"blank": 1}
    assert (report["num_shown"], report["num_empty"], report["num_failed"]) == (2, 1, 1)


def test_taken_characters_and_tokens_add_up() -> None:
    answers = [
        answer(num_forwards=1, num_accepted=3, how="full", taken=12),
        answer(num_forwards=3, how="word", taken=8),
        answer(num_forwards=0),
    ]
    report = summary(answers, num_chars=40)
    assert (report["num_accepted"], report["num_partially_accepted"]) == (1, 1)
    assert (report["num_chars_not_typed"], report["share_not_typed"]) == (20, 0.5)
    assert (report["tokens"]["num_tokens"], report["tokens"]["num_written"]) == (12, 7)
    assert report["tokens"]["tokens_per_verification"] == 7 / 4
    assert report["tokens"]["share_cached"] == 0.9
    assert report["tokens"]["accepted_by_source"]["ngram"] == 3


def item(text: str, start: int, end: int) -> dict[str, object]:
    places = ({"line": 0, "character": character} for character in (start, end))
    return {"insertText": text, "range": dict(zip(("start", "end"), places, strict=True))}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (item("a)", 4, 5), ShownSuggestion("a)", 1)),
        (item("def(a)", 1, 4), ShownSuggestion("(a)", 0)),
        (item("other", 1, 4), None),
        (item("x", 5, 5), None),
        ({"insertText": "b"}, ShownSuggestion("b", 0)),
        ({"insertText": {"kind": "snippet", "value": "b"}}, ShownSuggestion("b", 0)),
    ],
)
def test_an_item_is_shown_as_editors_do(given: dict[str, object], shown: ShownSuggestion | None) -> None:
    assert shown_suggestion(given, Buffer("xdef", ")")) == shown
