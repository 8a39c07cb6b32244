"""The program as a whole: fast help, exit codes, errors with advice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_server import cli
from tests.calls import Call

REPOSITORY_ROOT = Path(__file__).parents[3]


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


def test_help_names_the_commands(run_cli: Call) -> None:
    out = run_cli("--help").out
    for command in ("serve", "complete", "replay", "bench", "index", "models", "doctor", "uninstall"):
        assert command in out


COMMANDS = ["", "complete", "replay", "bench", "index", "models", "doctor", "uninstall"]


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(run_cli: Call, command: str, option: str) -> None:
    done = run_cli(*command.split(), option)
    assert done.code == 0
    assert done.out.startswith(f"Usage: slipstream {command}".rstrip())
    assert "<bool>" not in done.out


IMPORTED = """
import sys
from lsp_server import cli
try: cli.main()
except SystemExit as end: code = end.code
print("ENDED", code, *({"torch", "transformers", "tokenizers"} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("bench", "exactness", "--sources", "absent"), 1),
        (("bench", "exactness", "--sources", "."), 1),
        (("bench", "exactness", "--prompts", "0"), 2),
        (("replay",), 2),
        (("replay", "absent.py"), 1),
        (("index", "absent"), 1),
        (("index", "--files"), 1),
    ],
)
def test_arguments_are_checked_before_a_model_is_thought_of(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT), "SLIPSTREAM_INDEX_DIR": str(tmp_path / "i")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"ENDED {code}\n", done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "completed"),
    [("slipstream do", "doctor"), ("slipstream index --", "--files"), ("slipstream bench e", "exactness")],
)
def test_a_shell_completes_commands_and_their_options(words: str, completed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from lsp_server.cli import main; main()"],
        env={
            **os.environ,
            "_SLIPSTREAM_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "PYTHONPATH": str(REPOSITORY_ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed in done.stdout.split()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
def test_a_server_in_a_terminal_says_what_it_waits_for() -> None:
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from lsp_server.cli import main; main()", "serve"],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT)},
    ) as server:  # fmt: skip
        assert server.stderr is not None
        assert b"waits for an editor's messages" in server.stderr.readline()
        server.kill()
    for end in (ours, theirs):
        os.close(end)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("complete",),
        ("complete", "a.py:1:1", "--line", "0"),
        ("replay", "a.py", "--limit-keystrokes", "0"),
        ("index", "--files", "--purge"),
        ("models", "pull"),
    ],
)
def test_wrong_usage_is_exit_code_2(run_cli: Call, arguments: tuple[str, ...]) -> None:
    done = run_cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_an_error_is_told_on_stderr_with_advice(run_cli: Call, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = run_cli("complete", f"{tmp_path}/a.py:9:1")
    assert (done.code, done.out) == (1, "")
    assert done.err == "slipstream: There is no line 9: the file has 2 lines.\n  Lines count from 1.\n"


def test_a_replay_of_nothing_says_how_to_name_files(run_cli: Call) -> None:
    done = run_cli("replay")
    assert (done.code, done.out) == (2, "")
    assert "FILE..." in done.err


def test_the_version_is_told(run_cli: Call) -> None:
    assert run_cli("--version").out.startswith("slipstream ")


@pytest.mark.parametrize(
    ("given", "meant"), [(["--stdio"], ["serve", "--shared"]), (["serve", "--stdio"], ["serve", "--stdio"])]
)
def test_clients_of_other_servers_start_the_program_their_own_way(
    given: list[str], meant: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["slipstream", *given])
    monkeypatch.setattr(cli, "app", lambda arguments, prog_name: run.append(arguments))
    cli.main()
    assert run == [meant]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
def test_a_console_that_does_not_know_a_character_is_written_to_all_the_same(encoding: str) -> None:
    """A table is drawn in what characters there are; a name that has others is shown with `?` in it."""
    code = (
        "import sys\n"
        "from lsp_server import cli\n"
        "from lsp_server.commands.terminal import show_rows\n"
        "cli.app = lambda arguments, prog_name: show_rows('\u4e2d µ', ['name'], [['\u4e2d\u2192\u2265']])\n"
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
