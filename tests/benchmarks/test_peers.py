"""The comparison with peers: turns, clocks, figures, and one whole run on the tiny target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.load_engine import load_engine
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import CATALOGUE
from completion_engine.models.gguf_preparation import write_manifest
from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.commands.local_engine import Sample
from tests.benchmarks.peers import PeerOptions, measure_peers
from tests.benchmarks.peers.ours import our_peers
from tests.benchmarks.peers.reference import find_assistant, transformers_peers
from tests.benchmarks.peers.report import (
    COLUMNS,
    Spread,
    absent_lines,
    num_same,
    ratios,
    summarise,
    table_rows,
)
from tests.benchmarks.peers.runs import Absent, PeerTask, Run, take_turns, up_to_end
from tests.benchmarks.peers.tasks import builder_for, prompt_tokens, tasks_for, widened
from tests.benchmarks.samples import from_folder, repository_index

SOURCES = Path(__file__).parents[2] / "completion_engine"


def run_of(tokens: Sequence[int], decode_ms: float, *, num_first: int = 1, num_passes: int = 1) -> Run:
    return Run(tuple(tokens), num_first, 5.0, decode_ms, num_passes)


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ([5, 6, 7], (5, 6, 7)),
        ([5, 6, 7, 8, 9], (5, 6, 7, 8)),  # a last pass may write beyond the limit
        ([5, 0, 7], (5, 0)),
        ([5, 6, 7, 8, 0], (5, 6, 7, 8)),
        ([0, 0], (0,)),
        ([], ()),
    ],
)
def test_tokens_count_up_to_the_limit_and_the_first_end(tokens: list[int], kept: tuple[int, ...]) -> None:
    assert up_to_end(tokens, 4, {0}) == kept


def test_what_the_first_pass_wrote_is_not_timed() -> None:
    assert run_of([1, 2, 3, 4, 5], 30.0, num_first=2).ms_per_token == 10.0
    assert run_of([1, 2], 30.0, num_first=2).ms_per_token == 0.0


@dataclass
class Diary:
    """A peer that notes when it is asked."""

    name: str
    asked: list[tuple[str, int]]

    def write(self, task: PeerTask, max_tokens: int) -> Run:
        self.asked.append((self.name, task.tokens[0]))
        return run_of(task.tokens, 1.0)


def test_each_prompt_is_begun_by_another_peer() -> None:
    asked: list[tuple[str, int]] = []
    told: list[tuple[int, int]] = []
    peers = [Diary(name, asked) for name in "abc"]
    runs = take_turns(
        peers, [PeerTask((at,)) for at in range(4)], 8, lambda done, total: told.append((done, total))
    )
    order = ["".join(name for name, prompt in asked if prompt == at) for at in range(4)]
    assert order == ["abc", "bca", "cab", "abc"]
    assert {name: [run.tokens for run in own] for name, own in runs.items()} == {
        name: [(0,), (1,), (2,), (3,)] for name in "abc"
    }
    assert told[-1] == (12, 12)


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=300))
def test_a_spread_is_in_order_and_its_first_percentile_was_measured(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread is not None
    assert spread.p1 <= spread.low <= spread.median <= spread.high
    assert any(math.isclose(spread.p1, value, abs_tol=1e-3) for value in values)


def test_the_first_percentile_of_few_prompts_is_the_worst_one() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.5, 2.5, 1.0)
    assert Spread.of([]) is None


def test_ratios_go_prompt_by_prompt_and_leave_out_what_was_not_decoded() -> None:
    baseline = [run_of([1, 2, 3], 20.0), run_of([1, 2, 3], 40.0), run_of([1, 2], 9.0)]
    runs = [run_of([1, 2, 3], 10.0), run_of([1, 2, 3], 80.0), run_of([1, 2], 9.0, num_first=2)]
    assert ratios(runs, baseline) == [2.0, 0.5]


def test_texts_are_compared_by_what_they_spell() -> None:
    def spell(tokens: Sequence[int]) -> str:
        return "".join("" if token == 0 else "ab"[token % 2] for token in tokens)

    left = [run_of([1, 2], 1.0), run_of([1, 0], 1.0), run_of([1], 1.0)]
    right = [run_of([3, 4], 1.0), run_of([1], 1.0), run_of([2], 1.0)]
    assert num_same(left, right, spell) == 2


def found_of(**runs: list[Run]) -> dict[str, Any]:
    rows = summarise(runs, "plain", "greedy", lambda tokens: str(list(tokens)))
    num_prompts = len(runs["plain"])
    return {"num_prompts": num_prompts, "peers": rows, "absent": [{"name": "x", "reason": "no x here"}]}


def test_the_table_shows_each_peer_and_why_another_is_missing() -> None:
    found = found_of(
        greedy=[run_of([1, 2, 3], 40.0, num_passes=2), run_of([1, 2, 3], 44.0, num_passes=2)],
        plain=[run_of([1, 2, 3], 20.0, num_passes=2), run_of([1, 2, 4], 22.0, num_passes=2)],
        drafted=[run_of([1, 2, 3], 10.0), run_of([1, 2, 4], 11.0)],
    )
    rows = {row[0]: row for row in table_rows(found)}
    assert all(len(row) == len(COLUMNS) for row in rows.values())
    assert rows["drafted"] == (
        "drafted",
        "5.2 (5.1 - 5.4)",
        "2.00",
        "2.00 (2.00 - 2.00), 2.00",
        "4.00 (4.00 - 4.00), 4.00",
        "1 of 2",
        "2 of 2",
    )
    assert absent_lines(found) == ["x: not measured, no x here"]


def test_a_peer_that_never_decoded_has_no_figures_instead_of_wrong_ones() -> None:
    ended = [run_of([1], 0.1, num_passes=0)]
    row = table_rows(found_of(greedy=ended, plain=ended))[0]
    assert row[1:5] == ("-", "0.00", "-", "-")


def test_without_transformers_nothing_is_compared_with_it() -> None:
    row = table_rows(found_of(plain=[run_of([1, 2], 9.0)], drafted=[run_of([1, 2], 3.0)]))[1]
    assert row[3:] == ("3.00 (3.00 - 3.00), 3.00", "-", "-", "1 of 1")


def test_a_hole_takes_the_next_lines_and_loses_nothing() -> None:
    for sample in from_folder(SOURCES, 20):
        wide = widened(sample, 5)
        assert wide.prefix + wide.expected + wide.suffix == sample.prefix + sample.expected + sample.suffix
        assert wide.expected.count("\n") == min(5, sample.suffix.count("\n"))


def test_a_hole_of_several_lines_stays_as_it_is() -> None:
    sample = Sample("n", "n", "python", "def f():\n", "\n    return x\n", "    x = 1\n    y = 2")
    assert widened(sample) == sample
    short = replace(sample, expected="    x = 1")
    assert widened(short, 5) == replace(sample, expected="    x = 1\n    return x\n", suffix="")


@pytest.fixture(scope="module")
def plain_engine(tiny_model_dir: Path) -> CompletionEngine:
    return load_engine(EngineConfig(target=str(tiny_model_dir), drafters=(), num_slots=1))


def test_prompts_end_at_the_cursor_with_nothing_healed(plain_engine: CompletionEngine) -> None:
    tokenizer, builder = plain_engine.tokenizer, builder_for(plain_engine)
    for sample in from_folder(SOURCES, 10):
        text = tokenizer.decode(list(prompt_tokens(builder, tokenizer, sample)))
        assert text.endswith(sample.prefix[-40:])


def test_a_prompt_that_was_drawn_twice_is_measured_once(plain_engine: CompletionEngine) -> None:
    samples = from_folder(SOURCES, 2)
    assert tasks_for(plain_engine, [*samples, *samples]) == tasks_for(plain_engine, samples)


def test_our_engines_write_the_same_tokens_and_count_their_passes(plain_engine: CompletionEngine) -> None:
    index = repository_index(SOURCES, plain_engine.tokenizer.encode_many)
    peers = [peer for peer in our_peers(plain_engine, index=index) if not isinstance(peer, Absent)]
    tasks = tasks_for(plain_engine, from_folder(SOURCES, 2))
    assert "Slipstream default with index" in {peer.name for peer in peers}
    runs = take_turns(peers, tasks, 12)
    plain = runs["Slipstream plain"]
    assert {name: [run.tokens for run in own] for name, own in runs.items()} == {
        name: [run.tokens for run in plain] for name in runs
    }
    assert [run.num_passes for run in plain] == [run.num_decoded for run in plain]
    assert all(run.first_ms > 0 and run.decode_ms > 0 for own in runs.values() for run in own)


def test_a_few_of_our_engines_are_plain_and_default(plain_engine: CompletionEngine) -> None:
    assert [peer.name for peer in our_peers(plain_engine, few=True)] == [
        "Slipstream plain",
        "Slipstream default",
    ]


def test_transformers_counts_what_each_pass_handed_over(
    plain_engine: CompletionEngine, tiny_model_dir: Path
) -> None:
    found = transformers_peers(tiny_model_dir, plain_engine.target, plain_engine.tokenizer, tiny_model_dir)
    peers = [peer for peer in found if not isinstance(peer, Absent)]
    tasks = tasks_for(plain_engine, from_folder(SOURCES, 1))
    runs = {name: own[0] for name, own in take_turns(peers, tasks, 12).items()}
    greedy, assisted = runs["transformers greedy"], runs["transformers assisted"]
    assert (greedy.num_first, greedy.num_passes) == (1, len(greedy.tokens) - 1)
    assert assisted.num_passes < greedy.num_passes  # the target as its own assistant guesses well
    assert all(0 < len(run.tokens) <= 12 for run in runs.values())


def stored_under(root: Path, model_id: str, write_tiny: Callable[..., Path], num_layers: int) -> Path:
    folder = write_tiny(root / model_id / "prepared", num_layers=num_layers)
    write_manifest(folder, {"sha256": CATALOGUE[model_id].sha256})
    return folder


def test_the_assistant_is_smaller_and_has_the_same_tokenizer(
    tmp_path: Path, write_tiny: Callable[..., Path], tiny_model_dir: Path
) -> None:
    tokenizer = load_tokenizer(tiny_model_dir)
    catalogue = {
        model_id: replace(CATALOGUE[model_id], num_bf16_bytes=num_bytes)
        for model_id, num_bytes in (("smollm2-135m", 1), ("qwen2.5-coder-1.5b", 1 << 40))
    }
    store = ModelStore(tmp_path, catalogue=catalogue)
    assert find_assistant(tiny_model_dir, tokenizer, store) == (
        "no smaller model with the same tokenizer in the model store; "
        "not fetched, so not looked at: smollm2-135m"
    )
    stored_under(tmp_path, "qwen2.5-coder-1.5b", write_tiny, 1)
    small = stored_under(tmp_path, "smollm2-135m", write_tiny, 1)
    assert find_assistant(tiny_model_dir, tokenizer, store) == small


def test_a_whole_run_on_the_tiny_target(tiny_model_dir: Path) -> None:
    told: list[str] = []
    found = measure_peers(
        from_folder(SOURCES, 3),
        PeerOptions(str(tiny_model_dir), 10, sources=SOURCES),
        lambda what, *_: told.append(what),
    )
    rows = {row["name"]: row for row in found["peers"]}
    assert {
        "transformers greedy",
        "transformers prompt lookup",
        "Slipstream plain",
        "Slipstream ngram",
        "Slipstream default with index",
    } <= set(rows)
    assert found["num_prompts"] == 3
    assert all(row["same_as_plain"] == 3 for name, row in rows.items() if name.startswith("Slipstream"))
    assert rows["transformers greedy"]["over_greedy"]["median"] == 1.0
    assert rows["Slipstream plain"]["tokens_per_pass"] == 1.0
    missing = {absent["name"]: absent["reason"] for absent in found["absent"]}
    assert "llama.cpp" in missing
    assert (
        "not made from a GGUF file" in missing["llama.cpp prompt lookup"]
        or "llama-cpp-python" in missing["llama.cpp"]
    )
    assert told[-1] == "Comparing"
