"""`slipstream replay`: types files through a real server and shows what a person would feel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lsp_server.commands.local_engine import told_settings, with_target
from lsp_server.commands.terminal import console, progress_bar, write_json

if TYPE_CHECKING:
    from rich.table import Table


def replay(  # noqa: PLR0913 - one argument for each option
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Source files.", show_default=False)],
    *,
    limit_keystrokes: Annotated[int, typer.Option(min=1, help="Type about so many keys in all.")] = 400,
    start_line: Annotated[int | None, typer.Option(min=0, help="First line to type, from 0.")] = None,
    pace: Annotated[float, typer.Option(min=0, help="Milliseconds between keys; 0 awaits answers.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Another seed, other typing errors.")] = 0,
    target: Annotated[str, typer.Option(help="Another target than the settings name.")] = "",
    plain: Annotated[bool, typer.Option("--plain", help="Switch the drafters off.")] = False,
    multiline: Annotated[
        Literal["auto", "always", "never"] | None, typer.Option(help="In place of the setting of that name.")
    ] = None,
    deadline: Annotated[float | None, typer.Option(min=0, help="In place of deadlineMs; 0 is none.")] = None,
    eagerness: Annotated[
        float | None, typer.Option(min=0, max=1, help="In place of the setting of that name.")
    ] = None,
    memory: Annotated[
        Literal["auto", "on", "off"] | None, typer.Option(help="In place of repositoryMemory.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Time transformers at the same places.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object only.")] = False,
) -> None:
    """Type files through a server as a person would, and report what it is like."""
    from lsp_server.commands.replay_run import Options, replay_files  # noqa: PLC0415 - not needed for help

    settings = told_settings(Path.cwd())
    named = with_target(settings.model_copy(update={"target": target or settings.target})).target
    options = Options(
        limit_keystrokes,
        start_line,
        pace,
        seed,
        named,
        plain,
        compare,
        multiline,
        deadline,
        eagerness,
        memory,
    )
    with progress_bar(quiet=as_json) as report:
        result = asyncio.run(replay_files(files, options, report))
    if not as_json:
        show(result)
    write_json(result)


def show(result: dict[str, Any]) -> None:
    """The report for people, on stdout."""
    shown = console()
    shown.print(latency_table(result["latency_ms"], result["cancel_ms"]))
    shown.print(facts_table(result))
    if compared := result.get("compare"):
        shown.print(comparison_table(compared))


def latency_table(latency_ms: dict[str, Any], cancel_ms: dict[str, Any]) -> Table:
    """Percentiles by kind of answer."""
    columns = ("count", "p50", "p90", "p95", "p99", "max")
    table = _table("Milliseconds from key to answer", ("", *columns))
    rows = {**latency_ms, "cancelled, until answered": cancel_ms}
    for name, row in rows.items():
        if row["count"]:
            table.add_row(name, str(row["count"]), *(f"{row[column]:.1f}" for column in columns[1:]))
    return table


def facts_table(result: dict[str, Any]) -> Table:
    """What was spared, and how the tokens came about."""
    table = _table(f"{result['target']} on {result['device']}", ("", "value"))
    tokens, whole = result["tokens"], result["whole"]
    sources = ", ".join(f"{name} {count}" for name, count in tokens["accepted_by_source"].items() if count)
    rows = {
        "characters not typed": f"{result['share_not_typed']:.1%} of {result['num_chars']}",
        "keys not pressed": (
            f"{result['share_keys_not_pressed']:.1%} of {result['num_keys']}; "
            f"{result['share_keys_spared']:.1%} less those that take suggestions"
        ),
        "characters shown wrong": f"{result['shown_wrong_per_100']:.1f} for 100 of these",
        "requests": str(result["num_requests"]),
        "shown, empty": f"{result['num_shown']}, {result['num_empty']}",
        "shown whole": f"{whole['share_whole']:.1%}, {whole['num_chars_lost']} right characters lost",
        "accepted, by words": f"{result['num_accepted']}, {result['num_partially_accepted']}",
        "cancelled, failed": f"{result['num_cancelled']}, {result['num_failed']}",
        "tokens per verification": f"{tokens['tokens_per_verification']:.2f}",
        "prompt tokens from the cache": f"{tokens['share_cached']:.1%}",
        "accepted drafts": sources or "none",
        "empty because": ", ".join(f"{rule} {count}" for rule, count in result["rules"].items()) or "-",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def comparison_table(compared: dict[str, Any]) -> Table:
    """Slipstream and transformers at the same places."""
    table = _table(
        f"The same {compared['num_places']} places, as many new tokens, median ms",
        ("", "Slipstream", "transformers generate", "ratio"),
    )
    rows = {
        "whole completion": ("slipstream_ms", "transformers_ms", "ratio_p50"),
        "per token, decoding only": ("slipstream_token_ms", "transformers_token_ms", "token_ratio_p50"),
    }
    for name, (ours, theirs, ratio) in rows.items():
        medians = (f"{compared[side]['p50']:.1f}" for side in (ours, theirs))
        table.add_row(name, *medians, f"{compared[ratio]:.2f}x")
    return table


def _table(title: str, columns: tuple[str, ...]) -> Table:
    from rich.table import Table  # noqa: PLC0415 - not needed for help

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table
