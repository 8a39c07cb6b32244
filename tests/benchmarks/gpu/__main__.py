"""`python -m tests.benchmarks.gpu`: how near the engine comes to the limits of a GPU, in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lsp_server.commands.local_engine import named_target
from lsp_server.commands.terminal import console, progress_bar, show_rows, write_json
from scripts.random_model import GEOMETRIES
from tests.benchmarks.command_line import Json, run
from tests.benchmarks.gpu.measure import GpuRun, measure_gpu
from tests.benchmarks.gpu.plot import write_gpu_plot
from tests.benchmarks.gpu.report import (
    AIM_COLUMNS,
    MEMORY_COLUMNS,
    SPEED_COLUMNS,
    aim_rows,
    memory_rows,
    speed_rows,
)
from tests.benchmarks.peers.report import COLUMNS, absent_lines, table_rows
from tests.benchmarks.plot import check_plot
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.samples import from_folder

Prompts = Annotated[int, typer.Option("--prompts", min=1, help="Number of prompts of the real target.")]
Tokens = Annotated[int, typer.Option("--tokens", min=2, help="Tokens after each prompt.")]
Sizes = Annotated[
    list[str] | None, typer.Option("--size", help=f"Random weights of: {', '.join(GEOMETRIES)}.")
]
Dtypes = Annotated[list[str] | None, typer.Option("--dtype", help="bfloat16, int8; both may be named.")]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        help="A real model for the comparison, or auto; empty: random weights only.",
        callback=named_target,
    ),
]


def gpu(
    *,
    prompts: Prompts = 20,
    tokens: Tokens = 64,
    size: Sizes = None,
    dtype: Dtypes = None,
    target: Target = "qwen2.5-coder-1.5b",
    sources: Annotated[Path | None, typer.Option("--sources", help="A folder of source code.")] = None,
    device: Annotated[
        Literal["cuda", "cpu"], typer.Option("--device", help="cpu tries the measurement out, tiny.")
    ] = "cuda",
    tune: Annotated[bool, typer.Option("--tune", help="Try tiles for every product; minutes.")] = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw a picture (.svg, .png, .pdf).")] = None,
    json: Json = False,
) -> None:
    """Ceilings first; then plain and drafted decoding, transformers, stages, memory, and the aims."""
    unknown = [name for name in size or () if name not in GEOMETRIES]
    if unknown:
        raise typer.BadParameter(f"Choose out of {', '.join(GEOMETRIES)}.", param_hint="--size")
    if plot:
        check_plot(plot)
    samples = from_folder(sources or released_sources(), prompts) if target else []
    asked = GpuRun(device, num_tokens=tokens, target=target, samples=samples)
    sizes, dtypes = tuple(size or asked.sizes), tuple(dtype or asked.dtypes)
    with progress_bar(quiet=json) as report:
        found = measure_gpu(GpuRun(device, sizes, dtypes, target, tokens, samples, tune), report)
    if plot:
        write_gpu_plot(found, plot)
    if not json:
        show_gpu(found)
    write_json(found)


def show_gpu(found: dict[str, Any]) -> None:
    """The tables for people, on stdout."""
    limits = f"{found['read_gb_per_s']} GB/s read, {found['copy_gb_per_s']} copied, {found['tflops']} TFLOP/s"
    console().print(f"{found['machine']}: {limits}", markup=False)
    show_rows("Memory reckoned, four documents cached", MEMORY_COLUMNS, memory_rows())
    show_rows("Random weights, plain decoding, one token a pass", SPEED_COLUMNS, speed_rows(found))
    for row in found["geometries"]:
        stages = row.get("stages_ms", {}).items()
        show_rows(
            f"Passes of {row['name']} {row['dtype']}", ("pass", "ms"), [(k, f"{v:.3f}") for k, v in stages]
        )
    for size, products in found.get("tuning", {}).items():
        cells = [
            (row["product"], f"{row['now']:.0%}", f"{row['best']:.0%}", str(row["best_tiles"]))
            for row in products
        ]
        show_rows(f"Share of the bandwidth by tiles, {size}", ("product", "now", "best", "with"), cells)
    if "peers" in found:
        show_rows("The same prompts, one run, in turn", COLUMNS, table_rows(found["peers"]))
        for line in absent_lines(found["peers"]):
            console().print(line, markup=False)
    show_rows("Aims", AIM_COLUMNS, aim_rows(found["aims"]))


if __name__ == "__main__":
    run(gpu)
