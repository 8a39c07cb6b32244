"""The tables of a GPU run and what it aimed at. Pure: found figures in, cells out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from completion_engine.gpu.memory import plan_memory
from completion_engine.gpu.weights import Bits
from scripts.random_model import GEOMETRIES
from tests.benchmarks.peers.reference import COMPILED

MEMORY_COLUMNS = ("model", "bf16", "int8", "of it one cache of 8192")
SPEED_COLUMNS = (
    "model",
    "floor ms",
    "plain ms",
    "of bandwidth",
    "16 rows / 8",
    "eager ms",
    "compiled ms",
    "exact",
)
AIM_COLUMNS = ("aim", "wanted", "found", "met")
_CAPACITY, _NUM_SLOTS = 8192, 4
_LEAST_SHARES = {"1.5B": 0.5, "7B": 0.7}
_MOST_PRICE = 1.05
_LEAST_RATIO = 5.0
_LEAST_RATE = 2000.0
_LEAST_AT_WORST = 1.0
_KINDS: tuple[Bits, ...] = (16, 8)


def memory_rows() -> list[tuple[str, ...]]:
    """Memory of each size in all, by the bits of its weights, with four documents cached."""
    rows = []
    for size, geometry in GEOMETRIES.items():
        plans = [plan_memory(geometry, bits, _CAPACITY, _NUM_SLOTS) for bits in _KINDS]
        cells = [f"{plan.num_bytes / 1e9:.1f} GB" for plan in plans]
        rows.append((size, *cells, f"{geometry.cache_bytes(_CAPACITY) / 1e9:.2f} GB"))
    return rows


def speed_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One row a model with random weights; the reason where there are no figures."""
    return [_speed_row(row) for row in found["geometries"]]


def _speed_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    name = f"{row['name']} {row['dtype']}"
    if "absent" in row:
        return (name, row["absent"], *[""] * (len(SPEED_COLUMNS) - 2))
    peers = list(row.get("peers", {}).values())
    times = [f"{ms:.2f}" for ms in (row["floor_ms"], row["plain_ms"])]
    others = [f"{ms:.2f}" for ms in peers] + ["-"] * (2 - len(peers))
    ratios = [f"{row['share_of_bandwidth']:.0%}", f"{row['price_of_16']:.2f}"]
    return (name, *times, *ratios, *others, row["exactness"])


def aims(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The aims and their results; aims whose model was not measured are left out."""
    rows: list[dict[str, Any]] = []
    for row in found["geometries"]:
        if "absent" in row or row["dtype"] != "bfloat16":
            continue
        rows.append(_aim(f"{row['name']}: price of 16 rows", row["price_of_16"], most=_MOST_PRICE))
        if row["name"] in _LEAST_SHARES:
            least = _LEAST_SHARES[row["name"]]
            rows.append(_aim(f"{row['name']}: share of bandwidth", row["share_of_bandwidth"], least=least))
    return [*rows, *_aims_beside_peers(found.get("peers", {}).get("peers", []))]


def _aims_beside_peers(peers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Aims for the fastest way to run the engine."""
    ours = [row for row in peers if row["name"].startswith("Slipstream") and row["ms_per_token_overall"]]
    if not ours:
        return []
    best = min(ours, key=lambda row: float(row["ms_per_token_overall"]))
    ms = best["ms_per_token_overall"]
    rows = [_aim("tokens a second", 1e3 / ms, least=_LEAST_RATE)]
    rows += [
        _aim("times compiled transformers", row["ms_per_token_overall"] / ms, least=_LEAST_RATIO)
        for row in peers
        if row["name"] == COMPILED and row["ms_per_token_overall"]
    ]
    if best["over_plain"]:
        rows.append(_aim("first percentile against plain", best["over_plain"]["p1"], least=_LEAST_AT_WORST))
    return rows


def _aim(name: str, value: float, least: float | None = None, most: float | None = None) -> dict[str, Any]:
    is_met = (least is None or value >= least) and (most is None or value <= most)
    wanted = f">= {least:g}" if least is not None else f"<= {most:g}"
    return {"name": name, "wanted": wanted, "found": round(value, 3), "met": is_met}


def aim_rows(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The cells under `AIM_COLUMNS`."""
    return [(row["name"], row["wanted"], f"{row['found']:g}", "yes" if row["met"] else "no") for row in rows]
