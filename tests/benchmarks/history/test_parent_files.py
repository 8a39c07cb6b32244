"""Files of a commit on the disk: nothing leaves the folder, and the folder goes whatever happens."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.benchmarks.history.commit_replay import (
    FilesOnDisk,
    is_safe_path,
)
from tests.benchmarks.history.git_objects import GitObjects
from tests.benchmarks.history.git_repositories import Repository


@pytest.mark.parametrize(
    "path",
    [
        "../out.py", "a/../../out.py", "/etc/passwd", "a//b.py", ".git/config", "sub/.GIT/hooks/pre-commit",
        "", "a/\nb.py", "a" * 300, "/".join(["ab"] * 500), "bad\udc80.py",
    ],
)  # fmt: skip
def test_paths_that_leave_the_folder_are_unsafe(path: str) -> None:
    assert not is_safe_path(path)


@pytest.mark.parametrize("path", ["a.py", "-rf", "a b/ü.py", ".github/ci.yml", "a..b/c.py"])
def test_other_paths_are_safe(path: str) -> None:
    assert is_safe_path(path)


def test_the_folder_becomes_each_commit(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    older = repository.commit({"a.py": "a\n", "sub/b.py": "b\n", "c.py": "c\n"})
    (repository.root / "link.py").symlink_to("/etc/passwd")
    newer = repository.commit({"a.py": "A\n", "c.py": None, "big.py": "x\n" * 600_000})
    files = FilesOnDisk(GitObjects.at(repository.root), tmp_path / "disk")
    assert files.become(newer) == 2  # a link, and a file that is too large
    found = {path.name: path.read_text() for path in files.folder.rglob("*") if path.is_file()}
    assert found == {"a.py": "A\n", "b.py": "b\n"}
    event = files.save("a.py", "typed\n")
    assert (event["type"], files.save("new.py", "new\n")["type"]) == (2, 1)
    assert files.become(older) == 0
    found = {path.name: path.read_text() for path in files.folder.rglob("*") if path.is_file()}
    assert found == {"a.py": "a\n", "b.py": "b\n", "c.py": "c\n"}


def test_a_path_may_be_a_folder_in_one_commit_and_a_file_in_the_next(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    older = repository.commit({"tool/deep/main.py": "x\n", "b.py": "b\n"})
    shutil.rmtree(repository.root / "tool")
    newer = repository.commit({"tool": "y\n"})
    files = FilesOnDisk(GitObjects.at(repository.root), tmp_path / "disk")
    for commit, path in ((older, "tool/deep/main.py"), (newer, "tool"), (older, "tool/deep/main.py")):
        assert files.become(commit) == 0
        assert sorted(files.blobs) == sorted(["b.py", path])
        assert all((files.folder / name).is_file() for name in files.blobs)


@pytest.mark.parametrize(("before", "after"), [("tool/main.py", "tool"), ("tool", "tool/main.py")])
def test_an_author_may_replace_a_folder_by_a_file(tmp_path: Path, before: str, after: str) -> None:
    files = FilesOnDisk(GitObjects(tmp_path, lambda _: True), tmp_path / "disk")
    assert files.save(before, "x\n")["type"] == 1
    assert files.save(after, "y\n")["type"] == 1
    assert list(files.blobs) == [after]
    assert (files.folder / after).read_text() == "y\n"
