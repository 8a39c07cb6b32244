"""A temporary folder goes at the end of its process, or with the next run, and others' folders stay."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from lsp_server.commands.temporary_folder import LOCK, MIN_AGE_S, PREFIX, temporary_folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_the_folder_goes_at_the_end_of_the_block_and_after_an_error() -> None:
    with pytest.raises(KeyboardInterrupt), temporary_folder() as folder:
        (folder / "file").write_text("x")
        raise KeyboardInterrupt
    assert not folder.exists()


KILLED = """
import time
from lsp_server.commands.temporary_folder import temporary_folder
with temporary_folder() as folder:
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_a_folder_whose_process_was_killed_goes_with_the_next_run(place: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        process.kill()
    assert (folder / "sub").exists()
    age(folder)
    with temporary_folder():
        assert not folder.exists()


def age(folder: Path) -> None:
    old = time.time() - 2 * MIN_AGE_S
    os.utime(folder, (old, old))


def test_a_folder_in_use_or_of_another_kind_stays(place: Path) -> None:
    young, other, link = place / f"{PREFIX}young", place / "other", place / f"{PREFIX}link"
    for folder in (young, other):
        folder.mkdir()
    (other / LOCK).touch()
    link.symlink_to(other)
    with temporary_folder() as used:
        for folder in (used, other):
            age(folder)
        with temporary_folder():
            assert all(folder.exists() for folder in (used, young, other, other / LOCK))
