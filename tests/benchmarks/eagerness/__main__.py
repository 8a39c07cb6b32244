"""`python -m tests.benchmarks.eagerness`: savings and wrong text of two typists, by eagerness."""

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
from tests.benchmarks.eagerness.stretches import (
    EAGERNESSES,
    USUAL_ENDINGS,
    curve,
    drawn_modules,
    recorded,
    typings,
)
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.releases import ENDINGS, RELEASES


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
        endings = ENDINGS.get(language, USUAL_ENDINGS)
        chosen = drawn_modules(released_sources(language), modules, seed, endings)
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
    names = [name for name in rows[0] if name not in ("half", "eagerness", "typist")]
    for half, typist in dict.fromkeys((row["half"], row["typist"]) for row in rows):
        shown = [
            (
                f"{row['eagerness']}{' (default)' * (row['eagerness'] == default)}",
                *(str(row[name]) for name in names),
            )
            for row in rows
            if (row["half"], row["typist"]) == (half, typist)
        ]
        show_rows(f"{half}: {typist}", ("eagerness", *names), shown)


def _name_of(target: str, path: Path) -> str:
    digest = hashlib.blake2b(f"{target}\0{path}".encode(), digest_size=4).hexdigest()
    return f"{path.stem}-{digest}.jsonl"


if __name__ == "__main__":
    run(eagerness)
