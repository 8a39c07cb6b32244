"""The meaning of a change of many names, by the slow truth, and at a cost that does not multiply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngram_cache import planning
from ngram_cache.confined import ConfinedFolder
from ngram_cache.folder_rules import FolderRules, KnownLayers, Layers
from ngram_cache.indexing import Indexer
from ngram_cache.planning import IndexHooks, Places
from ngram_cache.repository import RepositoryOptions, WalkLimits

Write = Callable[[dict[str, str]], None]
Make = Callable[..., Indexer]

paths = st.lists(st.sampled_from(["a", "b", "a-", "a.b", "A", "ab"]), min_size=1, max_size=4).map("/".join)


def is_below(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}/" if name else "")


@given(names=st.sets(paths | st.just(""), max_size=6), path=paths)
def test_places_hold_what_lies_at_and_below_their_names(names: set[str], path: str) -> None:
    places = Places(names)
    assert (path in places) == any(is_below(path, name) for name in names)
    outermost = [
        name for name in names if not any(name != other and is_below(name, other) for other in names)
    ]
    assert sorted(places.names) == sorted(outermost)


def many(num_folders: int) -> dict[str, str]:
    return {f"src/d{number}/f.py": f"x = {number}\n" for number in range(num_folders)}


def test_many_changes_look_at_every_path_and_every_rule_file_once(
    write: Write, make_indexer: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = many(50)
    write({**files, "src/.gitignore": "*.o\n"})
    indexer = make_indexer()
    indexer.build()
    folders = indexer.folders
    asked: list[str] = []
    read: list[str] = []
    holds, read_file = Places.__contains__, ConfinedFolder.read

    def noted(places: Places, path: str) -> bool:
        asked.append(path)
        return holds(places, path)

    def reading(folder: ConfinedFolder, path: str, max_bytes: int) -> bytes:
        read.append(path)
        return read_file(folder, path, max_bytes)

    monkeypatch.setattr(Places, "__contains__", noted)
    monkeypatch.setattr(ConfinedFolder, "read", reading)
    for name in files:
        (root / name).unlink()
    summary = indexer.reconcile([*files, "src/new.py", "src/d0"])
    assert summary.num_removed == 50
    assert sorted(asked) == sorted([*files, *folders])
    assert read.count("src/.gitignore") == 1


def test_many_changes_end_when_somebody_wants_it(
    write: Write, make_indexer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(many(50))
    stopping: list[bool] = []
    indexer = make_indexer(hooks=IndexHooks(should_stop=lambda: bool(stopping)))
    indexer.build()
    entered: list[str] = []
    at = FolderRules.at

    def noted(rules: FolderRules, path: str, known: object = None) -> object:
        entered.append(path)
        stopping.append(True)
        return at(rules, path)

    monkeypatch.setattr(FolderRules, "at", noted)
    assert not indexer.reconcile(many(50)).is_complete
    assert len(entered) == 1


def test_rules_beside_the_way_to_a_name_are_not_kept(
    write: Write, make_indexer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({**many(50), "src/d1/deep/a.py": "", "src/d1/deep/b.py": ""})
    indexer = make_indexer()
    indexer.build()
    nums_kept: list[int] = []
    at = FolderRules.at

    def noted(rules: FolderRules, path: str, known: KnownLayers | None = None) -> Layers:
        nums_kept.append(len(known or ()))
        return at(rules, path, known)

    monkeypatch.setattr(FolderRules, "at", noted)
    indexer.reconcile([*many(50), "src/d1/deep/a.py", "src/d1/deep/b.py"])
    assert len(nums_kept) == 52
    assert max(nums_kept) == 4  # the root, src, d1, deep


def test_what_no_time_is_left_for_is_left_out_and_said(
    write: Write, make_indexer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(many(5))
    indexer = make_indexer(options=RepositoryOptions(limits=WalkLimits(max_walk_s=10)))
    indexer.build()
    seconds = iter(range(0, 100, 4))
    monkeypatch.setattr(
        planning, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None)
    )
    summary = indexer.reconcile(many(5))
    assert summary.skipped["too many entries"] == 3
    assert indexer.paths == ["src/d0/f.py", "src/d1/f.py"]


def test_folders_that_go_are_read_no_more_until_they_come_again(
    write: Write, make_indexer: Make, root: Path
) -> None:
    write({"src/deep/a.py": "", "lib/b.py": ""})
    indexer = make_indexer()
    indexer.build()
    before = indexer.folders
    assert before == {"", "lib", "src", "src/deep"}
    write({"lib/b.py": "x = 1\n", "lib/c.py": ""})
    indexer.reconcile(["lib/b.py", "lib/c.py"])
    assert indexer.folders is before
    (root / "src").rename(root / "moved")
    indexer.reconcile(["src", "moved"])
    assert indexer.folders == {"", "lib", "moved", "moved/deep"}
    (root / "moved").rename(root / "src")
    indexer.reconcile(["src", "moved"])
    assert indexer.folders == before
