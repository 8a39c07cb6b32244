"""Slipstream and llama.vim at the keystroke: `python -m tests.benchmarks.keystrokes`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from completion_engine.config import DEFAULT_TARGET
from completion_engine.errors import UserError
from lsp_server.commands.replay import Seed
from lsp_server.commands.terminal import console, progress_bar, show_rows, write, write_json
from tests.benchmarks.command_line import Json, Target, run
from tests.benchmarks.keystrokes.figures import COLUMNS, by_system, markdown, table_row
from tests.benchmarks.keystrokes.file_run import FileRun
from tests.benchmarks.keystrokes.measure import IN_NEOVIM, SYSTEMS, KeystrokeOptions, measure, typed_files
from tests.benchmarks.keystrokes.results import read_results, write_line

ALL = (*SYSTEMS, *IN_NEOVIM)
MAX_LOAD = 0.5  # more, and the result is not worth publishing
_BUSY = "other programs slow llama-server more than Slipstream, so do not compare these figures."


def keystrokes(
    *,
    target: Target = DEFAULT_TARGET,
    system: Annotated[
        list[str] | None, typer.Option("--system", help=f"Only these, of: {'; '.join(ALL)}.")
    ] = None,
    limit_keystrokes: Annotated[
        int, typer.Option("--limit-keystrokes", min=1, help="Approximate number of keys for each program.")
    ] = 500,
    pace: Annotated[float, typer.Option("--pace", min=1, help="Milliseconds between keys.")] = 220.0,
    seed: Seed = 0,
    instructions: Annotated[
        str | None, typer.Option("--as", help="AVX2: programs as for a processor without wider instructions.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the raw results to a new file.")] = None,
    show: Annotated[
        list[Path] | None, typer.Option("--show", help="Type nothing; the table of these result files.")
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a table for a page.")] = False,
    json: Json = False,
) -> None:
    """Type the same keys with Slipstream and with llama.vim's requests to llama-server, in turn."""
    if unknown := set(system or ()) - set(ALL):
        raise UserError(f"Unknown: {', '.join(sorted(unknown))}.", advice=f"Choose of {'; '.join(ALL)}.")
    if out is not None and out.exists():
        raise UserError(f"{out} is already there.", advice="Name a new file.")
    options = KeystrokeOptions(target, system or SYSTEMS, limit_keystrokes, pace, seed, instructions)
    if show:
        runs = [run for path in show for run in read_results(path)[0]]
        facts = read_results(show[0])[1]
    else:
        runs = []

        def keep(found: FileRun) -> None:
            runs.append(found)
            if out is not None:
                write_line(out, found.as_dict())

        with progress_bar(quiet=json) as report:
            facts = measure(typed_files(options), options, report, keep)
        if out is not None:
            write_line(out, facts)
    found = by_system(runs)
    if as_markdown:
        write("\n".join([*markdown(found), ""]))
    elif not json:
        title = f"{facts['target']} on {facts['num_cores']} cores of {facts['processor']}"
        if facts["load_before"] > MAX_LOAD:
            console().print(f"Load {facts['load_before']} before the run: {_BUSY}", markup=False)
        show_rows(title, COLUMNS, [table_row(name, figures) for name, figures in found.items()])
    write_json({**facts, "systems": {name: figures.as_dict() for name, figures in found.items()}})


if __name__ == "__main__":
    run(keystrokes)
