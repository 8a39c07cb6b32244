"""Text that an idle engine writes in advance: the line after a suggestion, equal to the later request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from completion_engine.config import EngineConfig
from completion_engine.decoding.background import BackgroundPrompt, BackgroundWriting
from completion_engine.decoding.ending import Limits, NextLine, NoRules
from completion_engine.drafting.drafts import Drafter, DraftScope
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CompletionRequest, CompletionStats
from completion_engine.target_model.language_model import PREFILL_ROWS, LanguageModel
from completion_engine.target_model.passes import ROWS

Make = Callable[..., CompletionEngine]

HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
PLACE = HEAD + "        return "


def request(prefix: str) -> CompletionRequest:
    return CompletionRequest(prefix, "\n", "python", "a.py", deadline_ms=0.0, max_tokens=12)


def idle(engine: CompletionEngine) -> int:
    """Do background work until nothing is left; returns the number of steps."""
    num_steps = 0
    while engine.idle(Cancellation()):
        num_steps += 1
    return num_steps


def place_to_go_on(make_engine: Make) -> str:
    """A place after whose completion more can be written. The tiny target's texts differ by processor."""
    places = (PLACE + typed for typed in ("", " x", "a", "b", "c"))
    return next(at for at in places if make_engine().complete(request(at)).stats.finish_reason != "end")


@pytest.mark.parametrize(
    ("generated", "ends"),
    [
        ("x", False),
        ("x = 1", False),
        ("x = 1\n", False),
        ("x = 1\n\n    y", False),
        ("x = 1\n\n    y\n", True),
        ("x = 2", True),
        ("", False),
    ],
)
def test_the_line_after_is_whole_with_its_end(generated: str, ends: bool) -> None:
    assert (NextLine("x = 1").stop(generated) is not None) == ends


def test_who_accepts_is_answered_as_without_work_ahead(make_engine: Make) -> None:
    ahead, plain, place = make_engine(), make_engine(), place_to_go_on(make_engine)
    shown = ahead.complete(request(place))
    num_forwards = shown.stats.num_forwards
    assert plain.complete(request(place)).text == shown.text
    assert idle(ahead) > 0
    assert shown.stats.num_forwards == num_forwards  # the answer's figures are its own
    fast, slow = (engine.complete(request(place + shown.text)) for engine in (ahead, plain))
    assert fast.text == slow.text


