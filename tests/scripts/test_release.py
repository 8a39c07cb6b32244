"""A release holds what it must and nothing else, and its bytes follow from its content."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from scripts.archives import RULES, deterministic_tar, problems_of

ROOT = Path(__file__).parents[2]
WHEEL = "slipstream_completion-1.2.0-py3-none-any.whl"
SOURCE = "slipstream_completion-1.2.0.tar.gz"
PLUGIN = "slipstream.nvim-1.2.0.tar.gz"
VSIX = "slipstream-1.2.0.vsix"
TOPS = {
    WHEEL: "", SOURCE: "slipstream_completion-1.2.0/", PLUGIN: "slipstream.nvim/", VSIX: "extension/"
}  # fmt: skip
KINDS = {WHEEL: ".whl", SOURCE: "completion.tar.gz", PLUGIN: "nvim.tar.gz", VSIX: ".vsix"}


def written(folder: Path, name: str, without: str = "", more: str = "") -> Path:
    """A file of that name with all that it needs, but for one, and with something else."""
    names = [
        f"{TOPS[name]}{entry}" for entry in (*RULES[KINDS[name]].needed, more) if entry and entry != without
    ]
    path = folder / name
    if name.endswith(".tar.gz"):
        path.write_bytes(deterministic_tar(dict.fromkeys(names, b"x"), 0))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for entry in names:
                archive.writestr(entry, "x")
    return path


@pytest.mark.parametrize("name", TOPS)
def test_what_is_needed_and_nothing_else_is_a_release(tmp_path: Path, name: str) -> None:
    assert problems_of(written(tmp_path, name)) == []
    for needed in RULES[KINDS[name]].needed:
        (problem,) = problems_of(written(tmp_path, name, without=needed))
        assert problem == f"{name} lacks {needed}."


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        (WHEEL, "tests/test_all.py"),
        (WHEEL, "completion_engine/tests/data.json"),
        (WHEEL, "other/__init__.py"),
        (WHEEL, "../lsp_server/app.py"),
        (SOURCE, "tests/quality/data.gz"),
        (SOURCE, "lsp_server/__pycache__/app.cpython-311.pyc"),
        (SOURCE, "../../outside"),
        (VSIX, "src/client.ts"),
        (VSIX, "out/extension.js.map"),
        (VSIX, "node_modules/semver/index.js"),
        (PLUGIN, "doc/slipstream.txt.orig"),
    ],
)
def test_what_is_not_to_be_in_it_is_named(tmp_path: Path, name: str, entry: str) -> None:
    (problem,) = problems_of(written(tmp_path, name, more=entry))
    assert entry in problem


def test_a_file_that_belongs_to_no_release_is_named(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "notes.txt") == ["notes.txt is nothing that a release consists of."]


def test_an_archive_says_nothing_of_who_made_it_and_when() -> None:
    files = {"b": b"2", "a/c": b"1"}
    data = deterministic_tar(files, 1_700_000_000)
    assert deterministic_tar(dict(reversed(files.items())), 1_700_000_000) == data
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        found = [(e.name, e.mode, e.mtime, e.uid, e.uname) for e in archive.getmembers()]
    assert found == [(name, 0o644, 1_700_000_000, 0, "") for name in ("a/c", "b")]


def test_the_same_sources_give_the_same_wheel_and_source_archive(tmp_path: Path) -> None:
    """A package in small, by this project's own build rules, at two places under two users' habits."""
    sums = []
    for place, umask, zone in (("one", 0o022, "UTC"), ("further/two", 0o077, "Asia/Tokyo")):
        folder = tmp_path / place
        for package in ("ngram_cache", "completion_engine", "lsp_server"):
            (folder / package).mkdir(parents=True)
            for name in ("__init__.py", "py.typed"):
                (folder / package / name).touch(0o666 & ~umask)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            (folder / name).write_bytes((ROOT / name).read_bytes())
        for target in ("wheel", "sdist"):
            subprocess.run(
                [sys.executable, "-P", "-m", "hatchling", "build", "-t", target, "-d", str(folder / "dist")],
                cwd=folder, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "TZ": zone}, umask=umask,
                check=True, capture_output=True,
            )  # fmt: skip
        built = sorted((folder / "dist").iterdir())
        sums.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in built})
    assert len(sums[0]) == 2
    assert sums[0] == sums[1]
