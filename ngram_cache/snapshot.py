"""The file format of a saved index, and the fingerprint of the rules by which it was made. Only this module
uses msgpack.

The file is read into memory, not mapped: truncating a mapped file ends the process.

The file holds a magic, a version and one checksum of all that follows: the length of the header, the header
(msgpack), then the words and the positions of each segment.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, reduce
from importlib.abc import ResourceLoader
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import platformdirs

from ngram_cache.construction import never_stop
from ngram_cache.file_names import real_path
from ngram_cache.live_parts import Stored
from ngram_cache.segment import Segment, layout

# The modules that decide which files are read.
OF_FILES = (
    "file_names",
    "folder_rules",
    "git_places",
    "glob",
    "ignore",
    "repository",
    "walk",
)
# The modules that decide what is removed from a file's text.
OF_TEXT = (
    "redaction.__init__",
    "redaction.forms",
    "redaction.names",
    "redaction.rule",
    "redaction.values",
)
MAGIC = b"slipstream-index"
VERSION = 4
MAX_FILE_BYTES = 1 << 30
_PREAMBLE = struct.Struct(">16sII")  # magic, version, checksum
_LENGTH = struct.Struct(">Q")
_STALE_SECONDS = 3600.0
_PIECE_BYTES = 4 << 20


@cache
def rules_fingerprint() -> str:
    """Return the fingerprint of all rules."""
    return digest_of(*OF_FILES, *OF_TEXT)


def digest_of(*modules: str) -> str:
    """Return a hash of the files, source or compiled, of these modules of this package."""
    digest = hashlib.sha256()
    for name in modules:
        spec = find_spec(f"{__package__}.{name}")
        if spec is None or spec.origin is None or not isinstance(spec.loader, ResourceLoader):
            raise ImportError(f"{name} has no file that could be read")
        data = spec.loader.get_data(spec.origin)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


class SnapshotError(Exception):
    """The saved index cannot be used and must be built again; the message is the reason."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file as it was indexed. `digest` is that of the tokenized text."""

    size: int
    mtime_ns: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A saved index: `files` has a record for each path in `stored`."""

    fingerprint: str
    root: str
    stored: Stored
    files: dict[str, FileRecord]


def index_directory() -> Path:
    """Return the folder of saved indexes: `SLIPSTREAM_INDEX_DIR`, or one in the platform's cache."""
    chosen = os.environ.get("SLIPSTREAM_INDEX_DIR")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("slipstream", appauthor=False) / "index"


def snapshot_path(directory: Path, root: Path, fingerprint: str) -> Path:
    """Return the file of one repository for one tokenizer."""
    return directory / f"{_root_name(root)}-{_short_hash(fingerprint)}.index"


def purge(directory: Path, root: Path) -> int:
    """Delete all saved indexes of a repository, for any tokenizer; return the number of files."""
    victims = list(directory.glob(f"{_root_name(root)}-*"))
    for victim in victims:
        victim.unlink(missing_ok=True)
    return len(victims)


