"""`slipstream complete`: text out, or a plain word about the file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunCli = Callable[..., Any]


def test_json_is_text_and_stats(run_cli: RunCli, repository: Path) -> None:
    answer = run_cli("complete", repository / "shapes.py", "--line", 5, "--column", 19, "--json").json()
    assert answer["stats"]["num_prompt_tokens"] > 10
    assert answer["stats"]["finish_reason"] != "deadline"
    assert "".join(piece["text"] for piece in answer["pieces"]) == answer["text"]


def test_text_is_the_same_as_in_json(run_cli: RunCli, repository: Path) -> None:
    arguments = ("complete", repository / "shapes.py", "--line", 5, "--column", 19)
    text = run_cli(*arguments, "--json").json()["text"]
    told = run_cli(*arguments)
    assert told.out == (f"{text}\n" if text else "")
    assert ("Slipstream has no suggestion there." in told.err) == (not text)


def test_the_index_is_drafted_from_but_changes_no_text(run_cli: RunCli, repository: Path) -> None:
    file = repository / "shapes.py"
    arguments = ("complete", file, "--line", 2, "--column", 24, "--json")
    before = run_cli(*arguments).json()
    up_to_there = "".join(file.read_text().splitlines(keepends=True)[:3]).rstrip("\n")
    (repository / "same.py").write_text(f"{up_to_there}{before['text']}\n" * 5)
    assert run_cli("index", repository).code == 0
    after = run_cli(*arguments).json()
    assert after["text"] == before["text"] != ""
    num_accepted = [done["stats"]["accepted_by_source"]["ngram"] for done in (before, after)]
    assert num_accepted[1] > num_accepted[0] + 5


LOADED = """
import json, sys
from lsp_server import cli
cli.app(standalone_mode=False)
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


@pytest.mark.usefixtures("run_cli")  # for its settings
def test_one_answer_waits_for_no_library_that_it_does_not_need(repository: Path) -> None:
    file = str(repository / "shapes.py")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "complete", file, "--line", "5", "--column", "19", "--json"],
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    answer, loaded = map(json.loads, done.stdout.splitlines())
    assert answer["stats"]["num_prompt_tokens"] > 10
    assert {"torch", "numba", "tokenizers"} <= set(loaded)
    assert not {"transformers", "pygls", "lsprotocol", "huggingface_hub", "triton", "gguf"} & set(loaded)


@pytest.mark.parametrize("place", [(0, 0), (6, 0), (5, 36)])
def test_the_ends_of_file_and_line_are_places_too(
    run_cli: RunCli, repository: Path, place: tuple[int, int]
) -> None:
    line, column = place
    done = run_cli("complete", repository / "shapes.py", "--line", line, "--column", column, "--json")
    assert done.code == 0


def write(folder: Path, data: bytes) -> Path:
    file = folder / "broken.py"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"x = '\xff'\n", "is not UTF-8: byte 5 is 0xff."),
        (b"\x00\x01", "is a binary file."),
        (b"x" * (5 * 1024 * 1024 + 1), "is too big"),
        (b"short", "There is no column 9 in line 0: it has 5 characters."),
    ],
)
def test_what_cannot_be_completed_is_named(run_cli: RunCli, tmp_path: Path, data: bytes, said: str) -> None:
    done = run_cli("complete", write(tmp_path, data), "--line", 0, "--column", 9)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_missing_files_and_folders_are_named(run_cli: RunCli, tmp_path: Path) -> None:
    assert "There is no file" in run_cli("complete", tmp_path / "no.py", "--line", 0, "--column", 0).err
    assert "is not a file" in run_cli("complete", tmp_path, "--line", 0, "--column", 0).err


def test_an_unknown_target_is_named(run_cli: RunCli, repository: Path) -> None:
    file = repository / "shapes.py"
    done = run_cli("complete", file, "--line", 0, "--column", 0, "--target", "no-such-model")
    assert done.code == 1
    assert "no-such-model" in done.err


def test_bad_settings_are_told_and_passed_over(run_cli: RunCli, repository: Path) -> None:
    (repository / ".slipstream.toml").write_text('target = "/elsewhere"\nmaxTokens = 4\n')
    done = run_cli("complete", repository / "shapes.py", "--line", 5, "--column", 19, "--json")
    assert done.json()["stats"]["num_tokens"] <= 4
    assert "a repository may not set target" in done.err
