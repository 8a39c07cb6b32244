"""`slipstream replay` with all that is measured of it: `python -m tests.benchmarks.replay`.

`--released` types three modules of recent releases, `--compare` times transformers at the same cursor
positions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from completion_engine.errors import UserError
from completion_engine.request import Progress
from lsp_server.commands.player import Answer
from lsp_server.commands.replay import (
    Json,
    Keystrokes,
    Pace,
    ReplayOptions,
    Seed,
    StartLine,
    Target,
    planned,
    replay_files,
    settings_given,
)
from lsp_server.commands.replay_report import show
from lsp_server.commands.terminal import progress_bar, show_rows, write_json
from lsp_server.scripted_typing.typist import Typist
from tests.benchmarks.command_line import run
from tests.benchmarks.released_sources import released_modules
from tests.benchmarks.replay.shown_wrong import ShownWrong, key_figures
from tests.benchmarks.replay.transformers_baseline import Baseline, Comparison


def replay(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Source files.", show_default=False)
    ] = None,
    *,
    released: Annotated[
        bool, typer.Option("--released", help="Type three modules of recent releases, fetched once.")
    ] = False,
    limit_keystrokes: Keystrokes = 400,
    start_line: StartLine = None,
    pace: Pace = 0.0,
    seed: Seed = 0,
    target: Target = "",
    plain: Annotated[bool, typer.Option("--plain", help="Switch the drafters off.")] = False,
    multiline: Annotated[Literal["auto", "always", "never"] | None, typer.Option()] = None,
    deadline: Annotated[float | None, typer.Option(min=0, help="In place of deadlineMs; 0 is none.")] = None,
    eagerness: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    memory: Annotated[
        Literal["auto", "on", "off"] | None, typer.Option(help="In place of repositoryMemory.")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Time transformers at the same cursor positions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Type files through a server as a person would, and report all that is measured of it."""
    typed = [*(files or ()), *(released_modules() if released else ())]
    if not typed:
        raise UserError("There is nothing to type.", advice="Name files, or say --released.")
    given: dict[str, Any] = {
        "drafters": [] if plain else None,
        "multiline": multiline,
        "deadlineMs": deadline,
        "eagerness": eagerness,
        "repositoryMemory": memory,
    }
    settings = settings_given([], target) | {
        name: value for name, value in given.items() if value is not None
    }
    options = ReplayOptions(limit_keystrokes, start_line, pace, seed, settings)
    with progress_bar(quiet=as_json) as report:
        result = asyncio.run(replayed(typed, options, report, compare=compare))
    if not as_json:
        show(result)
        show_rows("Beyond latency", ("", "value"), _facts(result))
        if compared := result.get("compare"):
            _show_comparison(compared)
    write_json(result)


async def replayed(
    files: Sequence[Path], options: ReplayOptions, report: Progress, *, compare: bool = False
) -> dict[str, Any]:
    """The report of `slipstream replay` and all that is measured beyond it. Raises SlipstreamError."""
    shown_wrong, comparison = ShownWrong(), Comparison()
    baselines: list[Baseline] = []

    def on_ready(stats: Mapping[str, Any]) -> None:
        if compare:
            baselines[:] = [Baseline.load(stats["engine"], report)]

    async def watch(answer: Answer, typist: Typist) -> None:
        shown_wrong.add(answer, typist)
        for baseline in baselines:
            await comparison.consider(baseline, answer, typist)

    result = await replay_files(files, options, report, watch=watch, on_ready=on_ready)
    num_keys = sum(len(planned(path, options, len(files)).strokes) for path in files)
    result |= shown_wrong.as_dict(result["num_chars"]) | key_figures(result, num_keys)
    return result | ({"compare": comparison.as_dict()} if compare else {})


def _facts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    whole = result["whole"]
    keys = (
        f"{result['share_keys_not_pressed']:.1%} of {result['num_keys']}; "
        f"{result['share_keys_spared']:.1%} less those that accept suggestions"
    )
    cut = f"{whole['share_whole']:.1%}, {whole['num_chars_lost']} right characters lost"
    wrong = f"{result['shown_wrong_per_100']:.1f} for 100 typed"
    return [("keys not pressed", keys), ("characters shown wrong", wrong), ("shown whole", cut)]


def _show_comparison(compared: Mapping[str, Any]) -> None:
    rows = {
        "whole completion": ("slipstream_ms", "transformers_ms", "ratio_p50"),
        "per token, decoding only": ("slipstream_token_ms", "transformers_token_ms", "token_ratio_p50"),
    }
    shown = [
        (name, f"{compared[ours]['p50']:.1f}", f"{compared[theirs]['p50']:.1f}", f"{compared[ratio]:.2f}x")
        for name, (ours, theirs, ratio) in rows.items()
    ]
    title = f"The same {compared['num_places']} places, as many new tokens, median ms"
    show_rows(title, ("", "Slipstream", "transformers generate", "ratio"), shown)


if __name__ == "__main__":
    run(replay)