def save(path: Path, snapshot: Snapshot, checkpoint: Callable[[], None] = never_stop) -> None:
    """Write atomically, readable by the user only. Raises OSError if writing fails.

    `checkpoint` is called between parts of the file. If it raises, the old file stays as it is.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_stale(path)
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in _pieces(snapshot):
                for start in range(0, len(piece), _PIECE_BYTES):
                    checkpoint()
                    file.write(piece[start : start + _PIECE_BYTES])
            checkpoint()
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(path: Path, *, fingerprint: str, root: str) -> Snapshot:
    """Read a saved index.

    Raises FileNotFoundError if there is none, SnapshotError if it must not be used, OSError if reading fails.
    """
    data = _read(path)
    header, offset = _read_header(data)
    _check_origin(header, fingerprint, root)
    return _read_snapshot(data, header, offset)


def saved_paths(directory: Path, root: Path) -> list[str] | None:
    """Return the sorted paths of the index that was saved last for a repository; None if there is none.

    Raises SnapshotError if it must not be used, OSError if reading fails.
    """
    saved = directory.glob(f"{_root_name(root)}-*.index")
    newest = max(saved, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        return None
    header, _ = _read_header(_read(newest))
    _check_origin(header, header["fingerprint"], str(real_path(root)))
    return sorted(path for _, path, *_ in header["files"])


def _pieces(snapshot: Snapshot) -> Iterator[bytes | memoryview]:
    segments = snapshot.stored.segments
    words = [memoryview(one.data)[one.base : one.base + 4 * one.num_words] for one in segments]
    header = _header(snapshot)
    parts: list[bytes | memoryview] = [_LENGTH.pack(len(header)), header]
    for own, segment in zip(words, segments, strict=True):
        parts += [own, segment.positions.cast("B")]
    yield _PREAMBLE.pack(MAGIC, VERSION, reduce(lambda crc, part: zlib.crc32(part, crc), parts, 0))
    yield from parts


def _header(snapshot: Snapshot) -> bytes:
    """Return the header: everything but the words and positions of the segments, which it describes."""
    header: bytes = msgpack.packb(
        {
            "fingerprint": snapshot.fingerprint,
            "root": os.fsencode(snapshot.root),
            "rules": rules_fingerprint(),
            "byteorder": sys.byteorder,
            "files": [
                [number, path, record.size, record.mtime_ns, record.digest]
                for number, path in snapshot.stored.paths.items()
                for record in [snapshot.files[path]]
            ],
            "segments": [
                [segment.documents, segment.lengths, len(segment.positions)]
                for segment in snapshot.stored.segments
            ],
        }
    )
    return header


def _read(path: Path) -> bytes:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise SnapshotError("the index file is not a regular file")
        if not _PREAMBLE.size + _LENGTH.size <= status.st_size <= MAX_FILE_BYTES:
            raise SnapshotError(f"the index file has a size of {status.st_size} bytes")
        return file.readall()


def _read_header(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header and where it ends. Raises SnapshotError unless the file is as it was written."""
    magic, version, checksum = _PREAMBLE.unpack_from(data)
    if magic != MAGIC:
        raise SnapshotError("the index file does not begin as one")
    if version != VERSION:
        raise SnapshotError(f"the index file has format {version}, this is format {VERSION}")
    if zlib.crc32(memoryview(data)[_PREAMBLE.size :]) != checksum:
        raise SnapshotError("the index file does not match its checksum")
    begin = _PREAMBLE.size + _LENGTH.size
    end = begin + _LENGTH.unpack_from(data, _PREAMBLE.size)[0]
    return msgpack.unpackb(data[begin:end]), end


def _check_origin(header: dict[str, Any], fingerprint: str, root: str) -> None:
    if header["fingerprint"] != fingerprint:
        raise SnapshotError("the index was made with another tokenizer")
    if header["root"] != os.fsencode(root):
        raise SnapshotError("the index was made for another folder")
    if header["rules"] != rules_fingerprint():
        raise SnapshotError("the index was made under other rules of what is left out")
    if header["byteorder"] != sys.byteorder:
        raise SnapshotError("the index was made on a machine of another byte order")


def _read_snapshot(data: bytes, header: dict[str, Any], offset: int) -> Snapshot:
    segments = []
    for documents, lengths, num_positions in header["segments"]:
        starts, num_words = layout(lengths)
        first = offset + 4 * num_words
        positions = memoryview(data)[first : first + 4 * num_positions].cast("i")
        segments.append(Segment(data, offset, num_words, positions, documents, starts, lengths))
        offset = first + 4 * num_positions
    files = {path: FileRecord(*record) for _, path, *record in header["files"]}
    paths = {number: path for number, path, *_ in header["files"]}
    return Snapshot(header["fingerprint"], os.fsdecode(header["root"]), Stored(tuple(segments), paths), files)


def _root_name(root: Path) -> str:
    return _short_hash(str(real_path(root)))


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _remove_stale(path: Path) -> None:
    """Delete incomplete files that a killed process left."""
    for leftover in path.parent.glob(f"{path.name}.*.tmp"):
        with contextlib.suppress(FileNotFoundError):  # another process may clean or save too
            if time.time() - leftover.lstat().st_mtime > _STALE_SECONDS:
                leftover.unlink()
