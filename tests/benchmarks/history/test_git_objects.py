"""Git's objects are read as they are, within bounds, and nothing that a repository names runs."""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from pathlib import Path

import pytest

from completion_engine.errors import DataError, MachineError, UserError
from tests.benchmarks.history import git_process
from tests.benchmarks.history.blocks import blocks_of
from tests.benchmarks.history.git_objects import Change, GitObjects, Hunk
from tests.benchmarks.history.git_repositories import AUTHOR, Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def test_commits_of_one_author_come_newest_first(repository: Repository) -> None:
    first = repository.commit({"a.py": "a\n"}, "One")
    repository.commit({"a.py": "b\n"}, "Two", author="bob@example.org")
    third = repository.commit({"a.py": "c\n"}, "commit three\n\nwith a body")
    commits = GitObjects.at(repository.root).commits(author=AUTHOR, since="", max_commits=10)
    assert [(one.id, one.subject) for one in commits] == [(third, "commit three"), (first, "One")]
    assert commits[1].parents == ()


def test_dates_and_numbers_bound_the_commits(repository: Repository) -> None:
    for text in ("a", "b", "c"):
        repository.commit({"a.py": f"{text}\n"}, text)
    git = GitObjects.at(repository.root)
    assert len(git.commits(author=AUTHOR, since="", max_commits=2)) == 2
    assert git.commits(author=AUTHOR, since="2099-01-01", max_commits=9) == []
    assert git.commits(author="a.a@example.org", since="", max_commits=9) == []  # not a pattern


def test_an_author_that_looks_like_an_option_is_an_author(repository: Repository) -> None:
    repository.commit({"a.py": "a\n"})
    git = GitObjects.at(repository.root)
    assert git.commits(author="--all", since="", max_commits=9) == []


@pytest.mark.parametrize(
    ("old", "new", "hunks"),
    [
        ("a\nb\n", "a\nx\ny\nb\n", [Hunk(1, 1, 1, 3)]),
        ("a\nb\nc\n", "a\nc\n", [Hunk(1, 2, 1, 1)]),
        ("a\nb\nc\n", "A\nb\nC\n", [Hunk(0, 1, 0, 1), Hunk(2, 3, 2, 3)]),
        ("a\n", "x\na\n", [Hunk(0, 0, 0, 1)]),
    ],
)
def test_hunks_count_lines_from_0(repository: Repository, old: str, new: str, hunks: list[Hunk]) -> None:
    repository.commit({"a.py": old})
    repository.commit({"a.py": new})
    git = GitObjects.at(repository.root)
    (change,) = git.changes(git.commits(author=AUTHOR, since="", max_commits=1)[0])
    assert git.hunks(change.old_blob, change.new_blob) == hunks


def test_strange_names_links_and_submodules_are_told_apart(repository: Repository) -> None:
    first = repository.commit({"a.py": "a\n"})
    names = ["-rf.py", "two\nlines.py", "tab\tand space.py", 'quote".py', "ünï.py"]
    (repository.root / "link.py").symlink_to("/etc/passwd")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{first},module")
    repository.commit(dict.fromkeys(names, "x\n"))
    git = GitObjects.at(repository.root)
    changes = git.changes(git.commits(author=AUTHOR, since="", max_commits=1)[0])
    assert {change.path for change in changes if change.is_regular} == set(names)
    files, num_others = git.files("HEAD")
    assert ({file.path for file in files}, num_others) == ({"a.py", *names}, 1)


def test_a_file_that_is_added_has_no_old_blob(repository: Repository) -> None:
    repository.commit({"a.py": "a\n"})
    repository.commit({"b.py": "b\n", "a.py": None})
    git = GitObjects.at(repository.root)
    (change,) = git.changes(git.commits(author=AUTHOR, since="", max_commits=1)[0])
    assert change == Change("b.py", "100644", "", change.new_blob)
    with git.blob_reader() as reader:
        assert reader.read(change.new_blob, 100) == b"b\n"
        assert reader.read(change.new_blob, 1) is None
        assert reader.read(change.new_blob, 2) == b"b\n"
        with pytest.raises(DataError):
            reader.read("0" * 40, 100)
        with pytest.raises(DataError):
            reader.read("HEAD:a.py", 100)


def test_nothing_that_the_repository_names_runs(repository: Repository, tmp_path: Path) -> None:
    """Filters, text converters, diff drivers, pagers and other programs leave a mark if they run."""
    mark, program = tmp_path / "mark", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    repository.commit({"a.py": "a\n"})
    repository.commit({"a.py": "a\nb\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n"})
    for name in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.askPass", "diff.external",
        "diff.evil.textconv", "diff.evil.command", "filter.evil.smudge", "filter.evil.clean",
        "filter.evil.process", "gpg.program", "pager.rev-list", "pager.diff",
    ):  # fmt: skip
        repository.git("config", name, str(program))
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "core.hooksPath", str(tmp_path))
    before = repository.state()
    git = GitObjects.at(repository.root)
    assert git.user_email() == AUTHOR
    (newest, _) = git.commits(author=AUTHOR, since="", max_commits=5)
    changes = [change for change in git.changes(newest) if change.old_blob]
    assert git.hunks(changes[0].old_blob, changes[0].new_blob) == [Hunk(1, 1, 1, 2)]
    files, _ = git.files(newest.id)
    with git.blob_reader() as reader:
        assert {reader.read(file.blob, 100) for file in files} >= {b"a\nb\n"}
    assert not mark.exists()
    assert repository.state() == before


