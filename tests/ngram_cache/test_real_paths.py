"""One file has one real path: links, bind mounts, and names in other letters."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from ngram_cache.file_names import MAX_PATH_CHARS, other_paths, own_name, parse_mounts, read_mounts, real_path
from ngram_cache.git_places import work_tree

TABLE = rb"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 8:1 /home/me/project /mnt/bound rw - ext4 /dev/root rw
31 22 8:1 /home/me/project/private /mnt/my\040part rw - ext4 /dev/root rw
32 22 8:2 / /data rw - ext4 /dev/other rw
33 22 8:2 /in/project /mnt/bound/inner rw - ext4 /dev/other rw
broken row
34 22 8:9 relative nowhere rw
35 22 0:5 / /proc rw - proc proc rw
"""


@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("/home/me/project/x.py", []),
        ("/mnt/bound", ["/home/me/project"]),
        ("/mnt/bound/private/x.py", ["/home/me/project/private/x.py"]),
        ("/mnt/my part/x.py", ["/home/me/project/private/x.py", "/mnt/bound/private/x.py"]),
        ("/mnt/bound/inner/x.py", ["/data/in/project/x.py"]),
        ("/mnt/boundary/x.py", []),
        ("/data/x.py", []),
        ("relative/x.py", []),
    ],
)
def test_bind_mounts_are_undone(path: str, others: list[str]) -> None:
    assert [str(other) for other in other_paths(Path(path), list(parse_mounts(TABLE)))] == others


def test_damaged_rows_of_mounts_are_left_out() -> None:
    assert len(list(parse_mounts(TABLE))) == 6
    assert list(parse_mounts(b"\0\xff \\777 \n\n 1 2 3 4 5 6")) == []


def test_this_machine_s_mounts_show_a_path_as_it_is(tmp_path: Path) -> None:
    assert all(mount.point.is_absolute() for mount in read_mounts())
    assert real_path(tmp_path / "new.py").parent.samefile(tmp_path)


@pytest.mark.parametrize(
    ("name", "listed", "own"),
    [
        ("LOANS.PY", ["loans.py"], "loans.py"),
        ("loans.py", ["loans.py"], "loans.py"),
        ("LOANS.PY", ["loans.py", "LOANS.PY"], "LOANS.PY"),
        ("Loans.py", ["other.py", "loans.py"], "loans.py"),
        ("cafe\u0301", ["caf\u00e9"], "caf\u00e9"),
        ("loans.py", [], "loans.py"),
    ],
)
def test_a_name_has_the_letters_that_its_folder_lists(name: str, listed: list[str], own: str) -> None:
    """`listed` are the names of the same file."""
    assert own_name(name, listed) == own


def test_links_are_followed_and_one_to_itself_is_a_path(tmp_path: Path) -> None:
    root = real_path(tmp_path)
    (root / "real").mkdir()
    (root / "real/x.py").write_text("")
    (root / "link").symlink_to(root / "real")
    (root / "file.py").symlink_to(root / "link/x.py")
    (root / "itself").symlink_to(root / "itself")
    assert real_path(root / "file.py") == root / "real/x.py"
    assert real_path(root / "link/deep/new.py") == root / "real/deep/new.py"
    assert real_path(root / "itself") == root / "itself"


def test_a_path_that_no_system_opens_is_refused() -> None:
    with pytest.raises(OSError, match="characters"):
        real_path(Path("/" + "d/" * MAX_PATH_CHARS))


def test_the_work_tree_around_a_folder(tmp_path: Path) -> None:
    root = real_path(tmp_path)
    (root / "tree/inner/deep").mkdir(parents=True)
    (root / "tree/.git").mkdir()
    (root / "tree/.git/HEAD").write_text("ref: refs/heads/main\n")
    assert work_tree(root / "tree/inner/deep") == root / "tree"
    assert PurePosixPath("/") not in (work_tree(root / "tree"), work_tree(root / "tree/inner"))
