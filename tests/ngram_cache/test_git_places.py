"""Rules that lie outside of a folder hold as git reads them, wherever git keeps them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

import pytest

from ngram_cache import confined, folder_rules
from ngram_cache.git_places import (
    MAX_CONFIG_BYTES,
    MAX_CONFIG_FILES,
    MAX_EXCLUDE_FILES,
    find_places,
    is_on_another_share,
)
from ngram_cache.indexing import Indexer
from ngram_cache.repository import KnownLayers, Repository, Walk

Write = Callable[[dict[str, str]], None]
_GIT = shutil.which("git")
WHO = ["-c", "user.name=a", "-c", "user.email=a@example.org"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user without any git configuration."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    for name in (name for name in os.environ if name == "XDG_CONFIG_HOME" or name.startswith("GIT_")):
        monkeypatch.delenv(name)
    return folder


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def found(root: Path) -> list[str]:
    return sorted(file.path for file in Repository(root).walk().files)


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [str(_GIT), *WHO, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout


def numbered(name: str, value: str) -> dict[str, str]:
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": name, "GIT_CONFIG_VALUE_0": value}


def listed_by_git(folder: Path) -> list[str]:
    return sorted(git(folder, "ls-files", "--others", "--exclude-standard", "*.py").split())


@pytest.mark.skipif(_GIT is None, reason="compares with git itself")
@pytest.mark.parametrize("place", ["main", "worktree", "apart", "main/deep"])
def test_git_agrees_wherever_its_folder_lies(tmp_path: Path, home: Path, place: str) -> None:
    (tmp_path / "main").mkdir()
    git(tmp_path / "main", "init", "-q")
    git(tmp_path / "main", "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path / "main", "worktree", "add", "-q", "../worktree")
    git(tmp_path, "init", "-q", "--separate-git-dir", "its_git", "apart")
    for folder in (tmp_path / "main/.git", tmp_path / "its_git"):
        put(folder / "info/exclude", "private.py\n/deep/own.py\n")
    put(home / ".config/git/ignore", "scratch.py\n")
    root = tmp_path / place
    for name in ("a.py", "private.py", "scratch.py", "own.py", "deep/own.py", "deep/b.py"):
        put(root / name)
    assert found(root) == listed_by_git(root)
    assert {"private.py", "scratch.py"}.isdisjoint(found(root))


@pytest.mark.skipif(_GIT is None, reason="compares with git itself")
@pytest.mark.parametrize(
    "config",
    [
        "[core]\nexcludesFile = ~/mine\n",
        "[Core]\n\tExcludesfile=~/mine # a comment\n",
        '[core] excludesfile = "~/m\\\nine"\n',
        "[include]\npath = more\n",
        '[other "x]"]\na = b\n[include] path = "more"\n',
        "# the folder C:\\\n[core]\n; C:\\\nexcludesfile = ~/mine\n",
        "[safe]\ndirectory = C:\\\\\n[core] a = b # C:\\\nexcludesfile = ~/mine\n",
        '[safe]\ndirectory = "C:\\\\"\n[core]\nexcludesfile = ~/m"in"\\\ne ; mine\n',
        '[core]\nexcludesfile = ~/mine\n[includeIf "gitdir:/nowhere/"]\npath = less\n',
    ],
)
def test_git_agrees_on_what_its_configuration_names(tmp_path: Path, home: Path, config: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q")
    put(home / ".gitconfig", config)
    put(home / "more", "[core]\nexcludesfile = ~/mine\n")
    put(home / "less", "[core]\nexcludesfile = ~/keeping\n")
    put(home / "mine", "scratch.py\n")
    put(home / "keeping", "!scratch.py\n")
    for name in ("a.py", "scratch.py"):
        put(root / name)
    assert found(root) == listed_by_git(root) == ["a.py"]


@pytest.mark.skipif(_GIT is None, reason="compares with git itself")
@pytest.mark.parametrize(
    ("config", "variables"),
    [
        ("[core]\nignorecase = true\n", {}),
        ("[core] ignorecase", {}),
        ("[core]\nignorecase = 0\n", {}),
        ("[include]\npath = ../more\n", {}),
        ("", {"GIT_CONFIG_GLOBAL": "{home}/own"}),
        ("", {"GIT_CONFIG_PARAMETERS": "'core.ignorecase=true' 'core.excludesfile'='{home}/mine'"}),
        (
            "",
            {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "core.excludesFile",
                "GIT_CONFIG_VALUE_0": "~/mine",
            },
        ),
        (
            "",
            {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "includeIf.gitdir:/.path",
                "GIT_CONFIG_VALUE_0": "~/own",
            },
        ),
    ],
)
def test_git_agrees_on_case_and_on_what_variables_say(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch, config: str, variables: dict[str, str]
) -> None:
    git(root, "init", "-q")
    put(root / ".git/config", "[core]\nrepositoryformatversion = 0\n" + config)
    put(root / "more", "[core]\nignorecase = yes\n")
    put(home / "own", "[core]\nexcludesFile = ~/mine\n")
    put(home / "mine", "scratch.py\n")
    put(root / ".gitignore", "Private/\n*.TMP.py\n")
    for name in ("a.py", "private/b.py", "x.tmp.py", "deep/Private/c.py", "scratch.py"):
        put(root / name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(home=home))
    assert found(root) == listed_by_git(root)


@pytest.mark.skipif(_GIT is None, reason="compares with git itself")
def test_git_agrees_on_a_repository_that_variables_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a home whose files are in a repository: its git folder has another name."""
    git(root, "init", "-q", "--bare", str(tmp_path / "its_git"))
    put(tmp_path / "its_git/info/exclude", "/inner/secret.py\n")
    put(root / ".gitignore", "other.py\n")
    for name in ("inner/a.py", "inner/secret.py", "inner/other.py", "inner/own.py"):
        put(root / name)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "its_git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(root))
    assert found(root / "inner") == listed_by_git(root / "inner") == ["a.py", "own.py"]
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    git(root / "inner", "init", "-q")
    put(root / "inner/.git/info/exclude", "/own.py\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "its_git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(root))
    assert found(root / "inner") == ["a.py"]


