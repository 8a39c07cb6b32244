"""A settings file costs what its size allows, and its problems are one sentence."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from lsp_server.workspace.settings import Settings
from lsp_server.workspace.settings_layers import narrow
from lsp_server.workspace.settings_reading import (
    MAX_FILE_BYTES,
    REPOSITORY_FILE,
    UNREADABLE,
    FoundSettings,
    read_repository_file,
    read_user_file,
)

Read = Callable[[Path], FoundSettings]


def read_users(folder: Path) -> FoundSettings:
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
    "dotted key": b".".join([b"a"] * 4_000) + b" = 1",
    "spaced dotted key": b" . ".join([b"a"] * 2_000) + b" = 1",
    "quoted dotted key": b'."a"'.join([b"a"] * 1_500) + b" = 1",
    "dotted header": b"[" + b".".join([b"a"] * 4_000) + b"]",
    "dotted inner key": b"a = {" + b".".join([b"a"] * 4_000) + b" = 1}",
    "lists": b"a = " + b"[" * 4_000 + b"]" * 4_000,
    "lists on lines": b"a = " + b"[\n" * 2_000 + b"]\n" * 2_000,
    "tables": b"a = " + b"{b = " * 1_000 + b"1" + b"}" * 1_000,
    "after a comment": b"#" + b"\n" + b"a = " + b"[" * 8_000,
    "after strings": b'a = "\\"#\'"\nb = ' + b"[" * 8_000,
    "no end": b'a = """' + b'\\"""' * 2_000,
    "digits": b"a = " + b"9" * 8_000,
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
    assert values is UNREADABLE
    assert len(problems) == 1
    assert str(path) in problems[0]
    assert len(problems[0]) < 300 + len(str(path))
    assert peak < 80 << 20


@either
@pytest.mark.parametrize(
    "content",
    [
        "".join(f"k{number}=1\n" for number in range(800)),
        "[[a]]\n" * 1_000,
        f"a = {'[' * 200}{']' * 200}",
        ("a." * 199 + "b = 1\n"),
    ],
    ids=["keys", "headers", "nested lists", "dotted key"],
)
def test_a_file_that_the_parser_takes_and_no_setting_needs_is_named_in_a_few_sentences(
    tmp_path: Path, read: Read, content: str
) -> None:
    (tmp_path / REPOSITORY_FILE).write_text(content)
    values, problems = read(tmp_path)
    merged = narrow(Settings(), values, "the file")
    assert merged.is_whole == (merged.settings == Settings())
    assert problems == ()
    assert 1 <= len(merged.problems) <= 5
    assert all(len(problem) < 300 for problem in merged.problems)


@either
def test_a_missing_file_is_no_problem_and_a_special_one_is_never_waited_for(
    tmp_path: Path, read: Read
) -> None:
    for name in ("none", "pipe", "folder", "nowhere"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / REPOSITORY_FILE)
    (tmp_path / "folder" / REPOSITORY_FILE).mkdir()
    (tmp_path / "nowhere" / REPOSITORY_FILE).symlink_to("missing")
    for name in ("none", "missing"):
        assert read(tmp_path / name) == ({}, ())
    for name in ("pipe", "folder", "nowhere"):
        values, problems = read(tmp_path / name)
        assert values is UNREADABLE
        assert len(problems) == 1


@either
def test_a_byte_order_mark_is_no_part_of_a_setting(tmp_path: Path, read: Read) -> None:
    (tmp_path / REPOSITORY_FILE).write_bytes(b"\xef\xbb\xbfmaxTokens = 3\n")
    assert read(tmp_path) == ({"maxTokens": 3}, ())


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_the_file_of_a_repository_is_no_link_and_that_of_a_user_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text("maxTokens = 3\n")
    (tmp_path / REPOSITORY_FILE).symlink_to(tmp_path / "elsewhere.toml")
    values, problems = read_repository_file(tmp_path)
    assert values is UNREADABLE
    assert "symbolic link" in problems[0]
    assert read_users(tmp_path) == ({"maxTokens": 3}, ())
