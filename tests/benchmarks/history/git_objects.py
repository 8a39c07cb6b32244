"""Commits, trees, blobs and hunks of a repository, read from git's objects.

Owns what is asked of git. The repository is hostile, see `git_process`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

from completion_engine.errors import DataError, UserError
from lsp_server.commands.local_engine import indexed
from lsp_server.workspace.settings_reading import REPOSITORY_FILE
from ngram_cache.git_places import work_tree
from ngram_cache.repository import KnownLayers, Repository
from tests.benchmarks.history import git_process

_CHUNK_BYTES = 1024 * 1024
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_COMMIT = re.compile(r"^commit ([0-9a-f]+)\n\x01([^\0\n]*)\0(.*)$", re.MULTILINE)
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_REGULAR_MODES = ("100644", "100755")


class Commit(NamedTuple):
    """A commit, its parents, and the first line of its message."""

    id: str
    parents: tuple[str, ...]
    subject: str


class TreeFile(NamedTuple):
    """A regular file in a tree: its path as git stores it, its blob, and the blob's size."""

    path: str
    blob: str
    num_bytes: int


class Change(NamedTuple):
    """A file that a commit added or changed; `old_blob` is "" for an added one, `mode` is git's new mode."""

    path: str
    mode: str
    old_blob: str
    new_blob: str

    @property
    def is_regular(self) -> bool:
        """Whether the file is neither a link nor a submodule."""
        return self.mode in _REGULAR_MODES


class Hunk(NamedTuple):
    """Lines `old_start` up to `old_end` became `new_start` up to `new_end`, counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class GitObjects:
    """The objects of the repository whose work tree is `root`, and its rules as they are today.

    `allows` returns whether today's rules let a path of any commit be indexed.
    """

    root: Path
    allows: Callable[[str], bool]

    @classmethod
    def at(cls, folder: Path) -> GitObjects:
        """The repository that holds `folder`.

        Raises UserError when there is none, git refuses it, its configuration leads to another folder, or its
        rules exclude all of it.
        """
        if not folder.is_dir():
            raise UserError(f"There is no folder {folder}.", advice="Name the folder of a git repository.")
        text = git_process.run(folder, ("rev-parse", "--show-toplevel")).decode("utf-8", "surrogateescape")
        named, top = os.path.realpath(text.removesuffix("\n")), work_tree(Path(os.path.realpath(folder)))
        if top is None or os.path.normcase(named) != os.path.normcase(top):
            advice = "Its setting core.worktree leads elsewhere: remove it, or name that folder."
            raise UserError(f"git uses {named} as the work tree of {folder}.", advice=advice)
        return cls(top, _todays_rules(top))

    def user_email(self) -> str:
        """The address of `git config user.email`; "" when none is set."""
        try:
            return self._text("config", "--get", "user.email").strip()
        except UserError:
            return ""

    def frequent_authors(self, num_authors: int, max_commits: int) -> list[str]:
        """The addresses with most of the newest commits, the most frequent first."""
        text = self._text("rev-list", f"--max-count={max_commits}", "--format=%ae", "HEAD", "--")
        lines = (line for line in text.split("\n") if not line.startswith("commit "))
        found = Counter(line for line in lines if line and line.isprintable())
        return [address for address, _ in found.most_common(num_authors)]

    def commits(self, *, author: str, since: str, max_commits: int) -> list[Commit]:
        """The newest commits whose author line contains `author`, newest first. Raises UserError."""
        options = [f"--max-count={max_commits}", "--fixed-strings", f"--author={author}"]
        options += [f"--since={since}"] if since else []
        text = self._text("rev-list", *options, "--format=%x01%P%x00%s", "HEAD", "--")
        found = (match.groups() for match in _COMMIT.finditer(text))
        return [Commit(commit, tuple(parents.split()), subject.strip()) for commit, parents, subject in found]

    def files(self, commit: str) -> tuple[list[TreeFile], int]:
        """The files of a commit's tree that may be indexed, and the number of the other entries."""
        entries = self._text("ls-tree", "-r", "-z", "-l", "--full-tree", commit).split("\0")
        heads = [(entry.partition("\t")[0].split(), entry.partition("\t")[2]) for entry in entries if entry]
        files = [
            TreeFile(path, blob, int(size))
            for (mode, _, blob, size), path in heads
            if mode in _REGULAR_MODES and size.isdigit() and self.allows(path)
        ]
        return files, len(heads) - len(files)

    def changes(self, commit: Commit) -> list[Change]:
        """The files that a commit added or changed against its first parent, in git's order."""
        tree = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--abbrev=64", "--diff-filter=AMT")
        parts = self._text(*tree, commit.parents[0], commit.id, "--").split("\0")
        pairs = zip(parts[::2], parts[1::2], strict=False)
        return [
            Change(path, mode, "" if set(old) == {"0"} else old, new)
            for (_, mode, old, new, _), path in ((head.split(), path) for head, path in pairs)
        ]

    def hunks(self, old_blob: str, new_blob: str) -> list[Hunk]:
        """The changes from one blob to another, in the order of the lines."""
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--text", "--unified=0")
        _check_id(old_blob)
        _check_id(new_blob)
        lines = self._bytes("diff", *options, "--diff-algorithm=histogram", old_blob, new_blob).split(b"\n")
        return [_hunk(match.groups()) for match in map(_HUNK.match, lines) if match]

    @contextmanager
    def blob_reader(self) -> Iterator[BlobReader]:
        """A reader of many blobs through one process."""
        command = git_process.command_of(self.root, ("cat-file", "--batch"))
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=git_process.environment()
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            watch = git_process.Watch(process)
            try:
                yield BlobReader(process.stdin, process.stdout, watch)
            finally:
                watch.end()
                process.kill()

    def _text(self, *arguments: str) -> str:
        return self._bytes(*arguments).decode("utf-8", "surrogateescape")

    def _bytes(self, *arguments: str) -> bytes:
        return git_process.run(self.root, arguments)