def test_variables_that_git_would_not_set_exclude_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root / ".git/HEAD")
    put(root / "a.py")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    assert found(root) == []


@pytest.mark.skipif(_GIT is None, reason="compares with git itself")
@pytest.mark.parametrize("outer", ["no work tree", "a work tree"])
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_git_agrees_on_work_trees_below_a_folder(tmp_path: Path, home: Path, outer: str, kind: str) -> None:
    inner = tmp_path / "root" / "lib" / "inner"
    inner.mkdir(parents=True)
    if outer == "a work tree":
        git(tmp_path / "root", "init", "-q")
    git(inner, "init", "-q", *([] if kind == "folder" else ["--separate-git-dir", str(tmp_path / "its_git")]))
    put((inner / ".git" if kind == "folder" else tmp_path / "its_git") / "info/exclude", "/private.py\n")
    put(home / ".config/git/ignore", "/scratch.py\n")
    for name in ("a.py", "private.py", "scratch.py", "deep/private.py"):
        put(inner / name)
    expected = listed_by_git(inner)
    assert expected == ["a.py", "deep/private.py"]
    assert found(tmp_path / "root") == [f"lib/inner/{name}" for name in expected]


@pytest.mark.skipif(_GIT is None, reason="compares with git itself")
def test_git_agrees_that_a_folder_without_a_head_is_none_of_its_own(root: Path) -> None:
    git(root, "init", "-q")
    put(root / ".gitignore", "b.py\n")
    put(root / "sub/.git/config")
    for name in ("a.py", "b.py"):
        put(root / "sub" / name)
    assert found(root / "sub") == listed_by_git(root / "sub") == ["a.py"]


