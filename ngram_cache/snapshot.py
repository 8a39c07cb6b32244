"""The file format of a saved index, with all checks on reading. The only module that uses msgpack.

The file is read into memory, not mapped: truncating a mapped file ends the process.

A stream of msgpack objects: `[magic, version, header length, header CRC-32]`, the header (a map), then for
each segment its words and its positions as 32-bit `bin` objects. Each length is compared with the size of the
file, and each checksum with the one in the header, before the data is used.
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
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types
import numpy as np
import platformdirs

from ngram_cache.construction import never_stop
from ngram_cache.fingerprint import rules_fingerprint
from ngram_cache.live_parts import Stored
from ngram_cache.real_paths import real_path
from ngram_cache.segment import Segment, layout

MAGIC = "slipstream-index"
VERSION = 3
MAX_FILE_BYTES = 1 << 30
MAX_HEADER_BYTES = 64 << 20
_PREAMBLE_BYTES = 64
_BIN32 = 0xC6
_NIL = b"\xc0"
_STALE_SECONDS = 3600.0
_PIECE_BYTES = 4 << 20


class SnapshotError(Exception):
    """The saved index cannot be used and must be built again; the message is the reason."""


class CorruptSnapshotError(SnapshotError):
    """The file is damaged or incomplete."""


class ForeignSnapshotError(SnapshotError):
    """The file is of another format version, tokenizer, folder or machine."""


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
    _sync_folder(path.parent)


def load(path: Path, *, fingerprint: str, root: str) -> Snapshot:
    """Read a saved index.

    Raises FileNotFoundError if there is none, SnapshotError if it must not be used, OSError if reading fails.
    """
    data = _read(path)
    try:
        header, offset = _read_header(data)
        _check_origin(header, fingerprint, root)
        return _read_snapshot(data, header, offset)
    except (KeyError, TypeError, ValueError, OverflowError, struct.error) as error:
        raise CorruptSnapshotError(f"the index file is damaged: {error!r}") from error


def saved_paths(directory: Path, root: Path) -> list[str] | None:
    """Return the sorted paths of the index that was saved last for a repository; None if there is none.

    Raises SnapshotError if it must not be used, OSError if reading fails.
    """
    saved = directory.glob(f"{_root_name(root)}-*.index")
    newest = max(saved, key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        return None
    header, _ = _read_header(_read(newest))
    try:
        _check_origin(header, header["fingerprint"], str(real_path(root)))
        return sorted(str(path) for _, path, *_ in header["files"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptSnapshotError(f"the index file is damaged: {error!r}") from error


def _pieces(snapshot: Snapshot) -> Iterator[bytes | memoryview]:
    segments = [
        (memoryview(segment.data)[segment.base : segment.base + 4 * segment.num_words], segment.positions)
        for segment in snapshot.stored.segments
    ]
    header = _header(snapshot, segments)
    preamble = msgpack.packb([MAGIC, VERSION, len(header), zlib.crc32(header)])
    yield preamble.ljust(_PREAMBLE_BYTES, _NIL)
    yield header
    for arrays in segments:
        for array in arrays:
            yield struct.pack(">BI", _BIN32, array.nbytes)
            yield array.cast("B")


def _header(snapshot: Snapshot, segments: list[tuple[memoryview, memoryview]]) -> bytes:
    """Return the header: everything but the words and positions of the segments, which it describes."""
    described = [
        {
            "documents": segment.documents,
            "lengths": segment.lengths,
            "num_words": segment.num_words,
            "num_positions": len(segment.positions),
            "words_crc": zlib.crc32(words),
            "positions_crc": zlib.crc32(positions),
        }
        for segment, (words, positions) in zip(snapshot.stored.segments, segments, strict=True)
    ]
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
            "segments": described,
        }
    )
    return header


def _read(path: Path) -> bytes:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptSnapshotError("the index file is not a regular file")
        if not _PREAMBLE_BYTES <= status.st_size <= MAX_FILE_BYTES:
            raise CorruptSnapshotError(f"the index file has a size of {status.st_size} bytes")
        return file.readall()


def _read_header(data: bytes) -> tuple[dict[str, Any], int]:
    unpacker = msgpack.Unpacker(max_buffer_size=_PREAMBLE_BYTES)
    unpacker.feed(data[:_PREAMBLE_BYTES])
    try:
        preamble = unpacker.unpack()
        padding = data[unpacker.tell() : _PREAMBLE_BYTES]
    except (msgpack.UnpackException, ValueError) as error:
        raise CorruptSnapshotError("the index file does not begin as one") from error
    if not isinstance(preamble, list) or len(preamble) < 2 or preamble[0] != MAGIC:
        raise CorruptSnapshotError("the index file does not begin as one")
    if preamble[1] != VERSION:
        raise ForeignSnapshotError(f"the index file has format {preamble[1]!r}, this is format {VERSION}")
    _, _, length, checksum = preamble
    if not 0 <= length <= MAX_HEADER_BYTES:
        raise CorruptSnapshotError(f"the index file's header claims {length} bytes")
    packed = data[_PREAMBLE_BYTES : _PREAMBLE_BYTES + length]
    if padding.strip(_NIL) or len(packed) != length or zlib.crc32(packed) != checksum:
        raise CorruptSnapshotError("the index file's header does not match its checksum")
    return msgpack.unpackb(packed), _PREAMBLE_BYTES + length


def _check_origin(header: dict[str, Any], fingerprint: str, root: str) -> None:
    if header["fingerprint"] != fingerprint:
        raise ForeignSnapshotError("the index was made with another tokenizer")
    if header["root"] != os.fsencode(root):
        raise ForeignSnapshotError("the index was made for another folder")
    if header["rules"] != rules_fingerprint():
        raise ForeignSnapshotError("the index was made under other rules of what is left out")
    if header["byteorder"] != sys.byteorder:
        raise ForeignSnapshotError("the index was made on a machine of another byte order")


def _read_snapshot(data: bytes, header: dict[str, Any], offset: int) -> Snapshot:
    segments = []
    for described in header["segments"]:
        segment, offset = _read_segment(data, described, offset)
        segments.append(segment)
    if offset != len(data):
        raise ValueError("bytes are left over")
    paths: dict[int, str] = {}
    files: dict[str, FileRecord] = {}
    for number, path, size, mtime_ns, digest in header["files"]:
        if not (isinstance(path, str) and isinstance(digest, bytes)):
            raise TypeError("a file has no name or no digest")
        paths[int(number)] = path
        files[path] = FileRecord(int(size), int(mtime_ns), digest)
    return Snapshot(header["fingerprint"], os.fsdecode(header["root"]), Stored(tuple(segments), paths), files)


def _read_segment(data: bytes, described: dict[str, Any], offset: int) -> tuple[Segment, int]:
    documents = [int(number) for number in described["documents"]]
    lengths = [int(length) for length in described["lengths"]]
    if len(documents) != len(lengths) or documents != sorted(set(documents)) or min(lengths, default=0) < 0:
        raise ValueError("a segment's documents are not in order")
    starts, num_words = layout(lengths)
    if num_words != described["num_words"]:
        raise ValueError("a segment's lengths do not add up")
    base = _check_array(data, offset, 4 * num_words, described["words_crc"])
    offset = base + 4 * num_words
    num_positions = int(described["num_positions"])
    if not 0 <= num_positions <= num_words:
        raise ValueError("a segment has more positions than words")
    first = _check_array(data, offset, 4 * num_positions, described["positions_crc"])
    offset = first + 4 * num_positions
    positions = memoryview(data)[first:offset].cast("i")
    if num_positions:
        values = np.frombuffer(positions, dtype=np.int32)
        if int(values.min()) < starts[0] or int(values.max()) >= starts[-1] + lengths[-1]:
            raise ValueError("a position lies outside the documents")
    return Segment(data, base, num_words, positions, documents, starts, lengths), offset


def _check_array(data: bytes, offset: int, nbytes: int, checksum: int) -> int:
    """Return where an array of `nbytes` bytes begins, whose `bin` object is at `offset`."""
    first = offset + 5
    if first + nbytes > len(data) or data[offset:first] != struct.pack(">BI", _BIN32, nbytes):
        raise ValueError("an array is not where it should be")
    if zlib.crc32(memoryview(data)[first : first + nbytes]) != checksum:
        raise ValueError("an array does not match its checksum")
    return first


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


def _sync_folder(folder: Path) -> None:
    """Make the rename durable, on systems where folders can be opened."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
