"""`slipstream complete`: text out, or a plain word about the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_server.commands.local_engine import parse_cursor, split_at
from tests.calls import Call


def test_json_is_text_and_stats(run_cli: Call, repository: Path) -> None:
    answer = run_cli("complete", f"{repository}/shapes.py:6:20", "--json").json()
    assert answer["stats"]["num_prompt_tokens"] > 10
    assert answer["stats"]["finish_reason"] != "deadline"
    assert "".join(piece["text"] for piece in answer["pieces"]) == answer["text"]


def test_text_is_the_same_as_in_json(run_cli: Call, repository: Path) -> None:
    arguments = ("complete", f"{repository}/shapes.py:6:20")
    text = run_cli(*arguments, "--json").json()["text"]
    told = run_cli(*arguments)
    assert told.out == (f"{text}\n" if text else "")
    assert ("Slipstream has no suggestion there." in told.err) == (not text)


def test_the_index_is_drafted_from_but_changes_no_text(run_cli: Call, repository: Path) -> None:
    file = repository / "shapes.py"
    arguments = ("complete", f"{file}:3:25", "--json")
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
        [sys.executable, "-c", LOADED, "complete", f"{file}:6:20", "--json"],
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    answer, loaded = map(json.loads, done.stdout.splitlines())
    assert answer["stats"]["num_prompt_tokens"] > 10
    assert {"torch", "numba", "tokenizers"} <= set(loaded)
    assert not {"transformers", "pygls", "lsprotocol", "huggingface_hub", "triton", "gguf"} & set(loaded)


@pytest.mark.parametrize("place", ["1:1", "7:1", "6:37"])
def test_the_ends_of_file_and_line_are_places_too(run_cli: Call, repository: Path, place: str) -> None:
    done = run_cli("complete", f"{repository}/shapes.py:{place}", "--json")
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
        (b"short", "There is no column 9 in line 1: its end is column 6."),
    ],
)
def test_what_cannot_be_completed_is_named(run_cli: Call, tmp_path: Path, data: bytes, said: str) -> None:
    done = run_cli("complete", f"{write(tmp_path, data)}:1:9")
    assert (done.code, done.out) == (1, "")
    assert said in done.err


@pytest.mark.parametrize("cursor", ["a.py", "a.py:3", "a.py:x:1", ":3:1", "a.py:3:-1", "a.py:3:"])
def test_a_cursor_of_another_form_is_told_with_an_example(run_cli: Call, cursor: str) -> None:
    done = run_cli("complete", cursor)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"slipstream: {cursor} is not FILE:LINE:COLUMN.\n  For example main.py:3:1")


def test_a_name_may_have_colons_and_lines_count_from_1() -> None:
    assert parse_cursor("C:/a:b.py:3:1") == (Path("C:/a:b.py"), 3, 1)
    assert split_at("one\ntwo\n", 2, 2) == ("one\nt", "wo\n")


def test_missing_files_and_folders_are_named(run_cli: Call, tmp_path: Path) -> None:
    assert "There is no file" in run_cli("complete", f"{tmp_path}/no.py:1:1").err
    assert "is not a file" in run_cli("complete", f"{tmp_path}:1:1").err


def test_an_unknown_target_is_named(run_cli: Call, repository: Path) -> None:
    file = repository / "shapes.py"
    done = run_cli("complete", f"{file}:1:1", "--target", "no-such-model")
    assert done.code == 1
    assert "no-such-model" in done.err


def test_bad_settings_are_told_and_passed_over(run_cli: Call, repository: Path) -> None:
    (repository / ".slipstream.toml").write_text('target = "/elsewhere"\nmaxTokens = 4\n')
    done = run_cli("complete", f"{repository}/shapes.py:6:20", "--json")
    assert done.json()["stats"]["num_tokens"] <= 4 + 4 // 2  # a first statement may take half more
    assert "a repository may not set target" in done.err