def test_of_more_work_trees_than_are_followed_the_rest_is_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_rules, "MAX_WORK_TREES", 2)
    for number in range(4):
        put(root / f"work{number}/.git/HEAD")
        put(root / f"work{number}/a.py")
    walk = Repository(root).walk()
    assert len(walk.files) == 2
    assert walk.skipped["ignore rules too large"] == 2
    assert "more than 2 work trees" in walk.problem


def test_what_a_repository_s_own_configuration_names_holds_beside_the_user_s(root: Path, home: Path) -> None:
    put(home / ".config/git/ignore", "scratch.py\n")
    put(root / ".git/config", "[core]\nexcludesFile = ours\n")
    put(root / "ours", "generated.py\n")
    for name in ("a.py", "scratch.py", "generated.py"):
        put(root / name)
    assert found(root) == ["a.py"]


def test_a_home_that_is_closed_to_this_user_says_nothing(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / ".git/HEAD")
    put(root / "a.py")
    put(home / ".config/git/ignore", "a.py\n")
    check = confined._check_plain
    place = (home / ".config/git/ignore").stat()

    def closed(status: os.stat_result) -> None:
        if os.path.samestat(status, place):
            raise PermissionError(errno.EACCES, "closed")
        check(status)

    monkeypatch.setattr(confined, "_check_plain", closed)
    assert found(root) == ["a.py"]


@pytest.mark.parametrize(
    ("config", "is_too_much"),
    [
        ("[include]\npath = config\n", False),
        ("[include]\npath = .\npath = /dev/zero\n", False),
        ("[core]\nexcludesFile = /dev/zero\n", False),
        ("[core]\nexcludesFile = ../pipe\n[include]\npath = ../pipe\n", False),
        ("[core]\nexcludesFile = a\0b\n", False),
        ("[" + " " * (MAX_CONFIG_BYTES - 1), False),
        ("[core" + ' "' * (MAX_CONFIG_BYTES // 2 - 3), False),
        ("[" + " " * MAX_CONFIG_BYTES, True),
        ("\n".join(f"[include]\npath = ../more{number}" for number in range(40)), True),
        ("\n".join(f"[core]\nexcludesFile = rules{number}" for number in range(40)), True),
    ],
    ids=[
        "itself",
        "device",
        "rules of a device",
        "pipe",
        "zero",
        "blanks",
        "quotes",
        "large",
        "many",
        "rules",
    ],
)
def test_a_hostile_configuration_costs_a_bounded_look_and_too_much_of_it_excludes_all(
    root: Path, config: str, *, is_too_much: bool
) -> None:
    put(root / ".git/config", config)
    put(root / "a.py")
    for number in range(40):
        put(root / f"more{number}", "[core]\nexcludesfile = nowhere\n")
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "pipe")
    if is_too_much:
        assert found(root) == []
    else:
        assert found(root) == ["a.py"]
        num_read = len(find_places(root.resolve()).stamps)
        assert num_read <= MAX_CONFIG_FILES + MAX_EXCLUDE_FILES + len(root.parents) + 3


@pytest.mark.parametrize(
    "text", ["", "gitdir:", "gitdir: ../nowhere\n", "gitdir: a\0b", "no word of git", "gitdir: ../.."]
)
def test_a_git_file_that_names_no_git_folder_names_no_rules(root: Path, text: str) -> None:
    put(root / ".git", text)
    put(root / ".gitignore", "b.py\n")
    put(root / "sub/a.py")
    put(root / "sub/b.py")
    assert found(root / "sub") == ["a.py"]


@pytest.mark.parametrize(
    ("path", "is_elsewhere"),
    [
        ("\\\\host\\share\\x", True),
        ("//host/share/x", True),
        ("\\\\home\\work\\x", False),
        ("\\\\Home\\Work\\x", False),
        ("C:\\x", False),
    ],
)
def test_no_file_server_is_greeted_for_a_repository(path: str, *, is_elsewhere: bool) -> None:
    root = PureWindowsPath("\\\\home\\work\\repository")
    assert is_on_another_share(PureWindowsPath(path), root) is is_elsewhere


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ("repository/.gitignore", "b.py\n"),
        ("repository/mid/.ignore", "b.py\n"),
        ("repository/.git/info/exclude", "b.py\n"),
        ("home/.config/git/ignore", "b.py\n"),
        ("home/.gitconfig", "[core]\nexcludesFile = ../rules\n"),
        ("repository/mid/inner/lib/.git/info/exclude", "b.py\n"),
    ],
)
def test_rules_outside_of_a_folder_hold_from_the_next_change_on(
    root: Path, tmp_path: Path, index_folder: Path, rules: str, text: str
) -> None:
    folder = root / "mid" / "inner"
    put(root / ".git/HEAD")
    put(tmp_path / "rules", "b.py\n")
    put(folder / "lib/.git/HEAD")
    for name in ("a.py", "lib/b.py"):
        put(folder / name, "x = 1\n")
    indexer = Indexer(folder, lambda texts: [list(text.encode()) for text in texts], "bytes")
    indexer.build()
    indexer.set_overlay("lib/b.py", "y = 1\n")
    assert indexer.is_shared("lib/b.py")
    put(tmp_path / rules, text)
    indexer.reconcile(["a.py"])
    assert indexer.paths == ["a.py"]
    assert not indexer.index.holds("lib/b.py")
    assert not indexer.is_shared("lib/b.py")
    (tmp_path / rules).unlink()
    indexer.reconcile(["a.py"])
    assert indexer.paths == ["a.py", "lib/b.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_a_link_to_rules_that_leads_elsewhere_leads_to_other_rules(
    root: Path, home: Path, index_folder: Path
) -> None:
    put(root / ".git/HEAD")
    put(root / "a.py", "x = 1\n")
    put(home / "none")
    put(home / "some", "a.py\n")
    link = home / ".config/git/ignore"
    link.parent.mkdir(parents=True)
    link.symlink_to(home / "none")
    indexer = Indexer(root, lambda texts: [list(text.encode()) for text in texts], "bytes")
    indexer.build()
    assert indexer.paths == ["a.py"]
    link.unlink()
    link.symlink_to(home / "some")
    indexer.reconcile(["other.py"])
    assert indexer.paths == []


