"""The choice: from facts and past measurements to a model, the reason, and the price of the next one up.

Pure: uses no disk, clock or torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from completion_engine.models.catalogue import ModelSpec

BUDGET_P95_MS = 120.0
"""95 % of warm answers come within this. A suggestion that comes later meets the next key: fast typists leave
120 to 180 ms between two."""

PASSES_AT_P95 = 2.6
"""How many passes of `JUDGED_ROWS` rows the answer takes that 95 % of warm answers are quicker than, with no
trained drafter: `slipstream replay` of the 1.5B on two shared Zen 4 cores, p95 175 ms at 67 ms a pass."""

PASSES_AT_P95_DRAFTED = 2.2
"""The same with a trained drafter: `slipstream replay` of the 1.5B there, p95 104 ms at 48 ms a pass. In
modules of recent releases, where less is repeated, it is 141 ms (docs/measurements.md)."""

JUDGED_ROWS = 8
"""Rows of the pass that a model is judged by: what verifies a usual draft, and what keys typed since add."""

HEADROOM_BYTES = 1_500_000_000
"""Memory that is left free: libraries take 0.7 GB before the first weight, ten million indexed tokens 0.1."""

NUM_CACHES = 7
"""Caches that an engine may hold: those of six places, and one for work beside them."""

PACKED_SHARE = 0.4
"""Size of packed weights in that of bf16, where a catalogue entry does not say it: 0.51 of 1.26 GB (0.5B)."""

DISK_MARGIN_BYTES = 200_000_000
"""What fetching a model leaves free on the disk."""

TRUSTED_LOADS = 3
"""A model's own passes speak alone from so many loads on. Before that a slow measurement may be the machine's
bad moment, and the passes of another model, scaled by size, count too."""

RECENT_LOADS = 5
"""Of so many last loads the quickest speaks: other programs make passes slower, nothing makes them
quicker."""


@dataclass(frozen=True, slots=True)
class Passes:
    """The shortest measured pass of `JUDGED_ROWS` rows at a load on this machine, and the number of loads."""

    ms: float
    num_loads: int


@dataclass(frozen=True, slots=True)
class Machine:
    """The available resources in bytes, and the models that have each property, by id.

    `weight_bits` is what weights are held in, 0 where they are packed as their file says; `capacity` the
    positions of a document's cache. `ready` can be loaded now, of `fetched` the file is here. `running` is in
    memory already, and stays there until a larger one is.
    """

    free_memory_bytes: int
    free_disk_bytes: int
    weight_bits: int = 0
    capacity: int = 2048
    ready: frozenset[str] = frozenset()
    fetched: frozenset[str] = frozenset()
    with_drafter: frozenset[str] = frozenset()
    running: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a model on this machine, and its obstacles: none, or one sentence each.

    `p95_ms` is the 95th percentile latency of warm answers; None while no pass was measured on this machine.
    """

    target: str
    memory_bytes: int
    disk_bytes: int
    fetch_bytes: int
    p95_ms: float | None
    has_drafter: bool
    obstacles: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As a person reads it."""
        disk = f", {_gigabytes(self.disk_bytes)} of disk" if self.disk_bytes else ""
        fetch = f" ({_gigabytes(self.fetch_bytes)} to download)" if self.fetch_bytes else ""
        time = "an unknown time" if self.p95_ms is None else f"up to {self.p95_ms:.0f} ms for an answer"
        return f"{self.target} needs {_gigabytes(self.memory_bytes)} of memory{disk}{fetch} and {time}"


@dataclass(frozen=True, slots=True)
class Choice:
    """The model to run, the one to begin with until it is here, the reason, the price of the next one up.

    `beside` is the smaller model that answers at a place until the larger one is warm there; empty where
    there is none, or no memory for both.
    """

    target: str
    start: str
    reason: str
    next_up: Price | None = None
    beside: str = ""

    @property
    def next_summary(self) -> str:
        """The cost and the obstacles of the next model up; empty if there is none."""
        if self.next_up is None:
            return ""
        return ": ".join(filter(None, (str(self.next_up), "; ".join(self.next_up.obstacles))))

    def as_dict(self) -> dict[str, Any]:
        """For `slipstream/stats`."""
        price = self.next_up
        return {
            "target": self.target,
            "reason": self.reason,
            "next": self.next_summary,
            "next_target": price.target if price else "",
        }


def choose(
    machine: Machine,
    catalogue: Sequence[ModelSpec],
    passes: Mapping[str, Passes],
    refused: Mapping[str, str] | None = None,
) -> Choice:
    """The largest model of `catalogue`, smallest first, that the machine carries, else the smallest.

    A running model is not replaced by a smaller one: that happens at a start only. `passes` were measured
    here before; `refused` maps models to the reasons that exclude them.
    """
    judge = _Judge(machine, catalogue, passes, refused or {})
    ids = [spec.id for spec in catalogue]
    floor = ids.index(machine.running) if machine.running in ids else 0
    prices = [judge.price(spec) for spec in catalogue]
    at = next((at for at in range(len(ids) - 1, floor, -1) if not prices[at].obstacles), floor)
    start = next((ids[below] for below in range(at, 0, -1) if ids[below] in machine.ready), ids[0])
    next_up = prices[at + 1] if at + 1 < len(ids) else None
    beside = ids[0] if at and judge.holds_both(prices[0], prices[at]) else ""
    reason = _reason(prices[at], next_up, is_smallest=at == 0)
    return Choice(ids[at], machine.running or start, reason, next_up, beside)


@dataclass(frozen=True, slots=True)
class _Judge:
    machine: Machine
    catalogue: Sequence[ModelSpec]
    passes: Mapping[str, Passes]
    refused: Mapping[str, str] = field(default_factory=dict)

    def price(self, spec: ModelSpec) -> Price:
        machine = self.machine
        fetch_bytes = 0 if spec.id in machine.ready | machine.fetched else spec.num_bytes
        price = Price(
            spec.id,
            weight_bytes(spec, machine.weight_bits) + NUM_CACHES * machine.capacity * spec.num_position_bytes,
            0 if spec.id in machine.ready else fetch_bytes + made_bytes(spec, machine.weight_bits),
            fetch_bytes,
            self.p95_ms(spec),
            spec.id in machine.with_drafter,
        )
        is_running = spec.id == machine.running
        obstacles = (self.refused.get(spec.id, ""), *(() if is_running else self._shortages(price)))
        return replace(price, obstacles=tuple(filter(None, (*obstacles, *self._slowness(price)))))

    def holds_both(self, small: Price, large: Price) -> bool:
        """Whether there is memory for both, beside what runs already."""
        running = {self.machine.running}
        wanted = sum(price.memory_bytes for price in (small, large) if price.target not in running)
        return wanted + HEADROOM_BYTES <= self.machine.free_memory_bytes

    def p95_ms(self, spec: ModelSpec) -> float | None:
        """Predicted 95th percentile latency of warm answers (ms); None if no model was measured."""
        own, bits = self.passes.get(spec.id), self.machine.weight_bits
        # By each other model's passes: a pass takes what reading the weights takes.
        scaled = min(
            (
                found.ms * weight_bytes(spec, bits) / weight_bytes(other, bits)
                for other in self.catalogue
                if other.id != spec.id and (found := self.passes.get(other.id)) is not None
            ),
            default=None,
        )
        if own is None:
            ms = scaled
        else:
            ms = own.ms if scaled is None or own.num_loads >= TRUSTED_LOADS else min(own.ms, scaled)
        num_passes = PASSES_AT_P95_DRAFTED if spec.id in self.machine.with_drafter else PASSES_AT_P95
        return None if ms is None else num_passes * ms

    def _shortages(self, price: Price) -> Iterator[str]:
        machine = self.machine
        if price.memory_bytes + HEADROOM_BYTES > machine.free_memory_bytes:
            free, spare = _gigabytes(machine.free_memory_bytes), _gigabytes(HEADROOM_BYTES)
            yield f"{free} of memory is free, and {spare} of it is reserved for other programs"
        if price.disk_bytes and price.disk_bytes + DISK_MARGIN_BYTES > machine.free_disk_bytes:
            yield f"{_gigabytes(machine.free_disk_bytes)} of disk is free"

    def _slowness(self, price: Price) -> Iterator[str]:
        if price.p95_ms is None:
            yield "the speed of this machine is unknown until a first model runs"
        elif price.p95_ms > BUDGET_P95_MS:
            drafter = "" if price.has_drafter else ", and it has no trained drafter"
            yield f"more than 5 % of its answers take longer than {BUDGET_P95_MS:.0f} ms{drafter}"


def weight_bytes(spec: ModelSpec, weight_bits: int) -> int:
    """Memory of a model's weights in this number of bits; 0 are those that its file holds."""
    if weight_bits:
        return spec.num_bf16_bytes * weight_bits // 16
    return spec.num_packed_bytes or round(PACKED_SHARE * spec.num_bf16_bytes)


def made_bytes(spec: ModelSpec, weight_bits: int) -> int:
    """Disk for the files that are made from a model's file: the packed weights, where they are mapped."""
    return 0 if weight_bits else weight_bytes(spec, 0)


def _reason(price: Price, next_up: Price | None, *, is_smallest: bool) -> str:
    """Why this model and no other, in one sentence."""
    if price.obstacles:
        stays = "is the smallest model" if is_smallest else "stays until the next start, because it is loaded"
        return f"{price.target} {stays}; {price.obstacles[0]}"
    size = "the largest model" if next_up is None else "the largest that this machine can run"
    return (
        f"{price.target} is {size}: up to {price.p95_ms:.0f} of {BUDGET_P95_MS:.0f} ms for an answer, "
        f"{_gigabytes(price.memory_bytes)} of memory"
    )


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"
