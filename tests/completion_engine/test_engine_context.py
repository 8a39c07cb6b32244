"""A context goes in front once it is computed in idle time; no request ever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from completion_engine.decoding.completion import SourceAttribution
from completion_engine.decoding.ending import NoRules
from completion_engine.drafting.drafts import DraftToken
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CompletionRequest, RepositoryContext, Snippet
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.passes import PassClock

Make = Callable[..., CompletionEngine]

CODE = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n        res"
FIRST = RepositoryContext("shelf", (Snippet("a.py", "def first(shelf):\n    return shelf\n"),))
SECOND = RepositoryContext("shelf", (Snippet("b.py", "class Second:\n    size: int = 3\n" * 4),))


def request(prefix: str = CODE, context: RepositoryContext | None = None) -> CompletionRequest:
    return CompletionRequest(
        prefix, "\n\nmain()\n", "python", "a.py", indexed_as="a.py", context=context, deadline_ms=0.0
    )


@pytest.fixture
def engine(make_engine: Make) -> CompletionEngine:
    return make_engine(context_tokens=120)


def ask(engine: CompletionEngine, asked: CompletionRequest) -> tuple[int, int]:
    """Tokens of the prompt, and how many of them were computed for it."""
    stats = engine.write(asked, NoRules(), 4).stats
    return stats.num_prompt_tokens, stats.num_prompt_tokens - stats.num_cached_tokens


def rest(engine: CompletionEngine, asked: CompletionRequest) -> None:
    """Rest at a position until no background work is left."""
    engine.prefetch(asked)
    while engine.idle(Cancellation()):
        pass


def test_the_first_answer_does_not_wait_for_a_context(engine: CompletionEngine, make_engine: Make) -> None:
    plain = ask(make_engine(), request())
    assert ask(engine, request(context=FIRST)) == plain


def test_after_a_rest_the_context_is_there_and_costs_nothing_more(engine: CompletionEngine) -> None:
    num_plain, _ = ask(engine, request(context=FIRST))
    rest(engine, request(context=FIRST))
    num_tokens, num_new = ask(engine, request(CODE + "ult", context=FIRST))
    assert num_tokens > num_plain + 8
    assert num_new <= 8


def test_what_is_written_behind_a_context_is_what_a_fresh_engine_writes(
    engine: CompletionEngine, make_engine: Make
) -> None:
    ask(engine, request(context=FIRST))
    rest(engine, request(context=FIRST))
    shown = engine.write(request(CODE + "ult = ", context=FIRST), NoRules(), 12).tokens
    for drafters in ((), ("ngram",)):
        fresh = make_engine(context_tokens=120, drafters=drafters)
        asked = request(CODE + "ult = ", context=FIRST)
        fresh.prepare_context(asked)
        assert fresh.write(asked, NoRules(), 12).tokens[:12] == shown[:12]


def test_what_another_engine_has_computed_of_a_prompt_is_taken_over(
    engine: CompletionEngine, make_engine: Make
) -> None:
    asked = request(CODE + "ult = ", context=FIRST)
    engine.prepare_context(asked)
    written = engine.write(asked, NoRules(), 12).tokens
    fresh = make_engine(context_tokens=120)
    fresh.prepare_context(asked, engine)
    decoding = fresh.write(asked, NoRules(), 12)
    assert decoding.stats.num_cached_tokens >= decoding.stats.num_prompt_tokens - 1
    assert decoding.stats.num_forwards > 0  # the prompt alone, without the text that was written after it
    assert decoding.tokens[:12] == written[:12]


def test_an_interrupted_rest_goes_on_where_it_was(engine: CompletionEngine) -> None:
    num_plain, _ = ask(engine, request(context=SECOND))
    for num_typed in range(1, 30):
        engine.prefetch(request(CODE + "x" * num_typed, context=SECOND))
        for _ in range(2):  # the current context, then a step of the wanted one
            engine.idle(Cancellation())
        num_tokens, num_new = ask(engine, request(CODE + "x" * num_typed, context=SECOND))
        assert num_new <= 16
        if num_tokens > num_plain + 30:
            return
    raise AssertionError("the context never came")


def test_another_context_takes_the_place_of_the_one_before_in_one_jump(engine: CompletionEngine) -> None:
    ask(engine, request(context=FIRST))
    rest(engine, request(context=FIRST))
    num_first, _ = ask(engine, request(CODE + "u", context=FIRST))
    num_still, num_new = ask(engine, request(CODE + "ux", context=SECOND))
    assert (abs(num_still - num_first) <= 1, num_new <= 8) == (True, True)
    rest(engine, request(CODE + "ux", context=SECOND))
    num_second, num_new = ask(engine, request(CODE + "uxy = 1", context=SECOND))
    assert (num_second > num_first + 8, num_new <= 16) == (True, True)


def test_a_suggestion_that_is_typed_along_stays_though_a_context_is_ready(engine: CompletionEngine) -> None:
    asked = request(CODE + "ult.ap", context=FIRST)
    text = engine.write(asked, NoRules(), 16).written.text
    rest(engine, asked)
    along, elsewhere = (request(f"{CODE}ult.ap{typed}", context=FIRST) for typed in (text[:1], " = 1\n    "))
    stats = engine.write(along, NoRules(), 1).stats
    assert stats.num_forwards == 0
    assert ask(engine, elsewhere)[0] > stats.num_prompt_tokens + 8


@pytest.mark.parametrize("how", ["is_explicit", "is_repeated"])
def test_who_asks_again_at_the_same_place_gets_the_context_that_came_meanwhile(
    engine: CompletionEngine, how: str
) -> None:
    num_plain, _ = ask(engine, request(CODE + "ult.ap"))
    with_context = request(CODE + "ult.ap", context=FIRST)
    assert ask(engine, with_context)[0] == num_plain  # while typing, the answer stays
    rest(engine, with_context)
    ask(engine, with_context)
    num_tokens, num_new = ask(engine, replace(with_context, **{how: True}, deadline_ms=10_000.0))
    assert (num_tokens > num_plain + 8, num_new <= 8) == (True, True)


def test_an_explicit_request_waits_for_its_context(engine: CompletionEngine) -> None:
    """Unlike one that comes by typing."""
    soon = {"deadline_ms": 1e-6, "patience_ms": 300 * engine.target.prompt_token_ms}
    typed = replace(request(context=FIRST), **soon)
    num_typed = engine.complete(typed).stats.num_prompt_tokens
    num_explicit = engine.complete(replace(typed, is_explicit=True)).stats.num_prompt_tokens
    assert num_explicit > num_typed + 8


def test_a_context_that_is_wanted_no_more_is_gone_at_once(
    engine: CompletionEngine, make_engine: Make
) -> None:
    asked = request(context=FIRST)
    engine.prepare_context(asked)
    num_with, _ = ask(engine, asked)
    num_without, _ = ask(engine, request())
    assert num_without == ask(make_engine(), request())[0] < num_with


def test_a_closed_document_leaves_no_context_behind(engine: CompletionEngine) -> None:
    ask(engine, request(context=FIRST))
    engine.forget("a.py")
    assert not engine.idle(Cancellation())
    num_plain, _ = ask(engine, request(context=None))
    num_tokens, _ = ask(engine, request(context=FIRST))
    assert num_tokens == num_plain


def test_contexts_of_so_many_documents_are_kept_and_no_more(engine: CompletionEngine) -> None:
    for number in range(200):
        asked = replace(request(context=FIRST), document=f"{number}.py")
        engine.preparation.commit_context(asked)
    assert len(engine.preparation._prompts._contexts) <= 64


def test_two_documents_keep_their_contexts(engine: CompletionEngine) -> None:
    one, other = request(context=FIRST), replace(request("x = 1\ny = ", context=SECOND), document="b.py")
    for asked in (one, other):
        ask(engine, asked)
        rest(engine, asked)
        ask(engine, asked)
    for asked in (one, other):
        assert ask(engine, replace(asked, prefix=asked.prefix + "z"))[1] <= 8


def test_an_engine_without_room_for_contexts_shows_none(make_engine: Make) -> None:
    engine = make_engine(context_tokens=0)
    plain = ask(engine, request())
    engine.prepare_context(request(context=FIRST))
    assert ask(engine, request(context=FIRST))[0] == plain[0]
    assert engine.describe()["num_context_tokens"] == 0


def test_what_is_drafted_from_the_context_is_said_to_be_of_other_files(tokenizer: Tokenizer) -> None:
    context, own = (
        DraftToken(tokenizer.encode("x")[0], "ngram", "prompt", 4, 1.0, offset=at) for at in (5, 50)
    )
    attribution = SourceAttribution(tokenizer, None, num_context=40)
    segments = attribution.segments("xx", [(1, context), (2, own)])
    assert [segment.place for segment in segments] == ["other files", "this file"]


@pytest.mark.parametrize(
    ("capacity", "token_ms", "num_tokens"),
    [(2368, 0.7, 320), (2368, 12.0, 128), (8192, 0.02, 2048), (8192, 0.05, 960), (8192, 0.7, 320)],
    ids=["a CPU", "a slow CPU", "a GPU", "a slower GPU", "a GPU that is as slow as a CPU"],
)
def test_the_longest_context_follows_from_the_speed_of_prompts(
    make_engine: Make,
    target: LanguageModel,
    monkeypatch: pytest.MonkeyPatch,
    capacity: int,
    token_ms: float,
    num_tokens: int,
) -> None:
    monkeypatch.setattr(target, "capacity", capacity)
    monkeypatch.setattr(LanguageModel, "prompt_token_ms", token_ms)
    assert make_engine().describe()["num_context_tokens"] == num_tokens


def test_an_engine_that_was_loaded_on_a_busy_machine_gets_its_context_later(
    make_engine: Make, target: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = replace(target.findings, pass_ms=dict.fromkeys(target.widths, 2_000.0), chunk_ms=4_000.0)
    monkeypatch.setattr(target, "findings", busy)
    monkeypatch.setattr(target, "clock", PassClock(busy.pass_ms, 0.0))
    engine = make_engine()
    assert engine.describe()["num_context_tokens"] == 0
    ask(engine, request())
    num_tokens = engine.describe()["num_context_tokens"]
    assert num_tokens > 0
    for _ in range(50):
        target.clock.record(1.0, 100.0)
    assert engine.describe()["num_context_tokens"] == num_tokens
