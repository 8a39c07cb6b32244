"""`python -m tests.benchmarks.gpu.reckoned`: the least time of a pass on cards that are not here.

Nothing is measured. Bytes are those of the weights and keys, instructions those of the compiled products, in
the tiles that the card would get, and launches are counted by running a decoder whose kernels only count.
Attention's own instructions and all waiting are left out, so the times are lower bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch

from completion_engine.gpu import launch
from completion_engine.gpu.blocks import Form, form_of_kind
from completion_engine.gpu.decoder import GraphedDecoder
from completion_engine.gpu.kernels import product
from completion_engine.gpu.launch import WIDE_BLOCKS, ProductCut
from completion_engine.gpu.memory import Geometry
from completion_engine.gpu.passes import WIDTHS, PassShape
from completion_engine.gpu.weights import BYTES, PLAIN, Tiles, Weight, tiles_for
from scripts.random_model import GEOMETRIES, random_model
from tests.completion_engine.gpu.compile_kernels import compile_for

CACHED = 600  # tokens whose keys a pass reads
PROMPTS = (600, 2000)
LAUNCH_MS = 0.0013  # a kernel in a graph on an H100, measured by the authors of the megakernel
_SCHEDULERS = 4  # a multiprocessor has four, and each issues an instruction for 32 threads in a cycle
_RANKING = 2  # kernels after the head
_SMALL = Geometry(1, 64, 64, 1, 1, 64, 96, is_tied=True)


@dataclass(frozen=True, slots=True)
class Card:
    """A card, by its maker's data sheet: boost clock, memory, dense bf16 products summed in float32."""

    name: str
    capability: int
    num_processors: int
    hertz: float
    bytes_per_s: float
    flops: float


CARDS = (
    Card("H100 SXM", 90, 132, 1.755e9, 3.35e12, 989e12),
    Card("RTX 4070", 89, 46, 2.475e9, 504e9, 58e12),
)
Q4_K, Q6_K = form_of_kind("Q4_K"), form_of_kind("Q6_K")
# Forms of most weights, of v and down in every second layer, and of the head.
HELD: dict[str, tuple[Form, Form, Form]] = {
    "bf16": (PLAIN, PLAIN, PLAIN),
    "int8": (BYTES, BYTES, BYTES),
    "file (Q4_K_M)": (Q4_K, Q6_K, Q6_K),
}


@dataclass(frozen=True, slots=True)
class Product:
    """A product of a pass, `count` times; `num_beside` outputs are computed with it."""

    form: Form
    num_outputs: int
    num_inputs: int
    count: float
    is_whole: bool = False
    num_beside: int = 0

    @property
    def num_bytes(self) -> int:
        """Memory of the weight."""
        if self.form.block:
            return self.form.num_bytes(self.num_outputs, self.num_inputs)
        scales = 4 * self.num_outputs if self.form == BYTES else 0
        return self.num_outputs * self.num_inputs * self.form.bits // 8 + scales

    def tiles(self, card: Card) -> Tiles:
        """Its cut on a card."""
        weight = Weight(torch.empty(0), None, self.form, self.num_outputs, self.num_inputs)
        return tiles_for(weight, card.num_processors, is_whole=self.is_whole, num_beside=self.num_beside)


def products(geometry: Geometry, held: str) -> Iterator[Product]:
    """The products of all layers, then the head."""
    (most, half, head), g, layers = HELD[held], geometry, geometry.num_layers
    attended, kept = g.num_heads * g.head_size, g.num_kv_heads * g.head_size
    if most == half:
        yield Product(most, attended + 2 * kept, g.hidden_size, layers)
    else:
        yield Product(most, attended + 2 * kept, g.hidden_size, layers / 2)
        yield Product(most, attended + kept, g.hidden_size, layers / 2, num_beside=kept)
        yield Product(half, kept, g.hidden_size, layers / 2, num_beside=attended + kept)
    yield Product(most, g.hidden_size, attended, layers)
    yield Product(most, g.mlp_size, g.hidden_size, 2 * layers, is_whole=True)
    yield Product(most, g.hidden_size, g.mlp_size, layers / 2)
    yield Product(half, g.hidden_size, g.mlp_size, layers / 2)
    yield Product(head, g.vocab_size, g.hidden_size, 1, is_whole=True)


@cache
def lengths(form: Form, cut: ProductCut, capability: int) -> tuple[int, int]:
    """Instructions of a step and of the rest of a program, compiled."""
    tiles = cut.tiles
    constants = {
        "num_outputs": 1536, "num_inputs": 8960, "bits": form.bits, "block": form.block,
        "has_codes": form.has_codes, "has_floors": form.has_floors, "part_inputs": 1280, "row_size": 1536,
        "row_block": cut.row_block, "column_block": tiles.column_block, "input_block": tiles.input_block,
        "packs": True, "is_wide": cut.is_wide,
    }  # fmt: skip
    facts = compile_for(capability, product.product, constants, cut.options)
    step = facts["num_loop_instructions"]
    return step, facts["num_instructions"] - step


