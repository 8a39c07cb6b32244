"""`slipstream replay`: types files, or a repository's own commits, through a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.errors import MachineError, UserError
from completion_engine.request import Progress
from lsp_server.commands.replay import (
    Json,
    ReplayOptions,
    Target,
    replay_files,
    settings_given,
    show,
    with_named_target,
)
from lsp_server.commands.terminal import console, interruptible, new_app, progress_bar, write_json
from lsp_server.history.commit_replay import ReplayedCommit
from lsp_server.history.page import page_of
from lsp_server.history.replay_history import HistoryOptions, HistoryRecord, begin, replay_history
from lsp_server.history.report import commit_line, report_of, show_report

app = new_app()

Keystrokes = Annotated[
    int, typer.Option("--limit-keystrokes", min=1, help="Approximate number of keys to type.")
]
StartLine = Annotated[
    int | None, typer.Option("--start-line", min=0, help="First line to type, counted from 0.")
]
Pace = Annotated[
    float, typer.Option("--pace", min=0, help="Milliseconds between keys. 0 waits for each answer.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the typing errors.")]


@app.command()
def replay(  # noqa: PLR0913 - one argument for each option
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE...]", help="Source files, or REPO.")
    ] = None,
    *,
    limit_keystrokes: Keystrokes = 400,
    start_line: StartLine = None,
    pace: Pace = 0.0,
    seed: Seed = 0,
    history: Annotated[
        bool, typer.Option("--history", help="Type your last commits in REPO, or here, in place of files.")
    ] = False,
    author: Annotated[str, typer.Option(help="Whose commits; otherwise those of git's user.email.")] = "",
    since: Annotated[str, typer.Option(help="The oldest commit, as git reads dates: '2 weeks ago'.")] = "",
    commits: Annotated[int, typer.Option(min=1, max=1000, help="Number of commits.")] = 20,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Minutes of typing, after the model is loaded.")
    ] = 5.0,
    larger: Annotated[
        bool, typer.Option("--larger/--no-larger", help="Type them once more with a larger stored model.")
    ] = True,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE", help="Write a page with plots.", dir_okay=False)
    ] = None,
    target: Target = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Override a setting; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Type files, or with --history your own commits, through a server as a person would.

    Reports latency and typing saved. --history reads git's objects and writes nothing into the repository.
    """
    if not files and not history:
        raise typer.BadParameter("Name one FILE... or more, or use --history.")
    given = settings_given(settings or [], target)
    if history:
        options = HistoryOptions(author, since, commits, minutes, has_larger_model=larger)
        _replay_history(files or [Path()], options, given, html, as_json=as_json)
        return
    file_options = ReplayOptions(limit_keystrokes, start_line, pace, seed, given)
    with progress_bar(quiet=as_json) as report, interruptible():
        result = asyncio.run(replay_files(files or [], file_options, report))
    if as_json:
        write_json(result)
    else:
        show(result)


def _replay_history(
    folders: list[Path],
    options: HistoryOptions,
    settings: dict[str, Any],
    page: Path | None,
    *,
    as_json: bool,
) -> None:
    """Replay a repository's commits until they end, the time is over, or the user stops it."""
    if len(folders) > 1:
        raise UserError("--history replays one repository.", advice="Name one folder.")
    record = begin(folders[0], options)
    with progress_bar(quiet=as_json) as report, interruptible():
        is_stopped = _run(record, options, with_named_target(settings, report), report, as_json=as_json)
    if not record.typed:
        if is_stopped:
            raise typer.Exit(130)
        raise UserError("No commit was typed within the time.", advice="Allow more --minutes.")
    result = report_of(record)
    if page is not None:
        try:
            page.write_text(page_of(result), encoding="utf-8")
        except OSError as error:
            raise MachineError(f"{page} cannot be written: {error.strerror}.") from error
    if as_json:
        write_json(result)
    else:
        show_report(result)


def _run(
    record: HistoryRecord,
    options: HistoryOptions,
    settings: dict[str, Any],
    report: Progress,
    *,
    as_json: bool,
) -> bool:
    """Replay into `record`; True when the user stopped it."""

    def on_commit(commit: ReplayedCommit) -> None:
        if not as_json:
            console().print(commit_line(commit), markup=False, soft_wrap=True)

    try:
        asyncio.run(replay_history(record, options, settings, report, on_commit))
    except KeyboardInterrupt:
        return True
    return False
