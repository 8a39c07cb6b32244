"""A few of the hostile inputs of a repository; `python -m tests.fuzz repository` runs many."""

from __future__ import annotations

import importlib

import pytest

from tests.fuzz.__main__ import GROUPS
from tests.fuzz.driver import Budget, run_kind


@pytest.mark.parametrize("kind", GROUPS["repository"])
def test_hostile_inputs_cost_what_they_may_and_break_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path_factory.mktemp("index")))
    check = importlib.import_module(f"tests.fuzz.{kind}").check
    result = run_kind(kind, check, Budget(200, 1.5), "every day")
    assert result.num_inputs > 0
    assert result.failures == []


def test_an_input_that_breaks_its_oracle_is_named_by_its_seed() -> None:
    def check(_rng: object) -> None:
        raise AssertionError("broken")

    result = run_kind("kind", check, Budget(3, 10), "7")
    assert [failure.partition("\n")[0] for failure in result.failures] == ["7:kind:0", "7:kind:1", "7:kind:2"]
