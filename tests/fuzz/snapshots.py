"""Damaged and lying index files. The oracle: an index that answers, or a SnapshotError or ValueError.

Those that lie do so under right checksums. Owns how a sound file is damaged.
"""

from __future__ import annotations

import random
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it ships no types

from ngram_cache import NgramIndex, snapshot
from ngram_cache.snapshot import FileRecord, Snapshot, SnapshotError
from tests.fuzz.places import own_folder

_ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1,
    2**31,
    2**63,
    2**64 - 1,
    1.5,
    float("nan"),
    "",
    "x",
    b"x",
    [],
    {},
    [[]],
    True,
)
_PREAMBLE_BYTES = 64


@cache
def _sound() -> tuple[Path, bytes]:
    """Where a file is written, and a sound one's bytes."""
    path = own_folder("index") / "x.index"
    index = NgramIndex()
    for number in range(4):
        index.update(f"f{number}.py", [1, 2, 3, 1, 2, number] * number)
    stored = index.stored()
    files = {name: FileRecord(10, 20, name.encode()) for name in stored.paths.values()}
    snapshot.save(path, Snapshot("tokenizer", "/root", stored, files))
    return path, path.read_bytes()


def check(rng: random.Random) -> None:
    """One file, loaded, restored and asked."""
    path, sound = _sound()
    data = _lying(sound, rng) if rng.random() < 0.6 else _damaged(sound, rng)
    path.write_bytes(data)
    index = NgramIndex()
    try:
        loaded = snapshot.load(path, fingerprint="tokenizer", root="/root")
        index.restore(loaded.stored)
    except (SnapshotError, ValueError):
        return
    index.lookup([1, 2], max_nodes=8, max_depth=8)
    index.update("new.py", [1, 2, 3])
    index.maintain(1)
    index.lookup([1, 2], max_nodes=8, max_depth=8)
    index.stored()


def _damaged(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    match rng.randrange(5):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + 8 :]
        case 2:
            return data + rng.randbytes(rng.randrange(1, 99))
        case 3:
            return rng.randbytes(rng.randrange(300))
        case _:
            return data[:at] + data[rng.randrange(len(data)) :]


def _lying(data: bytes, rng: random.Random) -> bytes:
    """The same file with an odd value in its header, and positions that may be odd as well."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    magic, version, length, _ = unpacker.unpack()
    header = msgpack.unpackb(data[_PREAMBLE_BYTES : _PREAMBLE_BYTES + length])
    body = bytearray(data[_PREAMBLE_BYTES + length :])
    if rng.random() < 0.3:
        _shift_arrays(header, body, rng)
    else:
        _put_odd(header, rng)
    packed = msgpack.packb(header)
    preamble = msgpack.packb([magic, version, len(packed), zlib.crc32(packed)])
    return bytes(preamble.ljust(_PREAMBLE_BYTES, b"\xc0") + packed + body)


def _put_odd(value: Any, rng: random.Random) -> None:
    """One value anywhere is of another kind."""
    while True:
        key = rng.choice(sorted(value)) if isinstance(value, dict) else rng.randrange(len(value))
        if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.8:
            value = value[key]
            continue
        value[key] = rng.choice(_ODD)
        return


def _shift_arrays(header: dict[str, Any], body: bytearray, rng: random.Random) -> None:
    """Words and positions with other bytes in them, under right checksums."""
    at = 0
    for described in header["segments"]:
        for count, checksum in (("num_words", "words_crc"), ("num_positions", "positions_crc")):
            first, size = at + 5, 4 * described[count]
            for _ in range(rng.randrange(3) if size else 0):
                body[first + rng.randrange(size)] = rng.randrange(256)
            described[checksum] = zlib.crc32(bytes(body[first : first + size]))
            at = first + size
