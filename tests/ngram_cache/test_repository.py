"""The files of a folder that may be indexed, with git's own judgement of ignored ones."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ngram_cache.confined import ConfinedFolder
from ngram_cache.repository import (
    FoundFile,
    Repository,
    RepositoryOptions,
    SkippedFileError,
    StoppedError,
    WalkLimits,
)

Write = Callable[[dict[str, str]], None]
_GIT = shutil.which("git")


def found(root: Path, options: RepositoryOptions | None = None) -> list[str]:
    return sorted(file.path for file in Repository(root, options or RepositoryOptions()).walk().files)


def reasons(root: Path, options: RepositoryOptions | None = None) -> dict[str, int]:
    return dict(Repository(root, options or RepositoryOptions()).walk().skipped)


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ({}, ["a.py", "lib/b.py", "lib/deep/c.py", "out/d.py"]),
        ({".gitignore": "out/\n"}, ["a.py", "lib/b.py", "lib/deep/c.py"]),
        ({".gitignore": "*.py\n!b.py\n"}, ["lib/b.py"]),
        ({".gitignore": "/lib/*\n!/lib/deep/\n"}, ["a.py", "lib/deep/c.py", "out/d.py"]),
        ({".gitignore": "lib/\n!lib/b.py\n"}, ["a.py", "out/d.py"]),
        ({".gitignore": "*.py\n", "lib/.gitignore": "!*.py\n"}, ["lib/b.py", "lib/deep/c.py"]),
        ({"lib/.gitignore": "/b.py\n"}, ["a.py", "lib/deep/c.py", "out/d.py"]),
        ({"lib/.gitignore": "/a.py\nd.py\n"}, ["a.py", "lib/b.py", "lib/deep/c.py", "out/d.py"]),
        ({".ignore": "out\n"}, ["a.py", "lib/b.py", "lib/deep/c.py"]),
        ({".gitignore": "out\n", ".ignore": "!out\n"}, ["a.py", "lib/b.py", "lib/deep/c.py", "out/d.py"]),
        ({".git/info/exclude": "a.py\n"}, ["lib/b.py", "lib/deep/c.py", "out/d.py"]),
        ({".gitignore": "\ufeff# comment\n\n  \nout/ \n"}, ["a.py", "lib/b.py", "lib/deep/c.py"]),
        ({".gitignore": "**/deep\n"}, ["a.py", "lib/b.py", "out/d.py"]),
        ({".gitignore": "!\n[a\n[[:x:]]\nout\n"}, ["a.py", "lib/b.py", "lib/deep/c.py"]),
    ],
)
def test_ignore_rules(root: Path, write: Write, rules: dict[str, str], left: list[str]) -> None:
    write(dict.fromkeys(("a.py", "lib/b.py", "lib/deep/c.py", "out/d.py"), "x = 1\n"))
    write(rules)
    assert found(root) == left


@pytest.mark.parametrize("is_same", [False, True])
def test_rules_hold_for_other_letters_where_the_file_system_says_they_are_the_same(
    root: Path, write: Write, *, is_same: bool
) -> None:
    """Hard links play a file system that finds a file under its name in other letters too."""
    write({".gitignore": "Private.py\n", "private.PY": "x = 1\n"})
    for name in (".gitignore", "private.PY") if is_same else ():
        os.link(root / name, root / name.swapcase())
    assert found(root) == ([] if is_same else ["private.PY"])


_names = st.sampled_from(["a", "b", "c.py", "d.py"])
_pieces = st.sampled_from(["a", "b", "*", "c.py", "*.py", "?", "[ab]", "**"])
_patterns = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "!"]),
        st.sampled_from(["", "/", "**/"]),
        st.lists(_pieces, min_size=1, max_size=3).map("/".join),
        st.sampled_from(["", "/", "/*"]),
    ),
).filter(lambda pattern: not pattern.endswith("**/"))  # folders alone to git, all to the library


@pytest.mark.skipif(_GIT is None, reason="compares with git itself")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    outer=st.lists(_patterns, max_size=4),
    inner=st.lists(_patterns, max_size=3),
    innermost=st.lists(_patterns, max_size=2),
)
def test_git_agrees_on_what_is_ignored(
    tmp_path: Path, outer: list[str], inner: list[str], innermost: list[str]
) -> None:
    root = tmp_path / "git"
    if not root.exists():
        for folder in ("", "a", "b", "a/b", "a/a", "b/a"):
            for name in ("c.py", "d.py"):
                (root / folder).mkdir(parents=True, exist_ok=True)
                (root / folder / name).write_text("x")
        subprocess.run([str(_GIT), "init", "-q", str(root)], check=True)
    for folder, patterns in (("", outer), ("a", inner), ("a/b", innermost)):
        (root / folder / ".gitignore").write_text("\n".join(patterns) + "\n")
    listed = subprocess.run(
        [str(_GIT), "-C", str(root), "ls-files", "--others", "--exclude-standard", "*.py"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert found(root) == sorted(listed.stdout.split())


def test_a_folder_inside_of_a_work_tree_obeys_the_rules_above_it(root: Path, write: Write) -> None:
    write(
        {
            ".git/HEAD": "",
            ".gitignore": "gen/\n/sub/b.py\n",
            "sub/a.py": "",
            "sub/b.py": "",
            "sub/gen/c.py": "",
        }
    )
    assert found(root / "sub") == ["a.py"]


def test_an_ignored_folder_that_is_opened_itself_is_not_empty(root: Path, write: Write) -> None:
    write({".git/HEAD": "", ".gitignore": "build/\n", "build/a.py": "", "build/sub/b.py": ""})
    assert found(root / "build") == ["a.py", "sub/b.py"]
    assert found(root / "build/sub") == ["b.py"]


def test_the_settings_have_the_last_word(root: Path, write: Write) -> None:
    write({".gitignore": "!keep.py\n", "keep.py": "", "lib/a.py": "", "lib/b.py": ""})
    assert found(root, RepositoryOptions(exclude=("keep.py", "lib/a*"))) == ["lib/b.py"]


def test_what_is_left_out_is_counted_by_reason(root: Path, write: Write) -> None:
    write({
        "a.py": "", "image.png": "", "node_modules/x/index.js": "", ".env": "", "uv.lock": "",
        "big.py": "x\n" * 2000, "skip/me.py": "", ".gitignore": "skip\n",
        "bin/tool": "#!/bin/sh\n", "bin/data": "hello",
    })  # fmt: skip
    assert found(root, RepositoryOptions(max_file_bytes=1000)) == ["a.py", "bin/tool"]
    assert reasons(root, RepositoryOptions(max_file_bytes=1000)) == {
        "no source file": 3,
        "tool folder": 1,
        "secret": 1,
        "generated": 1,
        "too large": 1,
        "ignored": 1,
    }


def test_of_too_many_files_the_newest_are_kept(root: Path, write: Write) -> None:
    for age, name in enumerate(["new.py", "mid.py", "old.py"]):
        write({name: ""})
        os.utime(root / name, (1000 - age, 1000 - age))
    repository = Repository(root, RepositoryOptions(max_files=2))
    walk = repository.walk()
    assert [file.path for file in walk.files] == ["mid.py", "new.py"]
    assert walk.skipped == {"too many files": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_links_are_never_followed(root: Path, write: Write, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("secret")
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer/x.py").write_text("")
    write({"a.py": "", "lib/b.py": ""})
    (root / "lib/loop").symlink_to(root, target_is_directory=True)
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    (root / "outer").symlink_to(tmp_path / "outer", target_is_directory=True)
    assert found(root) == ["a.py", "lib/b.py"]
    assert reasons(root) == {"symbolic link": 3}
    repository = Repository(root)
    for path in ("link.py", "outer/x.py", "lib/loop/a.py"):
        with pytest.raises(SkippedFileError):
            repository.find(path)
    with pytest.raises(SkippedFileError, match="not a regular file"):
        repository.read(FoundFile("link.py", 1, 1))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_do_not_hang_the_walk(root: Path) -> None:
    os.mkfifo(root / "pipe.py")
    assert reasons(root) == {"not a regular file": 1}
    with pytest.raises(SkippedFileError, match="not a regular file"):
        Repository(root).read(FoundFile("pipe.py", 1, 1))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_folder_is_counted_and_passed(root: Path, write: Write) -> None:
    write({"a.py": "", "closed/b.py": ""})
    (root / "closed").chmod(0)
    try:
        assert found(root) == ["a.py"]
        assert reasons(root)["unreadable"] == 1
    finally:
        (root / "closed").chmod(0o700)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_where_rules_cannot_be_read_nothing_is_let_in(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    read = ConfinedFolder.read

    def fail(folder: ConfinedFolder, path: str, max_bytes: int) -> bytes:
        if path == "lib/.gitignore":
            raise OSError(code, os.strerror(code))
        return read(folder, path, max_bytes)

    write({"lib/.gitignore": "*.py\n", "lib/deep/b.py": "", "a.py": ""})
    monkeypatch.setattr(ConfinedFolder, "read", fail)
    repository = Repository(root)
    assert found(root) == ["a.py"]
    assert reasons(root) == {"unreadable": 1}
    assert [path for path in ("a.py", "lib/b.py", "lib/deep/b.py") if repository.allows(path)] == ["a.py"]


@pytest.mark.parametrize("name", [".gitignore", ".ignore"])
@pytest.mark.parametrize("make", [lambda path: path.symlink_to("rules"), Path.mkdir], ids=["link", "folder"])
def test_where_rules_are_no_plain_file_nothing_is_let_in(
    root: Path, write: Write, name: str, make: Callable[[Path], None]
) -> None:
    write({"lib/rules": "*.py\n", "lib/deep/b.py": "", "a.py": ""})
    make(root / "lib" / name)
    assert found(root) == ["a.py"]
    assert reasons(root) == {"unreadable": 1}
    assert not Repository(root).allows("lib/deep/b.py")


def test_a_missing_root_is_an_empty_one(tmp_path: Path) -> None:
    assert found(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = 1\0", "binary"),
        (b"caf\xe9 = 1\n", "not UTF-8"),
        (b"-----BEGIN RSA PRIVATE KEY-----\n", "private key"),
        (b"x" * 6000, "generated"),
        (b"y = 2;" * 900 + b"\n", "generated"),
    ],
)
def test_files_that_are_not_worth_reading(root: Path, content: bytes, reason: str) -> None:
    (root / "a.py").write_bytes(content)
    repository = Repository(root)
    (file,) = repository.walk().files
    with pytest.raises(SkippedFileError, match=reason):
        repository.read(file)


def test_line_ends_and_marks_are_made_alike(root: Path) -> None:
    (root / "a.py").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    repository = Repository(root)
    assert repository.read(repository.find("a.py")) == "a\nb\nc\n"


def test_a_file_that_grew_since_the_walk_is_refused(root: Path) -> None:
    (root / "a.py").write_text("x\n")
    repository = Repository(root, RepositoryOptions(max_file_bytes=10))
    (file,) = repository.walk().files
    (root / "a.py").write_text("x\n" * 100)
    with pytest.raises(SkippedFileError, match="too large"):
        repository.read(file)


def test_one_place_is_looked_at_by_the_same_rules(root: Path, write: Write) -> None:
    write(
        {".gitignore": "gen/\n", "lib/a.py": "", "lib/b.py": "", "lib/gen/c.py": "", "node_modules/d.py": ""}
    )
    repository = Repository(root)
    assert sorted(file.path for file in repository.look("lib").files) == ["lib/a.py", "lib/b.py"]
    assert [file.path for file in repository.look("lib/a.py").files] == ["lib/a.py"]
    for path in ("lib/gen", "lib/gen/c.py", "node_modules/d.py", "missing.py"):
        assert repository.look(path).files == []


def limited(**limits: float) -> RepositoryOptions:
    return RepositoryOptions(limits=WalkLimits(**limits))  # type: ignore[arg-type]  # limits by name


@pytest.mark.parametrize(
    ("options", "max_found", "reason"),
    [
        (limited(max_entries=20), 20, "too many entries"),
        (limited(max_folder_entries=5), 15, "too many entries"),
        (limited(max_folders=2), 20, "too many entries"),
        (limited(max_depth=2), 20, "too deep"),
        (limited(max_path_chars=8), 20, "too deep"),
        (limited(max_text_bytes=70), 7, "too much text"),
        (limited(max_walk_s=-1.0), 0, "too many entries"),
    ],
    ids=["entries", "of a folder", "folders", "depth", "path", "text", "time"],
)
def test_a_walk_ends_at_every_limit_and_says_so(
    root: Path, write: Write, options: RepositoryOptions, max_found: int, reason: str
) -> None:
    write({f"{folder}f{number}.py": "0123456789" for folder in ("", "a/", "a/b/") for number in range(10)})
    walk = Repository(root, options).walk()
    assert len(walk.files) <= max_found
    assert walk.skipped[reason] > 0


def test_a_deep_tree_is_walked_down_to_the_limit_and_no_further(root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    for _ in range(500):  # longer than any path that the system opens at once
        os.mkdir("d" * 100, dir_fd=folder)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
        os.close(os.open("x.py", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    walk = Repository(root).walk()
    assert len(walk.files) == 10  # 101 characters a step, 1,024 in all
    assert walk.skipped == {"too deep": 1}


@pytest.mark.parametrize("num_steps", [0, 1, 50])
def test_a_walk_ends_when_its_caller_wants_it_to(root: Path, write: Write, num_steps: int) -> None:
    write({f"d{number % 7}/f{number}.py": "" for number in range(100)})
    asked: list[None] = []

    def should_stop() -> bool:
        asked.append(None)
        return len(asked) > num_steps

    with pytest.raises(StoppedError):
        Repository(root, should_stop=should_stop).walk()
    assert len(asked) == num_steps + 1


@pytest.mark.parametrize(
    "rules",
    ["a\n" * 200_000, "a" * 5000, "*.py\n" * 12_000],
    ids=["size", "line", "number"],
)
def test_a_folder_whose_rules_are_too_large_is_left_out_and_named(
    root: Path, write: Write, rules: str
) -> None:
    write({"a.py": "", "lib/b.py": "", "lib/.gitignore": rules, "lib/deep/c.py": ""})
    walk = Repository(root).walk()
    assert [file.path for file in walk.files] == ["a.py"]
    assert walk.skipped == {"ignore rules too large": 1}
    assert str(root / "lib/.gitignore") in walk.problem


def test_rules_in_every_folder_add_up(root: Path, write: Write) -> None:
    folders = ["a/" * depth for depth in range(1, 6)]
    write({f"{folder}.gitignore": "#\n" * 60_000 for folder in folders})
    write({f"{folder}x.py": "" for folder in folders})
    walk = Repository(root).walk()
    assert len(walk.files) == 4
    assert "512 kB" in walk.problem


def test_patterns_that_would_hold_a_backtracking_matcher_do_not(root: Path, write: Write) -> None:
    write({".gitignore": "*a" * 12 + "*b\n", "a" * 120: "", "a" * 120 + ".py": ""})
    assert found(root, RepositoryOptions(exclude=("*a" * 12 + "*b",))) == ["a" * 120 + ".py"]


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs opening without following")
def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write({"lib/deep/a.py": "inside = 1\n"})
    (tmp_path / "outside/deep").mkdir(parents=True)
    (tmp_path / "outside/deep/a.py").write_text("outside = 1\n")
    repository = Repository(root)
    (file,) = repository.walk().files
    (root / "lib").rename(root / "was")
    (root / "lib").symlink_to(tmp_path / "outside", target_is_directory=True)
    with pytest.raises(SkippedFileError):
        repository.read(file)
    for path in ("lib", "lib/deep", "lib/deep/a.py"):
        assert repository.look(path).files == []
        assert not repository.allows(path)


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_where_paths_are_opened_whole_a_link_on_the_way_is_noticed(
    root: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ngram_cache.confined._STEPS_DOWN", False)
    test_links_are_never_followed(root, write, tmp_path)
    (root / "other").mkdir()
    test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(
        root / "other", write_below(root / "other"), root
    )


def write_below(root: Path) -> Write:
    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)

    return write


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_a_link_is_not_let_in_as_an_open_buffer_either(root: Path, write: Write, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    write({"a.py": ""})
    (root / "link.py").symlink_to(root / "a.py")
    (root / "lib").symlink_to(tmp_path / "outside", target_is_directory=True)
    repository = Repository(root)
    assert [path for path in ("a.py", "new/b.py", "link.py", "lib/c.py") if repository.allows(path)] == [
        "a.py",
        "new/b.py",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
@pytest.mark.parametrize("folder", ["repository", "link"])
@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("a.py", True),
        ("linked/b.py", False),
        ("excluded/c.py", False),
        ("loop/d.py", False),
        ("../outside/e.py", False),
        ("../outside/back/a.py", True),
    ],
)
def test_a_folder_that_is_called_by_a_link_obeys_the_same_rules(
    root: Path, tmp_path: Path, folder: str, path: str, *, is_allowed: bool
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/back").symlink_to(root)
    (tmp_path / "link").symlink_to(root)
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "excluded").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to("loop")
    repository = Repository(tmp_path / folder, RepositoryOptions(exclude=("excluded/",)))
    assert repository.allows(repository.document_path(tmp_path / folder / path)) is is_allowed


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_a_root_that_is_a_link_to_itself_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert found(tmp_path / "loop") == []
    assert found(tmp_path / "loop/inner") == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of any bytes")
def test_names_and_times_of_any_kind_are_passed(root: Path, write: Write) -> None:
    (root / os.fsdecode(b"\xff.py")).write_text("")
    (root / "a\nb.py").write_text("")
    write({"late.py": ""})
    os.utime(root / "late.py", ns=(1 << 64, (1 << 64) - 1))
    files = Repository(root).walk().files
    assert sorted(file.path for file in files) == ["a\nb.py", "late.py"]
    assert all(abs(file.mtime_ns) < 1 << 63 for file in files)


def test_a_root_that_holds_nothing_but_secrets_is_not_indexed(tmp_path: Path) -> None:
    root = tmp_path / ".ssh"
    root.mkdir()
    (root / "notes.py").write_text("x = 1\n")
    walk = Repository(root).walk()
    assert not walk.files
    assert walk.skipped["secret"] == 1


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (("sub/private/",), ["open.py"]),
        (("private/",), ["open.py"]),
        (("/private/",), ["open.py", "private/x.py"]),
        (("sub/",), []),
        (("elsewhere/", "*.js"), ["open.py", "private/x.py"]),
    ],
)
def test_patterns_of_a_folder_around_hold_as_they_do_there(
    tmp_path: Path, patterns: tuple[str, ...], left: list[str]
) -> None:
    outer = tmp_path.resolve()
    for name in ("open.py", "private/x.py"):
        (outer / "sub" / name).parent.mkdir(parents=True, exist_ok=True)
        (outer / "sub" / name).write_text("x = 1\n")
    repository = Repository(outer / "sub", RepositoryOptions(exclude_around=((outer, patterns),)))
    assert sorted(file.path for file in repository.walk().files) == left
    assert [name for name in ("open.py", "private/x.py") if repository.allows(name)] == left