def test_a_folder_that_becomes_part_of_a_work_tree_obeys_its_rules(root: Path, index_folder: Path) -> None:
    put(root / ".gitignore", "b.py\n")
    put(root / "inner/b.py", "x = 1\n")
    indexer = Indexer(root / "inner", lambda texts: [list(text.encode()) for text in texts], "bytes")
    indexer.build()
    assert indexer.paths == ["b.py"]
    put(root / ".git/HEAD")
    indexer.reconcile(["other.py"])
    assert indexer.paths == []


def test_what_git_writes_beside_its_rules_changes_none(
    root: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / ".git/config")
    put(root / "a.py")
    indexer = Indexer(root, lambda texts: [list(text.encode()) for text in texts], "bytes")
    indexer.build()
    walked: list[str] = []
    walk = Repository.walk

    def noted(repository: Repository, folder: str = "", known: KnownLayers | None = None) -> Walk:
        walked.append(folder)
        return walk(repository, folder, known)

    monkeypatch.setattr(Repository, "walk", noted)
    put(root / ".git/config", '[branch "x"]\nremote = origin\n')
    indexer.reconcile(["a.py"])
    assert walked == []


@pytest.mark.parametrize("rules", [".git/info/exclude", ".gitignore", ".git"])
def test_where_outer_rules_cannot_be_read_nothing_is_let_in(
    root: Path, monkeypatch: pytest.MonkeyPatch, rules: str
) -> None:
    put(root / rules)
    if rules != ".git":
        put(root / ".git/HEAD")
    put(root / "inner/a.py")
    check = confined._check_plain
    place = root.joinpath(rules).stat()

    def fail(status: os.stat_result) -> None:
        if os.path.samestat(status, place):
            raise OSError(errno.EMFILE, "Too many open files")
        check(status)

    monkeypatch.setattr(confined, "_check_plain", fail)
    assert found(root / "inner") == []
    assert not Repository(root / "inner").allows("a.py")
