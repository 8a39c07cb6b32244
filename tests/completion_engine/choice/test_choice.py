"""Which model `auto` is: facts and past measurements in, a model, a reason and a price out."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from completion_engine.choice.choice import (
    BUDGET_P95_MS,
    DISK_MARGIN_BYTES,
    HEADROOM_BYTES,
    PASSES_AT_P95,
    PASSES_AT_P95_DRAFTED,
    TRUSTED_LOADS,
    Choice,
    Machine,
    Passes,
    choose,
)
from completion_engine.models.catalogue import CATALOGUE, ModelSpec

GB = 10**9


def spec(name: str, num_packed_bytes: int) -> ModelSpec:
    return ModelSpec(
        id=name,
        description="",
        licence="",
        file_name="",
        num_bytes=num_packed_bytes,
        sha256="",
        num_bf16_bytes=3 * num_packed_bytes,
        num_packed_bytes=num_packed_bytes,
        num_position_bytes=10_000,
    )


SMALL, MIDDLE, LARGE = (spec(name, size * GB) for name, size in (("small", 1), ("middle", 2), ("large", 8)))
SIZES = [SMALL, MIDDLE, LARGE]
ROOMY = Machine(100 * GB, 100 * GB, with_drafter=frozenset({"small", "middle", "large"}))
# The middle one's passes take twice, the large one's eight times as long.
QUICK = {"small": Passes(BUDGET_P95_MS / PASSES_AT_P95_DRAFTED / 10, 1)}
FAIR = {"small": Passes(BUDGET_P95_MS / PASSES_AT_P95_DRAFTED / 3, 1)}
SLOW = {"small": Passes(BUDGET_P95_MS, TRUSTED_LOADS)}
SMALL_BYTES, MIDDLE_BYTES = (size * GB + 7 * 2048 * 10_000 for size in (1, 2))


class Case(NamedTuple):
    """The facts and the expected choice; `why` stands in the reason or in the price of the next one."""

    name: str
    machine: Machine
    passes: dict[str, Passes]
    target: str
    start: str
    next_up: str
    why: str = ""
    refused: dict[str, str] | None = None


CASES = [
    Case("nothing is measured yet", ROOMY, {}, "small", "small", "middle", "until a first model runs"),
    Case("all is there", ROOMY, QUICK, "large", "small", "", "the largest model"),
    Case(
        "quick enough for two",
        ROOMY,
        FAIR,
        "middle",
        "small",
        "large",
        "more than 5 % of its answers take longer than 120 ms",
    ),
    Case(
        "too slow for any",
        ROOMY,
        SLOW,
        "small",
        "small",
        "middle",
        "small is the smallest model; more than 5 %",
    ),
    Case(
        "the smallest runs",
        replace(ROOMY, running="small"),
        SLOW,
        "small",
        "small",
        "middle",
        "is the smallest",
    ),
    Case("it is here", replace(ROOMY, ready=frozenset({"large"})), QUICK, "large", "large", ""),
    Case("one below is here", replace(ROOMY, ready=frozenset({"middle"})), QUICK, "large", "middle", ""),
    Case(
        "no drafter comes with it",
        replace(ROOMY, with_drafter=frozenset({"small"})),
        {"small": Passes(BUDGET_P95_MS / PASSES_AT_P95_DRAFTED / 2, 1)},
        "small",
        "small",
        "middle",
        "no trained drafter",
    ),
    Case(
        "memory to the byte",
        replace(ROOMY, free_memory_bytes=MIDDLE_BYTES + HEADROOM_BYTES),
        QUICK,
        "middle",
        "small",
        "large",
        "of memory is free",
    ),
    Case(
        "a byte of memory is missing",
        replace(ROOMY, free_memory_bytes=MIDDLE_BYTES + HEADROOM_BYTES - 1),
        QUICK,
        "small",
        "small",
        "middle",
        "3.6 GB of memory is free, and 1.5 GB of it is reserved for other programs",
    ),
    Case(
        "disk to the byte",
        replace(ROOMY, free_disk_bytes=10 * GB + DISK_MARGIN_BYTES),
        QUICK,
        "middle",
        "small",
        "large",
        "GB of disk is free",
    ),
    Case(
        "what is here needs no disk",
        replace(ROOMY, free_disk_bytes=0, ready=frozenset({"middle"})),
        QUICK,
        "middle",
        "middle",
        "large",
    ),
    Case(
        "a file that is here needs room for what is made of it alone",
        replace(ROOMY, free_disk_bytes=8 * GB + DISK_MARGIN_BYTES, fetched=frozenset({"middle"})),
        QUICK,
        "middle",
        "small",
        "large",
    ),
    Case(
        "what runs takes no further memory",
        replace(ROOMY, free_memory_bytes=0, running="middle"),
        QUICK,
        "middle",
        "middle",
        "large",
        "of memory is free",
    ),
    Case(
        "what runs is not given up for a smaller one",
        replace(ROOMY, running="middle"),
        SLOW,
        "middle",
        "middle",
        "large",
        "middle stays until the next start, because it is loaded; more than 5 %",
    ),
    Case(
        "at a start it is",
        ROOMY,
        {**QUICK, "middle": Passes(BUDGET_P95_MS, TRUSTED_LOADS), "large": Passes(500, TRUSTED_LOADS)},
        "small",
        "small",
        "middle",
    ),
    Case(
        "one slow load is no verdict",
        ROOMY,
        {**FAIR, "middle": Passes(BUDGET_P95_MS, TRUSTED_LOADS - 1)},
        "middle",
        "small",
        "large",
    ),
    Case("own passes speak louder", ROOMY, {**SLOW, "large": Passes(1, TRUSTED_LOADS)}, "large", "small", ""),
    Case(
        "what was refused is out",
        ROOMY,
        QUICK,
        "middle",
        "small",
        "large",
        "it is damaged",
        refused={"large": "it is damaged"},
    ),
]


def chosen(case: Case) -> Choice:
    return choose(case.machine, SIZES, case.passes, case.refused)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_largest_model_that_the_machine_carries_is_chosen(case: Case) -> None:
    choice = chosen(case)
    next_up = choice.next_up.target if choice.next_up else ""
    assert (choice.target, choice.start, next_up) == (case.target, case.start, case.next_up)
    assert case.why in f"{choice.reason}. {choice.next_summary}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_next_one_up_always_says_its_price_and_what_stands_in_its_way(case: Case) -> None:
    choice = chosen(case)
    assert choice.target in choice.reason
    if choice.next_up is not None:
        assert choice.next_up.obstacles
        assert choice.next_summary.startswith(f"{choice.next_up.target} needs ")
        assert choice.next_up.obstacles[0] in choice.next_summary


def test_a_drafter_lowers_the_price() -> None:
    with_one, without = (
        choose(replace(ROOMY, with_drafter=frozenset(names)), [SMALL, MIDDLE], SLOW).next_up
        for names in ({"middle"}, set[str]())
    )
    assert with_one and without and with_one.p95_ms and without.p95_ms
    assert without.p95_ms / with_one.p95_ms == pytest.approx(PASSES_AT_P95 / PASSES_AT_P95_DRAFTED)


def test_bits_that_the_device_holds_count() -> None:
    in_bf16 = choose(replace(ROOMY, weight_bits=16), [SMALL, MIDDLE], SLOW).next_up
    assert in_bf16 and in_bf16.memory_bytes == 6 * GB + 7 * 2048 * 10_000


@pytest.mark.parametrize(
    ("spare_bytes", "running", "target", "beside"),
    [
        pytest.param(0, "", "middle", "small", id="memory for both, to the byte"),
        pytest.param(-1, "", "middle", "", id="a byte is missing"),
        pytest.param(-SMALL_BYTES, "small", "middle", "small", id="the small one is in memory already"),
        pytest.param(-SMALL_BYTES - 1, "small", "small", "", id="no memory for the larger one"),
    ],
)
def test_the_smallest_stays_beside_a_larger_one_where_memory_holds_both(
    spare_bytes: int, running: str, target: str, beside: str
) -> None:
    free = MIDDLE_BYTES + SMALL_BYTES + HEADROOM_BYTES + spare_bytes
    choice = choose(replace(ROOMY, free_memory_bytes=free, running=running), [SMALL, MIDDLE], QUICK)
    assert (choice.target, choice.beside) == (target, beside)


def test_the_catalogue_says_what_a_price_needs() -> None:
    for known in CATALOGUE.values():
        assert not known.may_be_chosen or (known.num_packed_bytes and known.num_position_bytes), known.id


@pytest.mark.parametrize(("weight_bits", "ratio"), [(0, 2.57), (8, 2.82), (16, 2.82)])
def test_passes_of_another_model_are_scaled_by_the_bytes_that_are_read(
    weight_bits: int, ratio: float
) -> None:
    """A CPU packs weights as their files say; a GPU holds all in the same width."""
    small, large = CATALOGUE["qwen2.5-coder-0.5b"], CATALOGUE["qwen2.5-coder-1.5b"]
    machine = replace(ROOMY, weight_bits=weight_bits)
    price = choose(machine, [small, large], {small.id: Passes(BUDGET_P95_MS, 1)}).next_up
    assert price
    assert price.p95_ms == pytest.approx(PASSES_AT_P95 * BUDGET_P95_MS * ratio, rel=0.01)
