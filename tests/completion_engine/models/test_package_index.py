"""What pip says becomes a message that says whose fault it is and what to do."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec

import pytest

from completion_engine.errors import MachineError
from completion_engine.models import package_index
from completion_engine.models.job import ProgramOutcome
from completion_engine.models.package_index import explain

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
            "was not found in the package index",
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
