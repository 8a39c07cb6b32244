"""The program as a whole: fast help, exit codes, errors with advice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY_ROOT = Path(__file__).parents[3]
RunCli = Callable[..., Any]


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['slipstream', '--help']\n"
        "from lsp_server.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'numpy', 'pygls', 'pydantic'}\n"
        "print('LOADED', *(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY_ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("LOADED\n")


def test_help_names_the_commands_and_hides_the_demo(run_cli: RunCli) -> None:
    out = run_cli("--help").out
    for command in ("serve", "complete", "replay", "bench", "index", "models", "doctor", "uninstall"):
        assert command in out
    assert "demo" not in out


@pytest.mark.parametrize("command", ["models", "bench", "replay", "index"])
def test_each_command_explains_itself(run_cli: RunCli, command: str) -> None:
    done = run_cli(command, "--help")
    assert done.code == 0
    assert f"slipstream {command}" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("complete",),
        ("complete", "a.py", "--line", "x", "--column", "0"),
        ("replay", "a.py", "--limit-keystrokes", "0"),
        ("index", "--files", "--purge"),
        ("models", "pull"),
    ],
)
def test_wrong_usage_is_exit_code_2(run_cli: RunCli, arguments: tuple[str, ...]) -> None:
    done = run_cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_an_error_is_told_on_stderr_with_advice(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = run_cli("complete", tmp_path / "a.py", "--line", 9, "--column", 0)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "slipstream: There is no line 9: the file has 2 lines.\n  Lines count from 0, so the last one is 1.\n"
    )


def test_a_replay_of_nothing_says_how_to_name_files(run_cli: RunCli) -> None:
    done = run_cli("replay")
    assert (done.code, done.out) == (2, "")
    assert "FILE..." in done.err


def test_the_version_is_told(run_cli: RunCli) -> None:
    assert run_cli("--version").out.startswith("slipstream ")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
def test_a_console_that_does_not_know_a_character_is_written_to_all_the_same(encoding: str) -> None:
    """A table is drawn in what characters there are; a name that has others is shown with `?` in it."""
    code = (
        "import sys\n"
        "from lsp_server import cli\n"
        "from lsp_server.commands.terminal import show_rows\n"
        "cli.app = lambda prog_name: show_rows('\u4e2d µ', ['name'], [['\u4e2d\u2192\u2265']])\n"
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(REPOSITORY_ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"name" in done.stdout
