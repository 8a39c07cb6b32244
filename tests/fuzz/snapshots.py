"""Damaged index files. The oracle: an index that answers, or a SnapshotError.

Owns how a sound file is damaged.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from ngram_cache import NgramIndex, snapshot
from ngram_cache.snapshot import FileRecord, Snapshot, SnapshotError
from tests.fuzz.places import own_folder


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
    path.write_bytes(_damaged(sound, rng))
    index = NgramIndex()
    try:
        loaded = snapshot.load(path, fingerprint="tokenizer", root="/root")
        index.restore(loaded.stored)
    except SnapshotError:
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
