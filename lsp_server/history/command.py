"""`slipstream replay`: types files, or a repository's own commits, through a real server."""

from __future__ import annotations

import asyncio
import shlex
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from completion_engine.errors import DataError, MachineError, UserError
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
from lsp_server.commands.temporary_folder import temporary_folder
from lsp_server.commands.terminal import console, interruptible, new_app, progress_bar, write_json
from lsp_server.history.blocks import Block, blocks_of
from lsp_server.history.commit_replay import CommitReplayer, HistoryRecord, ReplayedCommit
from lsp_server.history.git_objects import GitObjects
from lsp_server.history.report import commit_line, page_of, report_of, show_report

app = new_app()

_MAX_COMMITS_READ = 2000
_READING_SHARE = 0.25  # share of the time for commits without typed blocks
_NUM_OFFERED = 3
_NOT_INDEXED = "files not given to the index"

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


class HistoryOptions(NamedTuple):
    """The author and number of commits, the earliest date (as git reads it), and the time limit in minutes.

    Without an `author` they are those of git's `user.email`.
    """

    author: str = ""
    since: str = ""
    num_commits: int = 20
    minutes: float = 5.0


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
        options = HistoryOptions(author, since, commits, minutes)
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

    def keep(commit: ReplayedCommit) -> None:
        record.replayed.append(commit)
        if num_files := max(record.left_out[_NOT_INDEXED], commit.num_files_left_out):
            record.left_out[_NOT_INDEXED] = num_files
        if not as_json:
            console().print(commit_line(commit), markup=False, soft_wrap=True)

    seconds = 60 * options.minutes
    try:
        chosen = choose_commits(record, options, report, record.began + _READING_SHARE * seconds)
        record.num_chosen = len(chosen)
        with temporary_folder() as folder:
            replayer = CommitReplayer(record, folder / "replay", settings, report)
            asyncio.run(replayer.replay(chosen, seconds, keep))
    except KeyboardInterrupt:
        return True
    return False


def begin(folder: Path, options: HistoryOptions) -> HistoryRecord:
    """An empty record of the repository at `folder`. Raises UserError without a repository or an author."""
    git = GitObjects.at(folder)
    author = options.author or git.user_email()
    if not author:
        found = git.frequent_authors(_NUM_OFFERED, _MAX_COMMITS_READ)
        offered = "".join(f"\n  --author {shlex.quote(one)}" for one in found)
        advice = f"Name whose commits to replay. Most of the newest ones are of:{offered}"
        raise UserError("git has no user.email here.", advice=advice)
    return HistoryRecord(git, author)


def choose_commits(
    record: HistoryRecord, options: HistoryOptions, report: Progress, end: float
) -> list[list[Block]]:
    """The blocks of the newest commits in which the author typed anything; `record.left_out` counts others.

    Raises UserError when there is none.
    """
    git, left_out = record.git, record.left_out
    chosen: list[list[Block]] = []
    commits = git.commits(author=record.author, since=options.since, max_commits=_MAX_COMMITS_READ)
    for commit in commits:
        if len(chosen) == options.num_commits or time.monotonic() > end:
            break
        report("Reading commits", len(chosen), options.num_commits)
        if len(commit.parents) != 1:
            left_out["merge commits" if commit.parents else "first commits"] += 1
            continue
        try:
            blocks = blocks_of(git, commit, left_out)
        except (DataError, UserError):
            left_out["commits that git cannot read"] += 1
            continue
        if blocks:
            chosen.append(blocks)
        else:
            left_out["commits without typed lines"] += 1
    if not chosen:
        when = f" since {options.since}" if options.since else ""
        raise UserError(
            f"{git.root} has no commit of {record.author}{when} in which source code was typed.",
            advice="Name another --author or an earlier --since; `git shortlog -se` lists the authors.",
        )
    return chosen
