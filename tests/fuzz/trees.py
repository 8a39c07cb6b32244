"""Hostile repositories on disk. The oracle: an index of what lies inside, and a reason for all the rest.

Names, links, pipes, rules and contents of any kind, and a folder that becomes a link while it is read. Owns
what such trees look like.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from ngram_cache.indexing import Indexer
from ngram_cache.planning import IndexHooks
from ngram_cache.repository import RepositoryOptions, StoppedError
from tests.fuzz.ignore_rules import hostile_rules
from tests.fuzz.places import own_folder
from tests.ngram_cache.integrity import check_integrity

_OUTSIDE = "outside_of_all"
_NAMES = (
    "a.py", "b.py", "c", "d.ts", "Makefile", ".env", "id_rsa", "node_modules", ".git", "a b.py", "é.py",
    "x.json", "a\nb.py", "\udcff.py", "-rf.py", "n" * 200 + ".py", "key.pem", "s.min.js", "\u202e.py", "lib",
    "src", "con.py",
)  # fmt: skip


@cache
def _place() -> Path:
    place = own_folder("tree")
    (place / "outside").mkdir()
    (place / "outside/a.py").write_text(f"{_OUTSIDE} = 1\n")
    os.environ["SLIPSTREAM_INDEX_DIR"] = str(place / "index")
    return place


def check(rng: random.Random) -> None:
    """One tree: built, indexed while it may change, changed, indexed again."""
    root = _place() / "repository"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    folders = [root]
    for _ in range(rng.randrange(1, 25)):
        _put(rng, folders)
    options = RepositoryOptions(max_files=rng.choice((0, 3, 100)), exclude=("a b.py", "*a*a*a*a*b"))
    hooks = IndexHooks(report=_swapping(rng, folders), should_stop=lambda: rng.random() < 0.0005)
    indexer = Indexer(root, _encode, "bytes", options, hooks)
    indexer.build()
    for _ in range(rng.randrange(4)):
        _put(rng, folders)
    names = [str(path.relative_to(root)) for path in folders]
    indexer.reconcile([*names, rng.choice(_NAMES), "../outside/a.py", "x/../../outside"])
    with suppress(StoppedError):
        indexer.set_overlay(rng.choice(_NAMES), "value = 1\n")
    indexer.save()
    check_integrity(indexer.index)
    held = indexer.index.lookup(list(_OUTSIDE.encode()), max_nodes=4, max_depth=4)
    assert held.match_length < len(_OUTSIDE)
    assert len(indexer.paths) <= options.max_files


def _encode(texts: list[str]) -> list[list[int]]:
    return [list(text.encode()) for text in texts]


def _swapping(rng: random.Random, folders: list[Path]) -> Callable[[int, int, str], None]:
    """Between two batches a folder may become a link that leads outside."""

    def swap(_done: int, _total: int, _path: str) -> None:
        victim = rng.choice(folders)
        if rng.random() < 0.3 and victim != folders[0] and victim.is_dir() and not victim.is_symlink():
            shutil.rmtree(victim)
            victim.symlink_to(_place() / "outside", target_is_directory=True)

    return swap


def _put(rng: random.Random, folders: list[Path]) -> None:
    """One more thing in one of the folders, unless its name is taken."""
    path = rng.choice(folders) / rng.choice(_NAMES)
    if os.path.lexists(path):
        return  # a pipe would be waited for, a link written through
    try:
        match rng.randrange(10):
            case 0 | 1 | 2:
                path.mkdir()
                folders.append(path)
            case 3:
                path.symlink_to(
                    rng.choice((_place() / "outside", _place() / "outside/a.py", path, folders[0]))
                )
            case 4:
                os.mkfifo(path)
            case 5:
                (path.parent / rng.choice((".gitignore", ".ignore"))).write_bytes(hostile_rules(rng))
            case 6:
                path.touch()
                os.utime(path, ns=(0, rng.choice((-(10**9), 1 << 62, 1 << 63, (1 << 64) + 5))))
            case _:
                path.write_bytes(_content(rng))
    except (OSError, OverflowError):
        return  # a name that this file system rejects, or a folder that is a link now


def _content(rng: random.Random) -> bytes:
    contents: tuple[Callable[[], bytes], ...] = (
        lambda: rng.randbytes(rng.randrange(3000)),
        lambda: b"x" * rng.choice((5_000, 5_001, 1 << 20, (1 << 20) + 1)),
        lambda: b"\n" * rng.randrange(1 << 16),
        lambda: b"(" * 4_000 + b"\n",
        lambda: b"a\0b\n",
        lambda: b"\xef\xbb\xbfpassword = 'x'\r\nvalue = 1\r",
        lambda: b"def f(x):\n    return x\n" * rng.randrange(50),
    )
    return rng.choice(contents)()