@pytest.mark.parametrize(("code", "expected"), [("exit 0", "done"), ("exit 1", "failed in .*: www")])
def test_git_may_write_more_errors_than_a_pipe_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, expected: str
) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' w >&2\necho done\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(git_process, "MAX_WAIT_S", 30.0)
    try:
        found = git_process.run(tmp_path, ("rev-list", "HEAD")).decode()
    except UserError as error:
        found = str(error)
    assert re.search(expected, found)


def test_blobs_are_read_for_as_long_as_each_of_them_comes(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a.py": "a\n"})
    git = GitObjects.at(repository.root)
    ((file,), _) = git.files("HEAD")
    monkeypatch.setattr(git_process, "MAX_WAIT_S", 0.5)
    with git.blob_reader() as reader:
        for _ in range(3):
            time.sleep(0.3)  # all blobs together take longer than one may
            assert reader.read(file.blob, 100) == b"a\n"


def test_a_git_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(git_process, "MAX_WAIT_S", 0.1)
    too_late = pytest.raises(MachineError, match="took more than")
    with GitObjects(tmp_path, lambda _: True).blob_reader() as reader, too_late:
        reader.read("0" * 40, 100)


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        GitObjects.at(tmp_path)
    with pytest.raises(UserError):
        GitObjects.at(tmp_path / "missing")


def test_a_configuration_that_leads_to_another_work_tree_is_refused(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"a.py": "a\n"})
    other = Repository(tmp_path / "other")
    other.commit({"secret.py": "b\n"})
    repository.git("config", "core.worktree", str(other.root))
    with pytest.raises(UserError, match="as the work tree of"):
        GitObjects.at(repository.root)


@pytest.mark.parametrize("kind", ["subfolder", "worktree", "submodule", "link"])
def test_honest_work_trees_are_followed(repository: Repository, tmp_path: Path, kind: str) -> None:
    repository.commit({"sub/a.py": "a\n"})
    match kind:
        case "subfolder":
            assert GitObjects.at(repository.root / "sub").root == repository.root
        case "link":
            (tmp_path / "link").symlink_to(repository.root)
            assert GitObjects.at(tmp_path / "link").root == repository.root
        case "worktree":
            repository.git("worktree", "add", "-q", str(tmp_path / "tree"))
            assert GitObjects.at(tmp_path / "tree").root == tmp_path / "tree"
        case "submodule":
            outer = Repository(tmp_path / "outer")
            outer.git(
                "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository.root), "in"
            )
            assert GitObjects.at(outer.root / "in").root == outer.root / "in"


RULES = {
    ".gitignore": "private/\n",
    ".ignore": "private/\n",
    ".git/info/exclude": "private/\n",
    ".slipstream.toml": '[index]\nexclude = ["private/"]\n',
    ".git/more": "[core]\nexcludesFile = .git/rules\n",
}


@pytest.mark.parametrize("name", RULES)
def test_today_s_rules_hold_for_each_file_of_each_commit(repository: Repository, name: str) -> None:
    repository.commit({"open.py": "a\n", "private/plan.py": "a\n"})
    commit = repository.commit(
        {"open.py": "b = 12\n", "private/plan.py": "b = 12\n", ".slipstream.toml": "x"}
    )
    (repository.root / ".slipstream.toml").unlink()
    (repository.root / name).write_text(RULES[name])
    if name == ".git/more":
        (repository.root / ".git/rules").write_text("private/\n")
        repository.git("config", "include.path", "more")
    git = GitObjects.at(repository.root)
    files, num_left_out = git.files(commit)
    assert [file.path for file in files] == ["open.py"]
    assert num_left_out == 2
    left_out = Counter[str]()
    (newest,) = git.commits(author=AUTHOR, since="", max_commits=1)
    assert {block.path for block in blocks_of(git, newest, left_out)} == {"open.py"}
    assert left_out["excluded by rules"] == 2


@pytest.mark.parametrize("text", ["index = ", "[index]\nenabled = false\n"])
def test_a_repository_whose_rules_exclude_all_is_not_replayed(repository: Repository, text: str) -> None:
    repository.commit({"a.py": "a\n"})
    (repository.root / ".slipstream.toml").write_text(text)
    with pytest.raises(UserError, match="not indexed"):
        GitObjects.at(repository.root)
