"""A later load uses the findings of an earlier one, and runs no pass for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from completion_engine.target_model import measuring, threads
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel


class Counting:
    """A decoder that counts the passes that it runs."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self.num_passes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def forward(self, *args: Any) -> Any:
        self.num_passes += 1
        return self._decoder.forward(*args)


def load_again(
    target: LanguageModel, *, are_final: bool = True, **changes: Any
) -> tuple[LanguageModel, Counting]:
    decoder = Counting(target.decoder)
    known = replace(target.findings, are_final=are_final, **changes)
    return LanguageModel(decoder, target.device, target.precision, target.capacity, known=known), decoder


def test_a_target_that_is_known_is_the_same_target(target: LanguageModel) -> None:
    again, _ = load_again(target)
    assert dict(again.findings.pass_ms) == dict(target.findings.pass_ms)
    for name in ("exactness", "verifies_trees", "verifies_drafts", "widths", "max_branches"):
        assert getattr(again, name) == getattr(target, name)
    caches = [KVCache(target.cache_shape) for _ in range(2)]
    models = zip((target, again), caches, strict=True)
    logits = [model.forward([1, 2, 3], cache, 3) for model, cache in models]
    assert logits[0].equal(logits[1])


def test_a_target_that_is_known_runs_no_pass_until_it_rehearses(target: LanguageModel) -> None:
    again, decoder = load_again(target)
    assert decoder.num_passes == 0
    for _ in range(2):  # the second time all is ready
        again.rehearse()
    assert decoder.num_passes == 2 + (again.max_branches > 1)


def test_a_target_that_was_measured_has_nothing_to_rehearse(target: LanguageModel) -> None:
    again, decoder = load_again(target, pass_ms={})
    num_passes = decoder.num_passes
    again.rehearse()
    assert decoder.num_passes == num_passes > 0


def test_times_that_something_disturbed_are_measured_again(target: LanguageModel) -> None:
    again, decoder = load_again(target, are_final=False, pass_ms={})
    assert decoder.num_passes > len(again.widths) + 1
    assert again.findings.pass_ms.keys() == set(again.widths)


@pytest.mark.parametrize(("num_free", "are_measured"), [(1, False), (2, True)])
def test_disturbed_times_do_while_others_would_disturb_new_ones(
    target: LanguageModel, monkeypatch: pytest.MonkeyPatch, num_free: int, are_measured: bool
) -> None:
    monkeypatch.setattr(threads, "_MOST", 2)
    before = threads.num_threads_here()
    threads.use_threads(num_free)
    try:
        again, decoder = load_again(target, are_final=False)
        assert (decoder.num_passes > 0) == are_measured
        assert (again.findings.pass_ms is target.findings.pass_ms) == (not are_measured)
    finally:
        threads.use_threads(before)


def test_times_of_other_widths_are_measured_again(target: LanguageModel) -> None:
    again, _ = load_again(target, pass_ms={1: 1.0})
    assert again.findings.pass_ms.keys() == set(again.widths)


def test_a_prompts_token_costs_what_a_chunk_took(target: LanguageModel) -> None:
    assert target.findings.chunk_ms > 0
    quick = {1: 10.0, 2: 10.0, 4: 10.0, 8: 12.0, 16: 16.0, 24: 24.0}
    known, _ = load_again(target, pass_ms=quick, chunk_ms=73.0)
    assert known.prompt_token_ms == pytest.approx(73 / 64)
    assert [known.prefill_ms(num_rows) for num_rows in (1, 32, 64)] == pytest.approx([10, 41, 73])
    assert [known.rows_within(ms) for ms in (0, 20, 41, 48.9, 72, 73, 500)] == [8, 8, 32, 32, 56, 64, 64]
    known.record(10.0, 20.0)  # passes became slower
    assert known.prompt_token_ms > 73 / 64


def test_a_verdict_that_is_known_holds(target: LanguageModel) -> None:
    again, _ = load_again(target, is_row_invariant=False, verifies_drafts=False, verifies_trees=False)
    assert again.exactness == "no drafts"
    assert not again.verifies_trees


def test_noise_makes_no_branch_cost_less_than_nothing(
    target: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, _ = load_again(target)

    def times(_: LanguageModel, shapes: dict[Any, Any], **__: Any) -> dict[Any, list[float]]:
        return {shape: [1.0 if shape in again.widths else 0.5] for shape in shapes}

    monkeypatch.setattr(measuring, "_time_passes", times)
    assert measuring.measure(again).branch_ms == 0