class Keeping(Drafter):
    """A drafter that guesses nothing, and reports its calls about texts that it may keep."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def enter(self, scope: DraftScope) -> None:
        self.log.append(f"enter {scope.document}")

    def forget(self, document: str) -> None:
        self.log.append(f"forget {document}")

    def end(self) -> None:
        self.log.append("keep")


@pytest.mark.parametrize(
    ("prefix", "kept"), [(PLACE, ["keep"]), ('PASSWORD = "tul', [])], ids=["code", "a secret"]
)
@pytest.mark.parametrize("is_closed", [True, False])
def test_of_text_that_is_given_up_no_secret_is_kept(
    target: LanguageModel, tokenizer: Tokenizer, prefix: str, kept: list[str], is_closed: bool
) -> None:
    drafter = Keeping()
    engine = CompletionEngine(EngineConfig(target="tiny"), target, tokenizer, {"keeping": drafter})
    engine.prefetch(request(prefix), writes=True)
    while engine.idle(Cancellation()) and not engine.background.current.num_written:  # type: ignore[union-attr]
        pass
    if is_closed:
        engine.forget("a.py")
        assert drafter.log == ["enter a.py", *kept, "forget a.py"]
    else:
        engine.prefetch(replace(request("x = "), document="b.py"))
        assert drafter.log == ["enter a.py", *kept]
        engine.complete(replace(request("x = "), document="b.py"))
        assert drafter.log == ["enter a.py", *kept, "enter b.py", "keep"]


def test_drafters_are_asked_nothing_for_a_completion_that_is_known(
    target: LanguageModel, tokenizer: Tokenizer
) -> None:
    drafter = Keeping()
    engine = CompletionEngine(EngineConfig(target="tiny"), target, tokenizer, {"keeping": drafter})
    first = engine.complete(request(PLACE))
    assert drafter.log == ["enter a.py", "keep"]
    again = engine.complete(request(PLACE + first.text[:1]))
    assert (again.text, again.stats.num_forwards) == (first.text[1:], 0)
    assert drafter.log == ["enter a.py", "keep"]


def test_of_a_prompt_that_was_only_computed_nothing_is_kept(
    target: LanguageModel, tokenizer: Tokenizer
) -> None:
    drafter = Keeping()
    engine = CompletionEngine(EngineConfig(target="tiny"), target, tokenizer, {"keeping": drafter})
    engine.prefetch(request(PLACE), writes=True)
    engine.prefetch(request(PLACE))
    engine.idle(Cancellation())
    engine.forget("a.py")
    assert drafter.log == ["forget a.py"]


class Endless:
    """Prepares or writes without end; records for how long it might at a time."""

    def __init__(self) -> None:
        self.steps_ms: list[float] = []

    def step(self, within_ms: float) -> None:
        self.steps_ms.append(within_ms)

    def finish(self, *_: object) -> None:
        return

    def prepare(self, within_ms: float) -> bool:
        self.steps_ms.append(within_ms)
        return True


@pytest.mark.parametrize("work", ["prompt", "text"])
def test_a_long_pause_allows_long_steps_unless_others_may_come(work: str) -> None:
    decoding, shared = Endless(), Cancellation()
    shared.give_way()
    parts: Any = (None, decoding, -1e6)
    work_ahead: BackgroundPrompt | BackgroundWriting = BackgroundWriting(
        parts[0], NoRules(), Limits(8), *parts[1:]
    )
    if work == "prompt":
        work_ahead = BackgroundPrompt(*parts)
    for cancellation in (Cancellation(), shared):
        assert work_ahead.step(CompletionStats(), cancellation)
    alone_ms, shared_ms = decoding.steps_ms
    assert shared_ms < 100 < alone_ms


def test_a_text_is_begun_behind_no_more_of_its_prompt_than_a_step_has_time_for(
    make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine()
    monkeypatch.setattr(engine.target, "rows_within", lambda ms: ROWS if ms < 100 else PREFILL_ROWS)
    cancellation = Cancellation()
    cancellation.give_way()
    engine.prefetch(request(HEAD), writes=True)
    decoding = engine.background.current.decoding  # type: ignore[union-attr]
    num_pending = [decoding.num_pending]
    while num_pending[-1] > 1:
        engine.idle(cancellation)
        num_pending.append(decoding.num_pending)
    assert num_pending[0] > 3 * ROWS
    assert all(before - after <= ROWS for before, after in pairwise(num_pending))
    idle(engine)
    assert engine.complete(request(HEAD)).text == make_engine().complete(request(HEAD)).text


def test_what_passes_wrote_is_told_apart_from_what_was_known(make_engine: Make) -> None:
    engine = make_engine()
    stats = engine.complete(request(PLACE)).stats
    assert stats.num_written == stats.num_forwards + stats.num_accepted >= stats.num_tokens > 0
    again = engine.complete(request(PLACE)).stats
    assert (again.num_tokens, again.num_written) == (stats.num_tokens, 0)


def test_work_ahead_ends_and_what_is_known_is_not_written_again(make_engine: Make) -> None:
    engine, place = make_engine(), place_to_go_on(make_engine)
    engine.complete(request(place))
    assert 0 < idle(engine) <= 40
    assert engine.complete(request(place)).stats.num_forwards == 0
    assert idle(engine) == 0


CUT: dict[str, Any] = {
    "deadline_ms": 1e-6,
    "patience_ms": 600_000.0,
    "multiline": "always",
    "max_tokens": 24,
}


def cut(engine: CompletionEngine, **changes: Any) -> CompletionRequest:
    """A request whose first answer the deadline cuts, for one that is longer."""
    asked = replace(request(PLACE + " x"), **CUT, **changes)
    assert engine.complete(asked).stats.finish_reason == "deadline"
    return asked


def grown_after(engine: CompletionEngine) -> list[CompletionRequest]:
    """The requests that background work has news for, until nothing is left."""
    news = []
    while engine.idle(Cancellation()):
        news.append(engine.take_grown())
    news.append(engine.take_grown())
    return [grown for grown in news if grown is not None]


def test_an_answer_that_was_cut_has_news_and_begins_as_it_did(make_engine: Make) -> None:
    engine = make_engine()
    asked = cut(engine)
    first = engine.complete(asked).text
    news = grown_after(engine)
    assert 1 <= len(news) <= 2
    assert all(grown.is_at(asked) for grown in news)
    longer = engine.complete(replace(asked, is_repeated=True))
    assert longer.text.startswith(first)
    assert len(longer.text) > len(first)
    assert longer.stats.num_forwards == 0
    assert longer.text == make_engine().complete(replace(asked, deadline_ms=0.0)).text


def test_a_complete_answer_and_one_for_nobody_have_no_news(make_engine: Make) -> None:
    engine = make_engine()
    engine.complete(request(PLACE))
    assert grown_after(engine) == []
    engine.prefetch(request(HEAD), writes=False)
    assert grown_after(engine) == []


def test_what_is_too_unlikely_to_be_shown_is_no_news(make_engine: Make) -> None:
    engine = make_engine()
    asked = replace(request(PLACE + " x"), **CUT, eagerness=1e-9)
    engine.complete(asked)
    assert grown_after(engine) == []


def test_news_of_a_place_that_is_left_are_dropped(make_engine: Make) -> None:
    engine = make_engine()
    cut(engine)
    while engine.idle(Cancellation()):
        pass
    engine.complete(request(HEAD))
    assert engine.take_grown() is None


def test_the_rest_of_an_answer_is_written_before_its_place_is_prepared_again(make_engine: Make) -> None:
    engine = make_engine()
    asked = cut(engine)
    engine.idle(Cancellation())
    engine.prefetch(asked, writes=False)
    assert grown_after(engine)
    engine.prefetch(request(HEAD), writes=False)
    assert engine.take_grown() is None
