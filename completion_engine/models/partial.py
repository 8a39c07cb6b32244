"""A file that grows slice by slice and keeps what is good of it over an interruption.

Knows the disk and SHA-256. Does not depend on the source of slices.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from completion_engine.errors import DataError
from completion_engine.runtime import parse_json

CHUNK_BYTES = 1 << 20


def sha256_of(
    path: Path, *, num_bytes: int | None = None, on_bytes: Callable[[int], None] | None = None
) -> hashlib._Hash:
    """The running SHA-256 of a file, or of its first `num_bytes`; `on_bytes` gets the progress."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES if num_bytes is None else min(CHUNK_BYTES, num_bytes - done)):
            digest.update(chunk)
            done += len(chunk)
            if on_bytes:
                on_bytes(done)
    return digest


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes to append, and `name`, their source, for messages."""

    name: str
    num_bytes: int
    sha256: str


class PartialFile:
    """`<name>.partial` beside the final file, and `<name>.partial.json` with its verified prefix.

    Invariant: the first `num_bytes` bytes on disk are the first `num_slices` slices and hash to `digest`. The
    bytes after them belong to an interrupted slice and are overwritten. The file gets its final name in
    `finish`, after its size and hash were compared with the expected ones.
    """

    def __init__(self, target: Path, num_bytes_expected: int, sha256: str) -> None:
        self.target = target
        self._expected = (num_bytes_expected, sha256)
        self._data = target.with_name(target.name + ".partial")
        self._notes = target.with_name(target.name + ".partial.json")
        self.num_bytes, self.num_slices, self._digest = self._resume()

    def _resume(self) -> tuple[int, int, hashlib._Hash]:
        try:
            notes = parse_json(self._notes.read_text(encoding="utf-8"))
            num_bytes, num_slices = int(notes["num_bytes"]), int(notes["num_slices"])
            digest = sha256_of(self._data, num_bytes=num_bytes)
            if notes["expected"] == self._expected[1] and notes["digest"] == digest.hexdigest():
                return num_bytes, num_slices, digest
        except (OSError, ValueError, KeyError, TypeError):
            pass  # nothing usable there: start at the beginning
        self.discard()
        return 0, 0, hashlib.sha256()

    def append(self, expected: Slice, chunks: Iterable[bytes]) -> None:
        """Add one slice. Raises DataError, and keeps what came before, if it is not the expected one."""
        whole, own, num_bytes = self._digest.copy(), hashlib.sha256(), 0
        with self._data.open("r+b" if self._data.exists() else "wb") as file:
            file.seek(self.num_bytes)
            file.truncate()
            for chunk in chunks:
                num_bytes += len(chunk)
                if num_bytes > expected.num_bytes:
                    break
                whole.update(chunk)
                own.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if difference := _difference(expected, num_bytes, own.hexdigest()):
            raise self._refuse_slice(expected, difference)
        self.num_bytes, self.num_slices, self._digest = self.num_bytes + num_bytes, self.num_slices + 1, whole
        self._write_notes()

    def _write_notes(self) -> None:
        notes = {
            "num_bytes": self.num_bytes,
            "num_slices": self.num_slices,
            "digest": self._digest.hexdigest(),
            "expected": self._expected[1],
        }
        fresh = self._notes.with_suffix(".new")
        fresh.write_text(json.dumps(notes), encoding="utf-8")
        fresh.replace(self._notes)

    def finish(self) -> Path:
        """Give the file its final name. If it is not the expected file, removes it and raises DataError."""
        num_bytes, sha256 = self._expected
        if self.num_bytes != num_bytes:
            raise self._refuse(f"{self.num_bytes} bytes instead of {num_bytes}")
        if self._digest.hexdigest() != sha256:
            raise self._refuse(f"SHA-256 {self._digest.hexdigest()} instead of {sha256}")
        self._data.replace(self.target)
        self._notes.unlink(missing_ok=True)
        return self.target

    def discard(self) -> None:
        """Remove everything that was kept."""
        for file in (self._data, self._notes, self._notes.with_suffix(".new")):
            with contextlib.suppress(FileNotFoundError):
                file.unlink()

    def _refuse(self, difference: str) -> DataError:
        self.discard()
        return _not_that(self.target.name, difference)

    def _refuse_slice(self, expected: Slice, difference: str) -> DataError:
        if self.num_slices == 0:
            self.discard()
        else:
            os.truncate(self._data, self.num_bytes)
        return _not_that(expected.name, difference)


def _difference(expected: Slice, num_bytes: int, sha256: str) -> str:
    if num_bytes > expected.num_bytes:
        return f"more than {expected.num_bytes} bytes"
    if num_bytes < expected.num_bytes:
        return f"{num_bytes} bytes instead of {expected.num_bytes}"
    return "" if sha256 == expected.sha256 else f"SHA-256 {sha256} instead of {expected.sha256}"


def _not_that(name: str, difference: str) -> DataError:
    return DataError(
        f"The download of {name} is not the expected file: {difference}.",
        advice="Slipstream deleted it. Try again. If it fails again, check mirrors and proxies.",
    )
