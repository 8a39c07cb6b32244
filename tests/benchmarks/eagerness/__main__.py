"""`python -m tests.benchmarks.eagerness`: characters spared against characters shown wrong, by eagerness."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.load_engine import load_engine
from lsp_server.commands.local_engine import repository_of
from lsp_server.commands.terminal import progress_bar, show_rows, write_json
from lsp_server.workspace.settings import Settings
from tests.benchmarks.command_line import Json, Target, run
from tests.benchmarks.eagerness.stretches import EAGERNESSES, curve, drawn_modules, recorded, typings
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.releases import RELEASES


def eagerness(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", show_default=False)] = None,
    *,
    modules: Annotated[int, typer.Option(min=1, help="Without FILEs: number of modules to type.")] = 3,
    language: Annotated[
        str, typer.Option(help=f"Without FILEs: language, one of {', '.join(RELEASES)}.")
    ] = "usual",
    keystrokes: Annotated[int, typer.Option(min=1, help="Approximate number of characters of each.")] = 600,
    seed: Annotated[int, typer.Option(help="Without FILEs: other modules.")] = 0,
    recording: Annotated[
        Path | None, typer.Option(help="A folder: recorded parts are not measured again.")
    ] = None,
    target: Target = DEFAULT_TARGET,
    json: Json = False,
) -> None:
    """Type modules at every eagerness, over one recording: characters saved and characters shown wrong."""
    if files:
        chosen = [(repository_of(path), path.resolve()) for path in files]
    else:
        chosen = drawn_modules(released_sources(language), modules, seed)
    if recording is not None:
        recording.mkdir(parents=True, exist_ok=True)
    with progress_bar(quiet=json) as report:
        engine = load_engine(EngineConfig(target=target), report)
        typed = [
            recorded(engine, typing, recording and recording / _name_of(target, typing.path))
            for typing in typings(chosen, keystrokes)
        ]
        rows = curve(typed, EAGERNESSES, lambda done, total: report("Typing", done, total))
    if not json:
        _show(rows)
    names = [f"{module.typing.project.name}/{module.typing.name}" for module in typed]
    num_asked = sum(module.forecasts.num_asked for module in typed)
    about = {"target": target, "default": Settings().eagerness, "modules": names, "num_asked": num_asked}
    write_json({"bench": "eagerness", **about, "curve": rows})


def _show(rows: Sequence[Mapping[str, Any]]) -> None:
    default = Settings().eagerness
    shown = [
        (
            f"{row['eagerness']}{' (default)' * (row['eagerness'] == default)}",
            f"{row['share_not_typed']:.1%}",
            f"{row['shown_wrong_per_100']:.1f}",
            str(row["num_shown"]),
        )
        for row in rows
    ]
    columns = ("eagerness", "not typed", "shown wrong for 100", "shown")
    show_rows(f"{rows[0]['num_chars']} characters", columns, shown)


def _name_of(target: str, path: Path) -> str:
    digest = hashlib.blake2b(f"{target}\0{path}".encode(), digest_size=4).hexdigest()
    return f"{path.stem}-{digest}.jsonl"


if __name__ == "__main__":
    run(eagerness)