def instructions(one: Product, card: Card, num_rows: int) -> float:
    """Instructions for 32 threads each, of all programs of a product."""
    tiles = one.tiles(card)
    cut = ProductCut.of(num_rows, tiles)
    columns, blocks = cut.grid(one.num_outputs, num_rows)
    plain = Tiles(tiles.column_block, tiles.input_block, 1280, tiles.num_warps, tiles.num_stages)
    step, rest = lengths(one.form, ProductCut.of(num_rows, plain), card.capability)
    num_steps = -(-one.num_inputs // tiles.input_block)
    programs = columns * blocks
    return (step * num_steps + rest * tiles.num_parts(one.num_inputs)) * programs * cut.tiles.num_warps


def num_launches(num_layers: int, *, is_file: bool) -> float:
    """Kernels of a pass, counted. Half of a file's layers have a product more, for v."""
    counts = []

    def count(num: int) -> Callable[..., None]:
        return lambda *_, **__: counts.append(num)

    with pytest.MonkeyPatch.context() as patch:
        for name in (name for name in vars(launch) if name.startswith("run_")):
            patch.setattr(launch, name, count(2 if name == "run_attention" else 1))
        cpu = torch.device("cpu")
        decoder = GraphedDecoder(random_model(_SMALL, cpu), 64, cpu)
        decoder.compute(decoder.buffers(PassShape(8, is_tree=False, wants_logits=True)), wants_logits=True)
        outside = 3  # the embedding, the hidden states, the head
        per_layer = sum(counts) - outside
    return outside + _RANKING + num_layers * (per_layer + (0.5 if is_file else 0))


@dataclass(frozen=True, slots=True)
class Reckoned:
    """A pass: megabytes, millions of instructions, and milliseconds of each limit."""

    megabytes: float
    million_instructions: float
    bytes_ms: float
    instructions_ms: float
    products_ms: float
    launches_ms: float

    @property
    def ms(self) -> float:
        """The largest limit, and the launches, in which nothing is read."""
        return max(self.bytes_ms, self.instructions_ms, self.products_ms) + self.launches_ms


def reckon(geometry: Geometry, held: str, card: Card, num_rows: int, *, has_head: bool = True) -> Reckoned:
    """A pass of some rows. Rows beyond 128 read the weights again."""
    every = list(products(geometry, held))[: None if has_head else -1]
    together = 2 * 16 * WIDE_BLOCKS
    num_reads = -(-num_rows // together)
    kept = 2 * 2 * geometry.num_layers * geometry.num_kv_heads * geometry.head_size * CACHED
    num_bytes = kept + num_reads * sum(one.count * one.num_bytes for one in every)
    issued = sum(one.count * instructions(one, card, num_rows) for one in every)
    operations = 2 * num_rows * sum(one.count * one.num_outputs * one.num_inputs for one in every)
    return Reckoned(
        num_bytes / 1e6,
        issued / 1e6,
        num_bytes / card.bytes_per_s * 1e3,
        issued / (card.num_processors * _SCHEDULERS * card.hertz) * 1e3,
        operations / card.flops * 1e3,
        LAUNCH_MS * num_launches(geometry.num_layers, is_file=held.startswith("file")),
    )


def first_token_ms(geometry: Geometry, held: str, card: Card, num_tokens: int) -> float:
    """The passes of a prompt; the last one computes the head."""
    widest, left = WIDTHS[-1], num_tokens % WIDTHS[-1]
    last = next(width for width in WIDTHS if width >= (left or widest))
    whole = (num_tokens - 1) // widest
    return (
        whole * reckon(geometry, held, card, widest, has_head=False).ms
        + reckon(geometry, held, card, last).ms
    )


def rows() -> Iterator[tuple[str, ...]]:
    """The table's rows."""
    for size in ("1.5B", "7B"):
        for card in CARDS:
            for held in HELD:
                geometry = GEOMETRIES[size]
                one = reckon(geometry, held, card, 16)
                first = [first_token_ms(geometry, held, card, num_tokens) for num_tokens in PROMPTS]
                times: list[Any] = [one.bytes_ms, one.instructions_ms, one.launches_ms, one.ms]
                yield (
                    size, card.name, held, f"{one.megabytes:,.0f}", f"{one.million_instructions:,.0f}",
                    *(f"{ms:.2f}" for ms in times), *(f"{ms:.1f}" for ms in first),
                )  # fmt: skip


def main() -> None:
    """Print the table of docs/gpu.md."""
    head = (
        "model", "card", "weights", "MB", "million instructions", "bytes, ms", "instructions, ms",
        "launches, ms", "**pass, ms**", "first token after 600, ms", "after 2,000, ms",
    )  # fmt: skip
    for row in (head, ("---",) * len(head), *rows()):
        sys.stdout.write("| " + " | ".join(row) + " |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
