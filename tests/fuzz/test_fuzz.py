"""A few of the hostile inputs of each kind; `make fuzz` runs many."""

from __future__ import annotations

import importlib
import random

import pytest

from tests.fuzz.__main__ import GROUPS
from tests.fuzz.driver import Budget, run_kind
from tests.fuzz.guided import ByteDraws

KINDS = [kind for group in GROUPS.values() for kind in group]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_inputs_cost_what_they_may_and_break_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path_factory.mktemp("index")))
    check = importlib.import_module(f"tests.fuzz.{kind}").check
    result = run_kind(kind, check, Budget(200, 1.5), "every day")
    assert result.num_inputs > 0
    assert result.failures == []


def test_all_kinds_have_a_share_of_the_inputs() -> None:
    assert sum(share for group in GROUPS.values() for share in group.values()) == 1000


def test_an_input_that_breaks_its_oracle_is_named_by_its_seed() -> None:
    def check(_rng: object) -> None:
        raise AssertionError("broken")

    result = run_kind("kind", check, Budget(3, 10), "7")
    assert [failure.partition("\n")[0] for failure in result.failures] == ["7:kind:0", "7:kind:1", "7:kind:2"]


@pytest.mark.parametrize("data", [b"", b"\0", bytes(range(256)), b"\xff" * 500])
def test_bytes_give_the_same_numbers_each_time_and_never_run_out(data: bytes) -> None:
    def draws(rng: random.Random) -> list[object]:
        return [
            rng.random(),
            rng.randrange(7),
            rng.choice("abc"),
            rng.sample(range(9), 3),
            rng.randbytes(300),
        ]

    assert draws(ByteDraws(data)) == draws(ByteDraws(data))


def test_a_changed_byte_changes_a_draw() -> None:
    assert [ByteDraws(bytes([value])).randrange(256) for value in (0, 3, 255)] == [0, 3, 255]
