"""`slipstream index`: built, listed, kept up to date, forgotten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.calls import Call


def test_files_lists_what_is_indexed_and_no_secrets(run_cli: Call, repository: Path) -> None:
    assert run_cli("index", repository).code == 0
    done = run_cli("index", repository, "--files")
    assert (done.code, done.out, done.err) == (0, "shapes.py\nsizes.py\n", "")


def test_a_question_builds_nothing(run_cli: Call, repository: Path) -> None:
    saved = Path(os.environ["SLIPSTREAM_INDEX_DIR"])
    run_cli("index", repository)
    run_cli("index", repository, "--purge")
    done = run_cli("index", repository, "--files")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"slipstream: {repository} has no index.\n")
    assert list(saved.iterdir()) == []


def test_an_index_that_cannot_be_read_is_named_and_kept(run_cli: Call, repository: Path) -> None:
    run_cli("index", repository)
    (file,) = Path(os.environ["SLIPSTREAM_INDEX_DIR"]).iterdir()
    file.write_bytes(b"x" * 100)
    done = run_cli("index", repository, "--files")
    assert (done.code, done.out) == (1, "")
    assert "cannot be read" in done.err
    assert file.read_bytes() == b"x" * 100


def test_the_first_line_comes_before_heavy_imports() -> None:
    """`index` shows what it does before it imports torch, numpy or a tokenizer."""
    code = (
        "import sys\n"
        "from lsp_server.commands import repository_index\n"
        "print({'torch', 'numpy', 'pydantic', 'tokenizers'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_without_files_nothing_is_on_stdout(run_cli: Call, repository: Path) -> None:
    done = run_cli("index", repository)
    assert (done.code, done.out) == (0, "")
    assert "2 files" in done.err


def test_deleted_files_are_forgotten_and_others_not_read_again(run_cli: Call, repository: Path) -> None:
    run_cli("index", repository)
    (repository / "sizes.py").unlink()
    assert "0 read again" in run_cli("index", repository).err
    assert run_cli("index", repository, "--files").out == "shapes.py\n"


def test_purge_forgets_it_all(run_cli: Call, repository: Path) -> None:
    saved = Path(os.environ["SLIPSTREAM_INDEX_DIR"])
    run_cli("index", repository)
    assert any(saved.iterdir())
    assert run_cli("index", repository, "--purge").out == "The index is deleted.\n"
    assert not any(saved.iterdir())
    assert run_cli("index", repository, "--purge").out.startswith("There was no index")


def test_excluded_files_stay_out(run_cli: Call, repository: Path) -> None:
    (repository / ".slipstream.toml").write_text('[index]\nexclude = ["sizes.py"]\n')
    assert run_cli("index", repository).code == 0
    assert "sizes.py" not in run_cli("index", repository, "--files").out


def test_a_folder_that_is_none_is_named(run_cli: Call, repository: Path) -> None:
    assert "There is no folder" in run_cli("index", repository / "absent").err
    assert "is not a folder" in run_cli("index", repository / "sizes.py").err


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_named(run_cli: Call, repository: Path) -> None:
    repository.chmod(0)
    done = run_cli("index", repository)
    repository.chmod(0o755)
    assert done.code == 1
    assert "permission denied" in done.err
