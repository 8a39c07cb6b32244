"""Shadow checks find what drafts change, count nothing else, and never get in the way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pytest

from completion_engine.decoding import loop
from completion_engine.decoding.reuse import PastCompletion
from completion_engine.decoding.shadow import MAX_WAITING
from completion_engine.engine import CompletionEngine
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.target_model.language_model import LanguageModel

Make = Callable[..., CompletionEngine]

HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
TEXTS = [HEAD, HEAD * 3, HEAD * 3 + "        res", HEAD + "        result.append(argument)\n"]


def request(prefix: str, *, shadow: float = 1.0, **options: object) -> CompletionRequest:
    options = {"deadline_ms": 0.0, "max_tokens": 12, "id": "7.3", **options}
    return CompletionRequest(prefix, "\n", "python", "a.py", shadow=shadow, **options)  # type: ignore[arg-type]


def rest(engine: CompletionEngine) -> dict[str, int]:
    """Idles until nothing is left; returns the counts."""
    while engine.idle(Cancellation()):
        pass
    counts = engine.describe()["shadow"]
    assert isinstance(counts, dict)
    return counts


def test_drafts_that_change_nothing_are_no_difference(make_engine: Make) -> None:
    engine = make_engine()
    for text in TEXTS:
        engine.complete(request(text))
        rest(engine)
    assert rest(engine) == {"num_checked": len(TEXTS), "num_different": 0}


def test_typing_along_a_suggestion_is_checked_too(make_engine: Make) -> None:
    engine = make_engine()
    text = engine.complete(request(HEAD)).text
    assert text
    rest(engine)
    for num_typed in range(1, min(6, len(text))):
        engine.complete(request(HEAD + text[:num_typed]))
        rest(engine)
    counts = rest(engine)
    assert counts["num_checked"] > 1
    assert counts["num_different"] == 0


def accept_all(tokens: Sequence[int], parents: Sequence[int], picked: Sequence[int]) -> list[int]:
    """A fault: the first draft after a true token counts as true."""
    path: list[int] = []
    row = 0
    while (
        child := next((at for at, parent in enumerate(parents) if at and parent == row), None)
    ) is not None:
        path.append(child)
        row = child
    return path


def test_an_accepted_draft_that_the_target_would_not_write_is_found(
    make_engine: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(drafters=("ngram",))
    monkeypatch.setattr(loop, "verify", accept_all)
    completion = engine.complete(request(HEAD * 3))
    assert completion.stats.num_accepted
    with caplog.at_level(logging.ERROR):
        assert rest(engine) == {"num_checked": 1, "num_different": 1}
    (record,) = caplog.records
    assert record.getMessage().startswith("Request 7.3: with drafts token ")
    assert record.args is not None
    assert all(isinstance(one, int) or one == "7.3" for one in record.args)
    assert "argument" not in record.getMessage(), "never the text"


def test_a_damaged_cache_of_the_request_is_found(make_engine: Make) -> None:
    engine = make_engine()
    engine.complete(request(HEAD * 3, shadow=0.0))
    (slot,) = engine.preparation._slots._slots
    slot.cache.values[:, :, :40] = slot.cache.values[:, :, :40].flip(2)
    slot.past = PastCompletion()
    engine.complete(request(HEAD * 3))
    assert rest(engine) == {"num_checked": 1, "num_different": 1}


@pytest.mark.parametrize(("share", "num_checked"), [(0.0, 0), (0.25, 2), (0.5, 4), (1.0, 8)])
def test_the_share_of_requests_is_checked(make_engine: Make, share: float, num_checked: int) -> None:
    engine = make_engine()
    for at in range(8):
        engine.complete(request(HEAD + f"        value{at} = ", shadow=share))
        rest(engine)
    assert rest(engine)["num_checked"] == num_checked


def test_without_the_setting_it_takes_no_memory(make_engine: Make) -> None:
    engine = make_engine()
    engine.complete(request(HEAD, shadow=0.0))
    rest(engine)
    before = engine.describe()["num_cache_bytes"]
    engine.complete(request(HEAD * 2))
    rest(engine)
    assert engine.describe()["num_cache_bytes"] > before


def test_a_key_ends_it_within_a_pass_and_is_answered_as_without_it(
    make_engine: Make, target: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, plain = make_engine(), make_engine()
    passes = []
    forward = target.forward
    monkeypatch.setattr(target, "forward", lambda *args: passes.append(1) or forward(*args))
    for text in TEXTS:
        shown = engine.complete(request(text))
        assert shown.text == plain.complete(request(text, shadow=0.0)).text
        for _ in range(3):
            passes.clear()
            engine.idle(Cancellation())
            assert len(passes) <= 1
        pressed = Cancellation()
        pressed.cancel()
        passes.clear()
        assert not engine.idle(pressed)
        assert not passes
    counts = rest(engine)
    assert counts["num_checked"] == len(TEXTS), "what was interrupted is taken up again"
    assert counts["num_different"] == 0


def test_what_cannot_be_checked_in_time_is_left_out(make_engine: Make) -> None:
    engine = make_engine()
    for at in range(MAX_WAITING + 5):
        engine.complete(request(HEAD + f"        value{at} = "))
    assert rest(engine)["num_checked"] == MAX_WAITING


def test_a_closed_document_is_not_kept_to_be_checked(make_engine: Make) -> None:
    engine = make_engine()
    for text in TEXTS:
        engine.complete(request(text))
    while not engine.shadow._current:
        engine.idle(Cancellation())
    engine.forget("a.py")
    assert not engine.shadow.is_waiting
    assert rest(engine)["num_checked"] == 0
