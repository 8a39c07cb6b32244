"""The replay of a history: which commits, with which models, within which time.

Owns the order of the steps and what is known so far, so that a run that is stopped can report it.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from completion_engine.errors import DataError, UserError
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import CATALOGUE
from completion_engine.request import Progress
from lsp_server.commands.temporary_folder import temporary_folder
from lsp_server.history.block_typing import TypedBlock
from lsp_server.history.blocks import blocks_of
from lsp_server.history.commit_replay import CommitBlocks, CommitReplayer, ReplayedCommit
from lsp_server.history.git_objects import GitObjects

_MAX_COMMITS_READ = 2000
_READING_SHARE = 0.25  # share of the time for commits without typed blocks
_NUM_OFFERED = 3
_NOT_INDEXED = "files not given to the index"
_FIRST_MODEL_SHARE = 0.7  # share of the time, if a larger model types the same blocks afterwards


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """The author and number of commits, the earliest date (as git reads it), and the time limit in minutes.

    Without an `author` they are those of git's `user.email`.
    """

    author: str = ""
    since: str = ""
    num_commits: int = 20
    minutes: float = 5.0
    has_larger_model: bool = True


@dataclass(slots=True)
class HistoryRecord:
    """What is known of a replay so far. `left_out` counts commits, files and blocks by reason."""

    git: GitObjects
    author: str
    began: float = field(default_factory=time.monotonic)
    num_chosen: int = 0
    replayed: list[ReplayedCommit] = field(default_factory=list)
    larger: list[ReplayedCommit] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    engine: dict[str, Any] = field(default_factory=dict)

    @property
    def typed(self) -> list[TypedBlock]:
        """Every block that the first model's suggestions were shown for."""
        return [typed for commit in self.replayed for typed in commit.typed]

    @property
    def read(self) -> list[TypedBlock]:
        """The same blocks with the typist who reads."""
        return [read for commit in self.replayed for read in commit.read]

    @property
    def typed_larger(self) -> list[TypedBlock]:
        """The same blocks with the larger model, as far as the time allowed."""
        return [typed for commit in self.larger for typed in commit.typed]


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


async def replay_history(
    record: HistoryRecord,
    options: HistoryOptions,
    settings: Mapping[str, Any],
    report: Progress,
    on_commit: Callable[[ReplayedCommit], None],
) -> None:
    """Type the commits into `record`, newest first; then the newest ones again with a larger stored model.

    Raises SlipstreamError. The record holds every finished commit, also when this is cancelled.
    """
    seconds = 60 * options.minutes
    chosen = choose_commits(record, options, report, record.began + _READING_SHARE * seconds)
    record.num_chosen = len(chosen)
    target = larger_model(settings["target"]) if options.has_larger_model else ""
    share = _FIRST_MODEL_SHARE if target else 1.0

    def keep(commit: ReplayedCommit) -> None:
        record.replayed.append(commit)
        if num_files := max(record.left_out[_NOT_INDEXED], commit.num_files_left_out):
            record.left_out[_NOT_INDEXED] = num_files
        on_commit(commit)

    with temporary_folder() as folder:
        replayer = CommitReplayer(record.git, folder / "first", settings, report, record.engine)
        await replayer.replay(chosen, share * seconds, keep)
        again = [_as_typed(commit) for commit in record.replayed if commit.typed]
        if target and again:
            larger = {**settings, "target": target}
            replayer = CommitReplayer(record.git, folder / "larger", larger, report)
            await replayer.replay(again, (1 - share) * seconds, record.larger.append)


def choose_commits(
    record: HistoryRecord, options: HistoryOptions, report: Progress, end: float
) -> list[CommitBlocks]:
    """The newest commits in which the author typed anything; counts the others in `record.left_out`.

    Raises UserError when there is none.
    """
    git, left_out = record.git, record.left_out
    chosen: list[CommitBlocks] = []
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
            chosen.append(CommitBlocks(commit, blocks))
        else:
            left_out["commits without typed lines"] += 1
    if not chosen:
        when = f" since {options.since}" if options.since else ""
        raise UserError(
            f"{git.root} has no commit of {record.author}{when} in which source code was typed.",
            advice="Name another --author or an earlier --since; `git shortlog -se` lists the authors.",
        )
    return chosen


def larger_model(target: str) -> str:
    """The next larger stored model that `auto` may choose; "" when there is none."""
    specs = [spec for spec in CATALOGUE.values() if spec.may_be_chosen or spec.id == target]
    sizes = {spec.id: spec.num_bytes for spec in specs}
    ready = {stored.spec.id for stored in ModelStore().list() if stored.is_ready}
    larger = [name for name in sizes if name in ready and sizes[name] > sizes.get(target, 2**63)]
    return min(larger, key=sizes.__getitem__, default="")


def _as_typed(commit: ReplayedCommit) -> CommitBlocks:
    """The blocks of a commit as far as they were typed."""
    blocks = [typed.block for typed in commit.typed]
    ends = {number: typed.block.start + typed.num_chars for number, typed in enumerate(commit.typed)}
    return CommitBlocks(commit.commit, blocks, ends)
