"""Traces hold every position of a real completion; a replay follows the truth; hindsight is never beaten."""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.config import EngineConfig
from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DraftToken
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import load_tokenizer
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.passes import Costs
from tests.benchmarks.drafting.arms import acceptance, measure_drafting
from tests.benchmarks.drafting.hindsight import (
    best_arm,
    best_arm_of_each_prompt,
    either_or_oracle,
    nothing,
    one_tree_oracle,
)
from tests.benchmarks.drafting.plot import write_drafting_plot
from tests.benchmarks.drafting.record import record
from tests.benchmarks.drafting.replay import ALL, Arm, arms_of, replay
from tests.benchmarks.drafting.trace import Trace, TracedDrafts, Traces, load, save
from tests.benchmarks.samples import from_folder

SOURCES = Path(__file__).parents[2] / "completion_engine"
COSTS = Costs({8: 30.0, 16: 36.0}, branch_ms=2.0, max_branches=4)
TRUTH = tuple(range(100, 124))


def chain(tokens: Sequence[int], origin: str = "prompt") -> Draft:
    return tuple(DraftToken(token, "ngram", origin, 9 + at, 1.0, at - 1) for at, token in enumerate(tokens))


def traces_of(drafts_at: Sequence[Sequence[Draft]], tokens: Sequence[int] = TRUTH) -> Traces:
    asked = tuple(TracedDrafts(tuple(drafts), {}) for drafts in drafts_at)
    return Traces("tiny", "cpu", COSTS, {}, (Trace("one", tuple(tokens), asked),))


def right(num_tokens: int, origin: str = "prompt") -> list[Draft]:
    """At every position the next true tokens."""
    return [chain(TRUTH[at : at + num_tokens], origin) for at in range(len(TRUTH))]


class Guesser(Drafter):
    """Guesses two tokens everywhere, so that at least one of them is wrong."""

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        return [chain([300]), chain([301])][:max_tokens]


@pytest.fixture(scope="module")
def recorded(tiny_model_dir: Path) -> tuple[Traces, list[int]]:
    """Two completions by the tiny target; its drafter has read the second one's answer before."""
    config = EngineConfig(target=str(tiny_model_dir), drafters=(), prefix_chars=400, suffix_chars=200)
    target = load_language_model(tiny_model_dir, "cpu", "auto", 512)
    engine = CompletionEngine(config, target, load_tokenizer(tiny_model_dir))
    samples = from_folder(SOURCES, 2)
    ngram = NgramDrafter()
    plain = record(engine, {"silent": Drafter()}, samples, 20, None).traces
    ngram.begin([], KVCache(target.cache_shape))
    ngram.extend(plain[1].tokens)
    ngram.end()
    found = record(engine, {"ngram": ngram, "guesser": Guesser()}, samples, 20, None)
    return found, [len(trace.tokens) for trace in plain]


def test_every_position_is_asked_and_nothing_is_accepted(
    recorded: tuple[Traces, list[int]],
) -> None:
    found, lengths = recorded
    assert [len(trace.tokens) for trace in found.traces] == lengths
    assert all(len(trace.asked) == len(trace.tokens) > 0 for trace in found.traces)
    assert found.costs.max_branches > 1


def test_drafts_name_what_the_target_then_wrote(recorded: tuple[Traces, list[int]]) -> None:
    trace = recorded[0].traces[1]
    hits = [
        any(draft[0].token == token for draft in asked.drafts)
        for asked, token in zip(trace.asked, trace.tokens, strict=True)
    ]
    assert sum(hits) > len(hits) // 2
    assert all(asked.ms["ngram"] > 0 for asked in trace.asked if asked.drafts)


def test_traces_come_back_as_they_were_saved(tmp_path: Path, recorded: tuple[Traces, list[int]]) -> None:
    save(recorded[0], tmp_path / "traces.gz")
    assert load(tmp_path / "traces.gz") == recorded[0]


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", *(gzip.compress(json, mtime=0) for json in (b"{}", b'{"format": 9}\n', b"[1]"))],
)
def test_a_file_without_traces_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "traces.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="no traces"):
        load(path)


@pytest.mark.parametrize(("width", "num_passes"), [(8, 3), (16, 2)])
def test_a_drafter_that_is_always_right_fills_every_pass(width: int, num_passes: int) -> None:
    traces = traces_of([[draft] for draft in right(20)])
    (done,) = replay(traces, [Arm("prompt", is_tree=False, widths=(width,))])
    assert (done.outcome.num_tokens, done.outcome.num_passes) == (len(TRUTH), num_passes)
    assert done.outcome.ms == num_passes * COSTS.pass_ms[width]


def test_a_drafter_that_is_always_wrong_costs_what_no_drafter_costs() -> None:
    traces = traces_of([[chain([1, 2, 3])]] * len(TRUTH))
    (done,) = replay(traces, [Arm("prompt", is_tree=False, widths=(8, 16))])
    assert done.outcome.num_passes == nothing(traces).outcome.num_passes == len(TRUTH)
    assert done.outcome.ms_per_token == nothing(traces).outcome.ms_per_token == 30.0


def test_branches_are_paid_for() -> None:
    two = [[chain([1, 2, 3]), draft] for draft in right(4, "recent")]
    (done,) = replay(traces_of(two), [Arm(ALL, is_tree=True, widths=(8,))])
    assert done.outcome.ms > done.outcome.num_passes * COSTS.pass_ms[8]


def neural(tokens: Sequence[int], share: float) -> Draft:
    return tuple(DraftToken(token, "neural", "model", at, share, at - 1) for at, token in enumerate(tokens))


