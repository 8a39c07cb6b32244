"""A repository's own commits, typed again: `python -m tests.benchmarks.history [REPO]`.

What would Slipstream have saved while they were typed? Reads git objects only. Must not write into the
repository, run what its configuration or attributes name, or show the server any text that is newer than the
line being typed.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import typer

from completion_engine.errors import DataError, UserError
from completion_engine.request import Progress
from lsp_server.commands.replay import Json, Settings, Target, settings_given, with_named_target
from lsp_server.commands.terminal import console, interruptible, progress_bar, write_json
from tests.benchmarks.command_line import run
from tests.benchmarks.history.blocks import Block, blocks_of
from tests.benchmarks.history.commit_replay import CommitReplayer, HistoryRecord, ReplayedCommit
from tests.benchmarks.history.git_objects import GitObjects
from tests.benchmarks.history.report import commit_line, report_of, show_report

_MAX_COMMITS_READ = 2000
_READING_SHARE = 0.25  # share of the time for commits without typed blocks
_NUM_OFFERED = 3
_NOT_INDEXED = "files not given to the index"


class HistoryOptions(NamedTuple):
    """The author and number of commits, the earliest date (as git reads it), and the time limit in minutes.

    Without an `author` they are those of git's `user.email`.
    """

    author: str = ""
    since: str = ""
    num_commits: int = 20
    minutes: float = 5.0


def history(
    folder: Annotated[Path, typer.Argument(metavar="[REPO]", show_default=False)] = Path(),
    *,
    author: Annotated[str, typer.Option(help="Whose commits; otherwise those of git's user.email.")] = "",
    since: Annotated[str, typer.Option(help="The oldest commit, as git reads dates: '2 weeks ago'.")] = "",
    commits: Annotated[int, typer.Option(min=1, max=1000, help="Number of commits.")] = 20,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Minutes of typing, after the model is loaded.")
    ] = 5.0,
    target: Target = "",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Type your last commits in REPO, or here, through a server as a person would.

    Reports latency and typing saved, until the commits end, the time is over, or you stop it.
    """
    given, options = settings_given(settings or [], target), HistoryOptions(author, since, commits, minutes)
    record = begin(folder, options)
    with progress_bar(quiet=as_json) as report, interruptible():
        is_stopped = _run(record, options, with_named_target(given, report), report, as_json=as_json)
    if not record.typed:
        if is_stopped:
            raise typer.Exit(130)
        raise UserError("No commit was typed within the time.", advice="Allow more --minutes.")
    if as_json:
        write_json(report_of(record))
    else:
        show_report(report_of(record))


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
        with TemporaryDirectory(prefix="slipstream-history-", ignore_cleanup_errors=True) as folder:
            replayer = CommitReplayer(record, Path(folder) / "replay", settings, report)
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


if __name__ == "__main__":
    run(history)
