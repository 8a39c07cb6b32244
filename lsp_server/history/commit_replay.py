"""Commits, typed one after the other through one server: the files of the parent, its index, then the blocks.

Owns the clock of a history's replay and the server's folders. Must not choose what is typed.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from completion_engine.errors import MachineError
from completion_engine.request import Progress
from lsp_server.commands.language_client import LanguageClient
from lsp_server.commands.player import running_server, wait_until_ready
from lsp_server.history.block_typing import BlockPlayer, TypedBlock, plan_of, sampled_ends
from lsp_server.history.blocks import Block
from lsp_server.history.git_objects import Commit, GitObjects
from lsp_server.history.parent_files import FilesOnDisk
from lsp_server.workspace.settings_reading import REPOSITORY_FILE

TYPING = "Typing the commit"
_MAX_FOLDER_WAIT_S = 60.0
_POLL_S = 0.05
_MIN_CHARS_PER_S = 2.0


@dataclass(frozen=True, slots=True)
class CommitBlocks:
    """A commit and what its author typed. `ends` are the numbers of the blocks to type and
    where to end each; empty to choose by the time."""

    commit: Commit
    blocks: Sequence[Block]
    ends: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplayedCommit:
    """A commit's typed blocks, in order; fewer than it has when its time was over.

    `read` are the same blocks with the typist who reads.
    """

    commit: Commit
    typed: Sequence[TypedBlock]
    num_files_left_out: int
    read: Sequence[TypedBlock] = ()


@dataclass(slots=True)
class TimeLimit:
    """The time that a replay may take; each commit gets an equal share of what is left.

    Commits whose blocks are chosen are compared with an earlier replay of them, where only whole blocks
    count. So each of them may take all the time that is left.
    """

    end: float

    def end_of(self, commit: CommitBlocks, num_left: int) -> float:
        """The moment at which `commit`, the next of `num_left`, must end."""
        now = time.monotonic()
        return self.end if commit.ends else now + max(0.0, self.end - now) / max(1, num_left)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.end


@dataclass(slots=True)
class CommitReplayer:
    """Types commits of a repository through one server, in folders below the empty `folder`.

    `engine` is the server's description of its engine, once it has loaded. `chars_per_s` is how fast the last
    commit was typed.
    """

    git: GitObjects
    folder: Path
    settings: Mapping[str, Any]
    report: Progress
    engine: dict[str, Any] = field(default_factory=dict)
    chars_per_s: float = 10.0

    async def replay(
        self, commits: Sequence[CommitBlocks], seconds: float, on_commit: Callable[[ReplayedCommit], None]
    ) -> None:
        """Type the commits for `seconds` after the model is loaded; each ends with a call of `on_commit`.

        The folder holds the files of one commit's parent at a time. Between two commits it leaves the server,
        so that its index is compared with the disk and no answer can come from a newer commit. Raises
        SlipstreamError.
        """
        start, env = self.folder / "start", {"SLIPSTREAM_INDEX_DIR": str(self.folder / "index")}
        start.mkdir(parents=True)
        async with running_server(start, settings=self.settings, env=env) as client:
            stats = await wait_until_ready(client, self.report)
            self.engine.update(stats["engine"])
            limit = TimeLimit(time.monotonic() + seconds)
            here = self.folder / (self.git.root.name or "repository")
            here.mkdir()
            with suppress(FileNotFoundError):  # today's settings, not those of each commit
                shutil.copyfile(self.git.root / REPOSITORY_FILE, here / REPOSITORY_FILE)
            files = FilesOnDisk(self.git, here)
            for number, commit in enumerate(commits):
                if limit.is_over:
                    return
                num_left_out = await asyncio.to_thread(files.become, commit.commit.parents[0])
                await self._change_folders(client, added=here)
                end = limit.end_of(commit, len(commits) - number)
                typed, read = await self._type_commit(client, files, commit, end)
                await self._change_folders(client, removed=here)
                on_commit(ReplayedCommit(commit.commit, typed, num_left_out, read))

    async def _type_commit(
        self, client: LanguageClient, files: FilesOnDisk, commit: CommitBlocks, end: float
    ) -> tuple[list[TypedBlock], list[TypedBlock]]:
        begin = time.monotonic()
        num_chars = round(self.chars_per_s * (end - begin))
        ends = commit.ends or sampled_ends(commit.blocks, num_chars)

        def is_over() -> bool:
            now = time.monotonic()
            self.report(TYPING, round(min(now, end) - begin), max(1, round(end - begin)))
            return now >= end

        typed: list[TypedBlock] = []
        read: list[TypedBlock] = []
        for number, block_end in ends.items():
            if is_over():
                break
            block = commit.blocks[number]
            plan = plan_of(block, block_end)
            player = BlockPlayer(client, files.folder, str(self.engine["target"]), is_over)
            typed.append(await player.play(block, plan))
            read.append(await player.play(block, plan, "reader"))
            if block.saved is not None:
                change = files.save(block.path, block.saved)
                client.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
        if seconds := time.monotonic() - begin:
            num_typed = sum(one.num_chars for one in typed)
            self.chars_per_s = max(_MIN_CHARS_PER_S, num_typed / seconds)
        return typed, read

    async def _change_folders(
        self, client: LanguageClient, *, added: Path | None = None, removed: Path | None = None
    ) -> None:
        """Add or remove a workspace folder; wait until the server has done it and every index is built."""
        event = {
            name: [{"uri": path.as_uri(), "name": path.name}] if path else []
            for name, path in (("added", added), ("removed", removed))
        }
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        end = time.monotonic() + _MAX_FOLDER_WAIT_S
        while time.monotonic() < end:
            stats = await wait_until_ready(client, self.report)
            folders = {Path(one["folder"]) for one in stats["index"]}
            if (added is None or added in folders) and removed not in folders:
                return
            await asyncio.sleep(_POLL_S)
        raise MachineError(f"The server did not take a new folder within {_MAX_FOLDER_WAIT_S:.0f} s.")