@dataclass(frozen=True, slots=True)
class BlobReader:
    """Reads blobs as they are stored: git applies no filter and no line ends to them."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    watch: git_process.Watch

    def read(self, blob: str, max_bytes: int) -> bytes | None:
        """The bytes of a blob; None when there are more.

        Raises DataError when it is missing or git ended, MachineError when git took too long for it.
        """
        _check_id(blob)
        with self.watch:
            return self._read(blob, max_bytes)

    def _read(self, blob: str, max_bytes: int) -> bytes | None:
        try:
            self.stdin.write(blob.encode() + b"\n")
            self.stdin.flush()
        except OSError as error:
            raise _unreadable(blob) from error
        head = self.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise _unreadable(blob)
        num_bytes = int(head[2])
        data = self.stdout.read(min(num_bytes, max_bytes))
        num_left = num_bytes - len(data) + 1  # a line break ends each answer
        while num_left:
            rest = self.stdout.read(min(num_left, _CHUNK_BYTES))
            if not rest:
                raise _unreadable(blob)
            num_left -= len(rest)
        return data if num_bytes <= max_bytes else None


def _todays_rules(root: Path) -> Callable[[str], bool]:
    """Return whether a path may be indexed, by the rules of `root` as they are now. Raises UserError."""
    _, options = indexed(root)
    repository, known = Repository(root, options), KnownLayers()

    @cache
    def allows(path: str) -> bool:
        return path.rpartition("/")[2] != REPOSITORY_FILE and repository.allows(path, known)

    return allows


def _hunk(found: Sequence[bytes | None]) -> Hunk:
    old, num_old, new, num_new = (1 if value is None else int(value) for value in found)
    # git names the line before an empty range.
    old_start, new_start = old - (num_old > 0), new - (num_new > 0)
    return Hunk(old_start, old_start + num_old, new_start, new_start + num_new)


def _check_id(blob: str) -> None:
    if not _OBJECT_ID.fullmatch(blob):
        raise DataError(f"git named an object {blob[:80]!r}, which is not an object id.")


def _unreadable(blob: str) -> DataError:
    return DataError(f"git could not read the object {blob}.", advice="Run `git fsck` in the repository.")
