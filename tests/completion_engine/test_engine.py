"""The engine from its caller's view: reuse, prefix matches, deadlines, cancellation, background work."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from completion_engine.config import EngineConfig
from completion_engine.cpu.int8_decoder import Int8Decoder
from completion_engine.cpu.kernels.program import Program
from completion_engine.cutting import surroundings, tree
from completion_engine.decoding import ending
from completion_engine.decoding.background import BackgroundWriting
from completion_engine.decoding.ending import Limits, NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.loading.backends import Backend, BackendChain, Plan
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CancelledError, CompletionRequest
from completion_engine.target_model.brake import Brake
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.passes import PassClock
from completion_engine.target_model.weights import Precision
from tests.completion_engine.decoding.plain import complete_checked

Make = Callable[..., CompletionEngine]

HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
CODE = HEAD * 3


def request(prefix: str, suffix: str = "\n\ndef main():\n    pass\n", **options: object) -> CompletionRequest:
    options.setdefault("deadline_ms", 0.0)
    return CompletionRequest(prefix, suffix, "python", "a.py", **options)  # type: ignore[arg-type]


def text_of(engine: CompletionEngine, prefix: str, num_tokens: int = 16) -> str:
    return engine.write(request(prefix), NoRules(), num_tokens).written.text


def test_a_keystroke_keeps_all_but_the_last_tokens_cached(make_engine: Make) -> None:
    engine = make_engine()
    first = engine.write(request(CODE + "        res"), NoRules(), 4).stats
    second = engine.write(request(CODE + "        resul"), NoRules(), 4).stats
    assert first.num_cached_tokens == 0
    assert second.num_cached_tokens >= second.num_prompt_tokens - 8


def test_what_is_answered_without_a_pass_is_what_a_pass_would_answer(make_engine: Make) -> None:
    engine = make_engine()
    text = text_of(engine, CODE)
    for num_typed in range(1, 8):
        typed = CODE + text[:num_typed]
        shown, fresh = (by.write(request(typed), NoRules(), 4).tokens[:4] for by in (engine, make_engine()))
        assert shown == fresh


def test_typing_something_else_is_decoded_anew(make_engine: Make) -> None:
    engine = make_engine()
    text = text_of(engine, CODE)
    other = "zq" if not text.startswith("z") else "qz"
    again = engine.write(request(CODE + other), NoRules(), 4)
    assert again.stats.num_forwards > 0
    assert again.written.text[:8] == text_of(make_engine(), CODE + other, 4)[:8]


def test_a_deadline_returns_what_is_verified_and_the_rest_follows_in_the_background(
    make_engine: Make,
) -> None:
    engine = make_engine()
    whole = text_of(make_engine(), CODE, 32)
    hurried = engine.complete(request(CODE, deadline_ms=0.001, patience_ms=0.001, max_tokens=32))
    assert hurried.stats.finish_reason == "deadline"
    while engine.idle(Cancellation()):
        pass
    later = engine.write(request(CODE), NoRules(), 8)
    assert later.stats.num_forwards == 0
    assert whole.startswith(later.written.text[:8])


def test_where_time_is_up_before_a_word_that_is_the_reason(make_engine: Make) -> None:
    hurried = make_engine().complete(request(CODE, deadline_ms=1e-6, patience_ms=1e-6))
    assert (hurried.text, hurried.rule) == ("", "out-of-time")


def test_nothing_is_written_where_nobody_wants_it(make_engine: Make) -> None:
    engine = make_engine()
    in_comment, in_code = CODE + "        # the fir", CODE + "        res"
    silent = engine.complete(request(in_comment, suppressed_in=frozenset({"comment"})))
    assert (silent.text, silent.rule, silent.stats.num_forwards) == ("", "in-comment", 0)
    plain, wanted = (
        engine.complete(request(in_code, suppressed_in=places))
        for places in (frozenset(), frozenset({"comment"}))
    )
    assert wanted.text == plain.text


@pytest.mark.parametrize("gives_way", [True, False])
def test_a_long_completion_ends_with_what_it_has_if_somebody_else_waits(
    make_engine: Make, monkeypatch: pytest.MonkeyPatch, gives_way: bool
) -> None:
    monkeypatch.setattr(ending, "MAX_TURN_S", 0.0)
    asked = request(CODE, max_tokens=32, multiline="always", num_candidates=4)
    if gives_way:
        asked.cancellation.give_way()
    completion = make_engine().complete(asked)
    assert (completion.stats.finish_reason == "deadline") is gives_way
    assert bool(completion.alternatives) is not gives_way


def test_a_turn_of_usual_length_is_left_alone(make_engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "MAX_TURN_S", 600.0)
    asked = request(CODE, max_tokens=32)
    asked.cancellation.give_way()
    assert make_engine().complete(asked).text == make_engine().complete(request(CODE, max_tokens=32)).text


def test_a_cancelled_request_stops_before_its_next_pass(make_engine: Make) -> None:
    engine = make_engine()
    cancelled = Cancellation()
    cancelled.cancel()
    with pytest.raises(CancelledError):
        engine.complete(replace(request(CODE), cancellation=cancelled))


@pytest.mark.parametrize("num_passes", [1, 2, 5])
def test_a_request_cancelled_during_a_pass_begins_no_other(
    make_engine: Make, monkeypatch: pytest.MonkeyPatch, num_passes: int
) -> None:
    engine, asked, num_begun = make_engine(drafters=()), request(CODE, max_tokens=32), 0
    forward = engine.target.forward

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal num_begun
        num_begun += 1
        if num_begun == num_passes:
            asked.cancellation.cancel()
        return forward(*arguments, **options)

    monkeypatch.setattr(engine.target, "forward", counted)
    with pytest.raises(CancelledError):
        engine.complete(asked)
    assert num_begun == num_passes


def test_what_a_cancelled_request_computed_is_kept_and_the_rest_follows_in_idle_moments(
    make_engine: Make,
) -> None:
    engine = make_engine()
    cancelled = request(CODE * 8 + "        res")
    cancelled.cancellation.cancel()
    with pytest.raises(CancelledError):
        engine.complete(cancelled)
    while engine.idle(Cancellation()):
        pass
    stats = engine.complete(request(CODE * 8 + "        res")).stats
    assert stats.num_cached_tokens == stats.num_prompt_tokens - 1


def hurried(engine: CompletionEngine) -> CompletionRequest:
    """A request with time for some ten tokens of a prompt."""
    return request(CODE * 8, deadline_ms=1e-6, patience_ms=50 * engine.target.prompt_token_ms)


def test_where_time_is_short_less_text_is_seen_and_all_of_it_in_idle_moments(make_engine: Make) -> None:
    engine = make_engine()
    asked = hurried(engine)
    first = engine.complete(asked).stats
    while engine.idle(Cancellation()):
        pass
    later = engine.complete(asked).stats
    assert (first.is_provisional, later.is_provisional) == (True, False)
    assert first.num_prompt_tokens < later.num_prompt_tokens // 2
    assert later.num_forwards == 0  # the text of the whole prompt is written too


def test_in_a_pause_more_text_is_seen_before_all_of_it(make_engine: Make) -> None:
    engine = make_engine()
    engine.complete(hurried(engine))
    seen: list[int] = []
    while engine.idle(Cancellation()):
        if (work := engine.background.current) is not None:
            seen.append(len(work.prepared.prompt.tokens))
    assert len(set(seen)) >= 2 and seen == sorted(seen)


def test_who_sets_no_deadline_waits_for_all_of_the_text(make_engine: Make) -> None:
    completion = make_engine().complete(request(CODE * 8, patience_ms=1e-6))
    assert not completion.stats.is_provisional


def test_a_place_is_in_time_once_its_prompt_is_computed(make_engine: Make) -> None:
    engine = make_engine()
    asked = hurried(engine)
    assert not engine.is_in_time(asked)
    engine.prefetch(asked)
    while engine.idle(Cancellation()):
        pass
    assert engine.is_in_time(asked)


def test_what_is_written_behind_less_text_is_what_plain_decoding_writes_behind_it(
    make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine()
    monkeypatch.setattr(LanguageModel, "prompt_token_ms", 1e9)
    completion = complete_checked(engine, request(CODE * 8, deadline_ms=600_000.0))
    assert completion.stats.is_provisional


class Cancelling(NoRules):
    """Cancels the work from another thread while its third pass is looked at."""

    def __init__(self, work: CompletionRequest) -> None:
        self.work, self.num_passes = work, 0

    def stop(self, generated: str) -> None:
        self.num_passes += 1
        if self.num_passes == 3:
            thread = threading.Thread(target=self.work.cancellation.cancel)
            thread.start()
            thread.join()


def test_cancellation_in_mid_decode_ends_the_work_before_the_next_pass(make_engine: Make) -> None:
    engine = make_engine(drafters=())
    work = request(CODE, max_tokens=250)
    rules = Cancelling(work)
    with pytest.raises(CancelledError):
        engine.write(work, rules, 250)
    assert rules.num_passes == 3
    assert engine.write(request(CODE), NoRules(), 2).tokens  # and the engine goes on


def test_background_work_stops_when_it_is_told_to(make_engine: Make) -> None:
    engine = make_engine()
    engine.complete(request(CODE, deadline_ms=0.001, patience_ms=0.001))
    stop = Cancellation()
    stop.cancel()
    assert engine.idle(stop) is False


def test_who_waits_for_an_answer_does_not_wait_for_what_is_prepared_behind_it(make_engine: Make) -> None:
    engine = make_engine()
    for place in ("        res", "        resul", "        results"):
        assert engine.complete(replace(hurried(engine), prefix=CODE * 8 + place)).stats.is_provisional
    shape = engine.target.cache_shape
    assert engine.describe()["num_cache_bytes"] - engine.target.num_branch_bytes == shape.num_bytes


def test_places_of_which_nothing_is_computed_take_one_cache(make_engine: Make) -> None:
    engine = make_engine()
    for document in ("a.py", "b.py", "c.py"):
        engine.prefetch(replace(request(CODE), document=document))
    shape = engine.target.cache_shape
    assert engine.describe()["num_cache_bytes"] - engine.target.num_branch_bytes == shape.num_bytes


@pytest.mark.parametrize("typed", ["", "x"])
def test_who_comes_ends_a_pass_that_is_no_use_to_him_and_no_other(
    make_engine: Make, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    engine, asked = make_engine(), request(CODE)
    if not isinstance(engine.target.decoder, Int8Decoder):
        pytest.skip("No pass ends early here.")
    engine.prefetch(asked, writes=True)
    come, runs = Cancellation(), Program.run

    def pressed(program: Program, brake: Brake | None = None) -> None:
        come.cancel(replace(asked, prefix=CODE + typed))
        runs(program, brake)

    with monkeypatch.context() as patch:
        patch.setattr(Program, "run", pressed)
        assert engine.idle(come)
    assert bool(engine.preparation._slots._slots[0].cache.num_cached) == (not typed)
    while engine.idle(Cancellation()):
        pass
    answer = engine.complete(asked)
    assert answer.stats.num_forwards == 0
    assert answer.text == make_engine().complete(asked).text


@pytest.mark.parametrize(
    ("is_answered", "typed", "is_needed"),
    [
        (False, "", True),
        (False, "a part", True),
        (False, "all of it", True),
        (False, "something else", False),
        (True, "", False),
        (True, "a part", False),
        (True, "all of it", True),
        (True, "something else", False),
    ],
)
def test_a_pass_goes_on_for_who_needs_what_it_finds(
    make_engine: Make, is_answered: bool, typed: str, is_needed: bool
) -> None:
    engine, asked = make_engine(), request(CODE)
    if is_answered:
        text = engine.complete(asked).text
    else:
        engine.prefetch(asked, writes=True)
        while not (text := written_ahead(engine)):
            assert engine.idle(Cancellation())
    assert engine.background.current
    typed = {"a part": text[:1], "all of it": text, "something else": "\x00"}.get(typed, "")
    assert engine.background.current.need_test()(replace(asked, prefix=CODE + typed)) == is_needed


def written_ahead(engine: CompletionEngine) -> str:
    assert isinstance(engine.background.current, BackgroundWriting)
    return engine.background.current.decoding.written.text if engine.background.current.decoding else ""


@pytest.mark.parametrize(
    "prefix",
    ["", "\n", "x", "é" * 50, "😀\n😀", "\ud800 lone", "a" * 5000, "<|fim_middle|> in the text", "\t\t\x00"],
)
def test_any_text_is_answered(make_engine: Make, prefix: str) -> None:
    completion = make_engine().complete(request(prefix, max_tokens=6))
    assert completion.stats.num_prompt_tokens > 0
    assert completion.stats.finish_reason


def test_pieces_spell_the_text_and_name_their_sources(make_engine: Make) -> None:
    completion = make_engine().complete(request(CODE, max_tokens=40))
    if completion.text:
        assert "".join(segment.text for segment in completion.segments) == completion.text
    assert {segment.source for segment in completion.segments} <= {"target", "ngram"}


def test_documents_keep_their_caches_apart_up_to_the_number_of_slots(make_engine: Make) -> None:
    engine = make_engine(num_slots=2)
    texts = {name: f"# {name}\n" + CODE for name in ("a", "b")}
    for name, text in texts.items():
        engine.write(replace(request(text), document=name), NoRules(), 2)
    again = engine.write(replace(request(texts["a"] + "  "), document="a"), NoRules(), 2)
    assert again.stats.num_cached_tokens > again.stats.num_prompt_tokens // 2
    engine.write(replace(request("# c\n" + CODE[::-1]), document="c"), NoRules(), 2)
    engine.forget("a")
    slot_bytes, branch_bytes = engine.target.cache_shape.num_bytes, engine.target.num_branch_bytes
    assert engine.describe()["num_cache_bytes"] == 2 * slot_bytes + branch_bytes
    assert branch_bytes >= slot_bytes  # trees were tried at load


def test_what_is_expected_is_computed_in_idle_moments_and_changes_no_answer(make_engine: Make) -> None:
    expecting, other = make_engine(), make_engine()
    wanted = request(CODE * 8 + "        res")
    expecting.prefetch(wanted)
    while expecting.idle(Cancellation()):
        pass
    completion = expecting.complete(wanted)
    assert completion.stats.num_cached_tokens == completion.stats.num_prompt_tokens - 1
    assert completion.text == other.complete(wanted).text


def test_what_is_written_before_somebody_asks_is_what_would_be_written_then(make_engine: Make) -> None:
    ahead, other = make_engine(), make_engine()
    asked = request(CODE * 8 + "        res", max_tokens=12)
    ahead.prefetch(asked, writes=True)
    while ahead.idle(Cancellation()):
        pass
    completion = ahead.complete(asked)
    assert completion.stats.num_forwards == 0
    assert completion.text == other.complete(asked).text


@pytest.mark.parametrize("num_steps", [1, 2, 3, 5])
def test_who_asks_while_it_is_being_written_gets_the_rest_too(make_engine: Make, num_steps: int) -> None:
    ahead = make_engine()
    asked = request(CODE + "        res", max_tokens=24)
    ahead.prefetch(asked, writes=True)
    for _ in range(num_steps):
        ahead.idle(Cancellation())
    assert ahead.complete(asked).text == make_engine().complete(asked).text


def test_nothing_is_written_ahead_where_nothing_would_be_shown(make_engine: Make) -> None:
    engine = make_engine()
    asked = request(CODE + "# a note", suppressed_in=frozenset({"comment"}))
    engine.prefetch(asked, writes=True)
    while engine.idle(Cancellation()):
        pass
    assert engine.write(replace(asked, suppressed_in=frozenset()), NoRules(), 4).stats.num_forwards > 0


def test_the_grammar_of_an_opened_document_waits_for_no_keystroke(make_engine: Make) -> None:
    engine = make_engine()
    tree._parser.cache_clear()
    tree.load_grammar("python")
    num_loaded = tree._parser.cache_info().misses
    engine.complete(request(CODE, max_tokens=6))
    assert tree._parser.cache_info().misses == num_loaded == 1


def test_nothing_holds_a_target_that_failed_while_the_next_one_is_loaded(
    tiny_model_dir: Path, tokenizer: Tokenizer
) -> None:
    """Two targets may not fit into the memory of a GPU."""
    loaded: list[weakref.ref[LanguageModel]] = []
    are_held: list[bool] = []

    def load(_: Backend) -> LanguageModel:
        are_held.extend(one() is not None for one in loaded)
        target = load_language_model(tiny_model_dir, "cpu", "auto", 512)
        loaded.append(weakref.ref(target))
        return target

    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    cpu, floats = torch.device("cpu"), Precision("float32", torch.float32, "float")
    chain = BackendChain(Plan((Backend("GPU torch", cpu, floats), Backend("CPU", cpu, floats))), load)
    config = EngineConfig("tiny", device="cpu")
    engine = chain.run_on_best(lambda target: CompletionEngine(config, target, tokenizer, chain=chain))
    engine.complete(request(CODE, max_tokens=2))
    engine.target.forward = fail  # type: ignore[assignment, method-assign]
    engine.complete(request(HEAD + "x", max_tokens=2))
    assert are_held == [False]
    assert engine.backend.startswith("CPU")


def test_no_cache_holds_the_text_of_a_closed_document(make_engine: Make) -> None:
    engine = make_engine()
    engine.complete(request(CODE, max_tokens=2))
    held = surroundings._open_after.cache_info().currsize
    assert held
    engine.forget("a.py")
    assert surroundings._open_after.cache_info().currsize == 0


def test_where_no_time_is_left_nothing_is_drafted_and_the_text_is_the_same(
    make_engine: Make, target: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "clock", PassClock({width: 10.0 + width for width in target.widths}, 0.0))
    engine, work = make_engine(), request(CODE * 2, max_tokens=24)
    engine.prepare(work)
    _, hurried = engine._begin(work)
    while hurried.finish(NoRules(), Limits(24)) is None:
        hurried.step(0.0)
    drafted = make_engine().write(work, NoRules(), 24)
    assert hurried.tokens[:24] == drafted.tokens[:24]
    assert (hurried.stats.num_drafted, drafted.stats.num_drafted > 0) == (0, True)


@pytest.mark.parametrize("is_cold", [True, False])
def test_a_machine_that_was_busy_is_not_taken_for_slow_for_ever(
    make_engine: Make, target: LanguageModel, monkeypatch: pytest.MonkeyPatch, is_cold: bool
) -> None:
    """No time passes between two keys, so background work cannot correct the estimate."""
    hour_ms = 3.6e6
    slow = replace(target.findings, pass_ms=dict.fromkeys(target.widths, hour_ms), chunk_ms=2 * hour_ms)
    engine, asked = make_engine(), request(CODE, deadline_ms=100.0, patience_ms=1_500.0)
    if not is_cold:
        engine.prepare(asked)
    monkeypatch.setattr(target, "findings", slow)
    monkeypatch.setattr(target, "clock", PassClock(slow.pass_ms, 0.0))
    assert engine.complete(asked).text
