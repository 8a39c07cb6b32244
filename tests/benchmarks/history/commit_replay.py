"""Commits, typed one after the other through one server: the files of the parent, its index, then the blocks.

Owns the clock of a history's replay, the server's folders and what is written to the disk. A tree is hostile:
links, submodules and paths that leave the folder are left out, and the number and size of the files are
bounded. Must not choose what is typed.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from completion_engine.errors import MachineError
from completion_engine.request import Progress
from lsp_server.commands.language_client import LanguageClient
from lsp_server.commands.player import Player, running_server, wait_until_ready
from lsp_server.workspace.settings_reading import REPOSITORY_FILE
from tests.benchmarks.history.block_typing import TypedBlock, plan_of, sampled_ends, type_block
from tests.benchmarks.history.blocks import Block, is_safe_path
from tests.benchmarks.history.git_objects import Commit, GitObjects

TYPING = "Typing the commit"
_MAX_FOLDER_WAIT_S = 60.0
_POLL_S = 0.05
_MIN_CHARS_PER_S = 2.0


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
class HistoryRecord:
    """What is known of a replay so far. `left_out` counts commits, files and blocks by reason.

    `engine` is the server's description of its engine, once it has loaded.
    """

    git: GitObjects
    author: str
    began: float = field(default_factory=time.monotonic)
    num_chosen: int = 0
    replayed: list[ReplayedCommit] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    engine: dict[str, Any] = field(default_factory=dict)

    @property
    def typed(self) -> list[TypedBlock]:
        """Every block that suggestions were shown for."""
        return [typed for commit in self.replayed for typed in commit.typed]


@dataclass(slots=True)
class CommitReplayer:
    """Types commits of a repository through one server, in folders below the empty `folder`.

    `chars_per_s` is how fast the last commit was typed.
    """

    record: HistoryRecord
    folder: Path
    settings: Mapping[str, Any]
    report: Progress
    chars_per_s: float = 10.0

    async def replay(
        self, commits: Sequence[Sequence[Block]], seconds: float, on_commit: Callable[[ReplayedCommit], None]
    ) -> None:
        """Type the blocks of each commit; all end within `seconds` after the model is loaded.

        Each commit gets an equal share of the time that is left, and ends with a call of `on_commit`. The
        folder holds the files of one commit's parent at a time. Between two commits it leaves the server, so
        that its index is compared with the disk and no answer can come from a newer commit. Raises
        SlipstreamError.
        """
        start, env = self.folder / "start", {"SLIPSTREAM_INDEX_DIR": str(self.folder / "index")}
        start.mkdir(parents=True)
        git = self.record.git
        async with running_server(start, settings=self.settings, env=env) as client:
            stats = await wait_until_ready(client, self.report)
            self.record.engine.update(stats["engine"])
            until = time.monotonic() + seconds
            here = self.folder / (git.root.name or "repository")
            here.mkdir()
            with suppress(FileNotFoundError):  # today's settings, not those of each commit
                shutil.copyfile(git.root / REPOSITORY_FILE, here / REPOSITORY_FILE)
            files = FilesOnDisk(git, here)
            for number, blocks in enumerate(commits):
                if (now := time.monotonic()) >= until:
                    return
                commit = blocks[0].commit
                num_left_out = await asyncio.to_thread(files.become, commit.parents[0])
                await self._change_folders(client, added=here)
                end = now + (until - now) / (len(commits) - number)
                typed, read = await self._type_commit(client, files, blocks, end)
                await self._change_folders(client, removed=here)
                on_commit(ReplayedCommit(commit, typed, num_left_out, read))

    async def _type_commit(
        self, client: LanguageClient, files: FilesOnDisk, blocks: Sequence[Block], end: float
    ) -> tuple[list[TypedBlock], list[TypedBlock]]:
        begin = time.monotonic()
        typed: list[TypedBlock] = []
        read: list[TypedBlock] = []

        def is_over() -> bool:
            now = time.monotonic()
            self.report(TYPING, round(min(now, end) - begin), max(1, round(end - begin)))
            return now >= end

        for number, block_end in sampled_ends(blocks, round(self.chars_per_s * (end - begin))).items():
            if is_over():
                break
            block = blocks[number]
            file, plan = files.folder / block.path, plan_of(block, block_end)
            typed.append(await type_block(Player(client, file, plan), block, is_over))
            read.append(await type_block(Player(client, file, plan, typist="reader"), block, is_over))
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


_MAX_FILES = 50_000
_MAX_FILE_BYTES = 1024 * 1024  # larger files are not indexed
_MAX_TOTAL_BYTES = 512 * 1024 * 1024


@dataclass(slots=True)
class FilesOnDisk:
    """A folder that holds the files of one commit. `blobs` are those on the disk, by path."""

    git: GitObjects
    folder: Path
    blobs: dict[str, str] = field(default_factory=dict)

    def become(self, commit: str) -> int:
        """Make the folder hold the files of `commit`; returns how many are left out.

        Raises SlipstreamError when git cannot read the commit, OSError when the disk is full.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        files, num_left_out = self.git.files(commit)
        wanted: dict[str, str] = {}
        num_bytes_left = _MAX_TOTAL_BYTES
        for file in files[:_MAX_FILES]:
            if file.num_bytes <= min(_MAX_FILE_BYTES, num_bytes_left) and is_safe_path(file.path):
                num_bytes_left -= file.num_bytes
                wanted[file.path] = file.blob
        for path in [path for path, blob in self.blobs.items() if wanted.get(path) != blob]:
            self._remove(self.folder / path)
            del self.blobs[path]
        with self.git.blob_reader() as reader:
            for path in wanted.keys() - self.blobs.keys():
                data = reader.read(wanted[path], _MAX_FILE_BYTES)
                if data is not None and _write(self.folder / path, data):
                    self.blobs[path] = wanted[path]
        return num_left_out + len(files) - len(self.blobs)

    def save(self, path: str, text: str) -> dict[str, Any]:
        """Write a file as its author saved it; returns the protocol's event of it."""
        file = self.folder / path
        # A file cannot be where the other's folder is.
        in_the_way = [it for it in self.blobs if it.startswith(f"{path}/") or path.startswith(f"{it}/")]
        for other in in_the_way:
            self._remove(self.folder / other)
            del self.blobs[other]
        is_new = not file.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        self.blobs[path] = ""
        return {"uri": file.as_uri(), "type": 1 if is_new else 2}

    def _remove(self, file: Path) -> None:
        """Remove a file and the folders that are empty without it: a file may get the name of one."""
        file.unlink(missing_ok=True)
        with suppress(OSError):  # the first one with another file ends it
            for folder in file.relative_to(self.folder).parents[:-1]:
                (self.folder / folder).rmdir()


def _write(path: Path, data: bytes) -> bool:
    """Write a new file; False where another path of the tree is in the way, on systems that ignore case."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
    except (FileExistsError, NotADirectoryError):
        return False
    return True
