"""The name of a path in a folder, however long the two are."""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath, PureWindowsPath

import pytest

from ngram_cache.file_names import name_in

POSIX = ["/", "/a", "/a/b", "/ab", "a", "a/b", "", "//host/share", "/é/b.py"]
WINDOWS = ["C:/", "c:/A", "C:/a/b", "D:/a", "//host/share/a", "a"]


@pytest.mark.parametrize("folder", [*map(PurePosixPath, POSIX), *map(PureWindowsPath, WINDOWS)])
@pytest.mark.parametrize("path", [*map(PurePosixPath, POSIX), *map(PureWindowsPath, WINDOWS)])
def test_it_is_as_the_library_says(folder: PurePath, path: PurePath) -> None:
    if type(folder) is type(path):
        wanted = path.relative_to(folder) if path.is_relative_to(folder) else None
        assert name_in(folder, path) == wanted


def test_a_path_of_very_many_parts_is_a_path_too() -> None:
    path = PurePosixPath("/a" * 200_000)
    assert name_in(PurePosixPath("/a"), path) == PurePosixPath("a" + "/a" * 199_998)
    assert name_in(PurePosixPath("/b"), path) is None
