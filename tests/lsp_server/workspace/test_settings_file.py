"""A settings file costs what its size allows, whoever wrote it; what is wrong with it is one sentence."""

from __future__ import annotations

import os
import sys
import tomllib
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.workspace.settings_file import (
    MAX_FILE_BYTES,
    REPOSITORY_FILE,
    check_shape,
    read_repository_file,
    read_user_file,
)

Read = Callable[[Path], tuple[dict[str, Any], tuple[str, ...]]]


def read_users(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    return read_user_file(folder / REPOSITORY_FILE)


either = pytest.mark.parametrize("read", [read_repository_file, read_users])


@either
def test_what_a_file_says_is_read(tmp_path: Path, read: Read) -> None:
    (tmp_path / REPOSITORY_FILE).write_text(
        'maxTokens = 3\n[index]\nexclude = ["a.b.c.d.e.f.g.h.i.j", "[a]*"]\n'
    )
    assert read(tmp_path) == ({"maxTokens": 3, "index": {"exclude": ["a.b.c.d.e.f.g.h.i.j", "[a]*"]}}, ())


HOSTILE = {
    "syntax": b"maxTokens = ",
    "bytes": b"\xff\xfe",
    "size": b"#" * (MAX_FILE_BYTES + 1),
    "dotted key": b".".join([b"a"] * 15_000) + b" = 1",
    "spaced dotted key": b" . ".join([b"a"] * 15_000) + b" = 1",
    "quoted dotted key": b'."a"'.join([b"a"] * 5_000) + b" = 1",
    "dotted header": b"[" + b".".join([b"a"] * 15_000) + b"]",
    "dotted inner key": b"a = {" + b".".join([b"a"] * 15_000) + b" = 1}",
    "lists": b"a = " + b"[" * 30_000 + b"]" * 30_000,
    "lists on lines": b"a = " + b"[\n" * 15_000 + b"]\n" * 15_000,
    "tables": b"a = " + b"{b = " * 10_000 + b"1" + b"}" * 10_000,
    "behind a comment": b"#" + b"\n" + b"a = " + b"[" * 30_000,
    "behind strings": b'a = "\\"#\'"\nb = ' + b"[" * 30_000,
    "many keys": b"".join(b"k%d=1\n" % number for number in range(6_000)),
    "many headers": b"[[a]]\n" * 9_000,
    "no end": b'a = """' + b'\\"""' * 10_000,
    "digits": b"a = " + b"9" * 60_000,
}


@either
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_is_too_much_is_ignored_in_little_memory_and_named_once(
    tmp_path: Path, read: Read, content: bytes
) -> None:
    path = tmp_path / REPOSITORY_FILE
    path.write_bytes(content)
    tracemalloc.start()
    try:
        values, problems = read(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert values == {}
    assert len(problems) == 1
    assert str(path) in problems[0]
    assert len(problems[0]) < 300 + len(str(path))
    assert peak < 16 << 20


_pieces = st.sampled_from(
    [
        '"',
        "'",
        '"""',
        "'''",
        "\\",
        "#",
        "\n",
        "[",
        "]",
        "{",
        "}",
        "=",
        ".",
        ",",
        "a",
        " ",
        "1",
        "a=1\n",
        'a="x"',
    ]
)


@settings(max_examples=300)
@given(st.lists(_pieces, max_size=40).map("".join))
def test_what_the_parser_takes_is_as_shallow_as_the_check_says(text: str) -> None:
    """Brackets and dots that the check does not see are inside of strings and comments for the parser too."""
    try:
        values = tomllib.loads(text)
    except ValueError:
        return
    check_shape(text)
    with pytest.raises(ValueError, match="deep"):
        check_shape(f"{text}\na{id(values)} = {'[' * 30}{']' * 30}")


@either
def test_what_is_no_file_is_no_problem_and_never_waited_for(tmp_path: Path, read: Read) -> None:
    for name in ("none", "pipe", "folder"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / REPOSITORY_FILE)
    (tmp_path / "folder" / REPOSITORY_FILE).mkdir()
    for name in ("none", "pipe", "folder", "missing"):
        assert read(tmp_path / name) == ({}, ())


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_the_file_of_a_repository_is_no_link_and_that_of_a_user_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text("maxTokens = 3\n")
    (tmp_path / REPOSITORY_FILE).symlink_to(tmp_path / "elsewhere.toml")
    values, problems = read_repository_file(tmp_path)
    assert values == {}
    assert "symbolic link" in problems[0]
    assert read_users(tmp_path) == ({"maxTokens": 3}, ())
