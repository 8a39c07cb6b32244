"""Transformers, llama.cpp, OpenVINO and Slipstream side by side: `python -m tests.benchmarks.peers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET
from completion_engine.decoding.ending import MAX_NEW_TOKENS
from lsp_server.commands.terminal import console, progress_bar, show_rows, write_json
from tests.benchmarks import command_line as cli
from tests.benchmarks.peers import FAMILIES, PeerOptions, measure_peers
from tests.benchmarks.peers.report import COLUMNS, absent_lines, table_rows
from tests.benchmarks.plot import check_plot, write_plot


def peers(
    *,
    prompts: cli.Prompts = 20,
    tokens: Annotated[
        int, typer.Option("--tokens", min=2, max=MAX_NEW_TOKENS, help="New tokens after each prompt.")
    ] = 64,
    tasks: cli.Tasks = None,
    sources: cli.Sources = None,
    target: cli.Target = DEFAULT_TARGET,
    dtype: cli.Dtype = "auto",
    llama_python: Annotated[
        Path | None, typer.Option("--llama-python", help="A Python interpreter that has llama-cpp-python.")
    ] = None,
    openvino_python: Annotated[
        Path | None, typer.Option("--openvino-python", help="A Python interpreter that has openvino-genai.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", help=f"Leave out, of {', '.join(FAMILIES)}.")
    ] = None,
    plot: cli.Plot = None,
    json: cli.Json = False,
) -> None:
    """Transformers, llama.cpp, OpenVINO and Slipstream, plain and drafted: the same prompts in turn."""
    if plot:
        check_plot(plot)
    samples = cli.samples_of(prompts, tasks or [], sources)
    with progress_bar(quiet=json) as report:
        left_out = tuple(without or ())
        asked = PeerOptions(target, tokens, dtype, llama_python, openvino_python, sources, left_out)
        found = measure_peers(samples, asked, report)
    if plot:
        write_plot(found, plot)
    if not json:
        show_rows("The same prompts, one run, in turn", COLUMNS, table_rows(found))
        for line in absent_lines(found):
            console().print(line, markup=False)
    write_json(found)


if __name__ == "__main__":
    cli.run(peers)