@pytest.mark.parametrize(("step_ms", "num_passes", "num_steps"), [(1.0, 3, 21), (40.0, 24, 0)])
def test_a_costly_drafter_is_asked_where_its_steps_pay(
    step_ms: float, num_passes: int, num_steps: int
) -> None:
    drafts = [[neural(TRUTH[at : at + 7], 0.95)] for at in range(len(TRUTH))]
    traces = replace(traces_of(drafts), step_ms={"neural": step_ms})
    (done,) = replay(traces, [Arm(ALL, is_tree=False, widths=(8,))])
    assert done.outcome.num_passes == num_passes
    assert done.outcome.num_costly == (num_passes if num_steps else 0)
    assert done.outcome.ms == num_passes * 30.0 + num_steps * step_ms


def test_an_oracle_pays_for_the_steps_that_it_needs() -> None:
    """Two tokens cost a pass each, or one pass and one step."""
    tokens = [[neural(TRUTH[:1], 0.5)], []]
    for step_ms, ms in ((1.0, 31.0), (50.0, 60.0)):
        traces = replace(traces_of(tokens, TRUTH[:2]), step_ms={"neural": step_ms})
        assert one_tree_oracle(traces).ms == ms


def test_either_or_takes_the_source_that_is_right_each_time() -> None:
    """Two sources that are right by turns: alone each fails every other time."""
    wrong = chain([1, 2, 3, 4, 5, 6, 7])
    by_turns = [
        [draft, chain(range(7), "recent")] if at % 16 < 8 else [wrong, chain(TRUTH[at : at + 7], "recent")]
        for at, draft in enumerate(right(7))
    ]
    traces = traces_of(by_turns)
    arms = [Arm(origin, is_tree=False, widths=(8,)) for origin in ("prompt", "recent")]
    alone = [one.outcome.num_passes for one in replay(traces, arms)]
    assert either_or_oracle(traces, arms).num_passes == 3
    assert min(alone) > 3


def test_hindsight_may_choose_once_for_all_or_for_each_prompt() -> None:
    """Two prompts, two sources, each right on one of them; the second prompt is the longer one."""
    sources = ("prompt", "recent")
    traces = tuple(
        Trace(origin, TRUTH[start:], tuple(TracedDrafts((draft,), {}) for draft in right(7, origin)[start:]))
        for origin, start in zip(sources, (12, 0), strict=True)
    )
    both = Traces("tiny", "cpu", COSTS, {}, traces)
    done = [nothing(both), *replay(both, [Arm(origin, is_tree=False, widths=(8,)) for origin in sources])]
    assert best_arm(done).arm.origin == "recent"
    assert best_arm(done).outcome.num_passes == 12 + 3
    assert best_arm_of_each_prompt(done).num_passes == 2 + 3


guesses = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 6), st.floats(0, 1)), max_size=8)


def tree(drawn: list[tuple[int, int, float]], origin: str) -> Draft:
    return tuple(
        DraftToken(token, "ngram", origin, at, share, min(parent, at - 1))
        for at, (token, parent, share) in enumerate(drawn)
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), guesses, guesses), min_size=1, max_size=12))
def test_no_way_of_drafting_beats_the_oracle_that_sees_all_drafts(drawn: list[tuple]) -> None:
    drafts = [[tree(left, "prompt"), tree(right, "recent")] for _, left, right in drawn]
    traces = traces_of(drafts, [token for token, _, _ in drawn])
    arms = arms_of(traces)
    best = one_tree_oracle(traces)
    either = either_or_oracle(traces, arms)
    assert best.num_tokens == either.num_tokens == len(drawn)
    assert best.ms <= either.ms <= nothing(traces).outcome.ms
    done = replay(traces, arms)
    assert best_arm(done).outcome.ms >= best_arm_of_each_prompt(done).ms >= best.ms - 1e-9
    for one in done:
        assert one.outcome.num_tokens == len(drawn)
        assert best.ms <= one.outcome.ms + 1e-9


def test_guesses_behind_a_wrong_one_are_not_counted() -> None:
    found = acceptance(traces_of([[chain([100, 7, 102])], *[[]] * 3], TRUTH[:4]))
    by_depth = [(row["bucket"], row["num_guesses"], row["right"]) for row in found if row["by"] == "depth"]
    assert by_depth == [("0", 1, 1.0), ("1", 1, 0.0)]


def test_the_policy_has_a_regret_against_each_oracle() -> None:
    found = measure_drafting(traces_of([[draft] for draft in right(20)]))
    assert found["num_tokens"] == len(TRUTH)
    assert set(found["regret"]) == {row["name"] for row in found["oracles"]}
    assert {"nothing", "prompt, chain", "all sources, tree"} <= {row["name"] for row in found["arms"]}
    assert found["policy_ms_per_token"] >= found["oracles"][-1]["ms_per_token"]


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs the extra `bench`")
def test_the_picture_shows_every_way_once_and_marks_the_policy(tmp_path: Path) -> None:
    found = measure_drafting(traces_of([[draft] for draft in right(20)]))
    write_drafting_plot(found, tmp_path / "drafting.svg")
    drawn = (tmp_path / "drafting.svg").read_text(encoding="utf-8")
    shown = [line.strip(" <!->") for line in drawn.splitlines() if line.strip().startswith("<!--")]
    assert shown.count("prompt, chain") == shown.count("policy: all sources, tree") == 1
    assert "all sources, tree" not in shown
    assert set(found["regret"]) <= set(shown)
