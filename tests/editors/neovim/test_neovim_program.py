"""The server's program in a real Neovim: one that ends by itself, and one that `cmd` names in other ways."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim.editor import Neovim, Start

# Notes its start, answers the first time, and ends once it may.
ENDING = """\
import json, os, sys, time
folder = sys.argv[1]
with open(f"{folder}/starts", "a") as starts:
    starts.write("started\\n")
if os.path.exists(f"{folder}/answers"):
    os.remove(f"{folder}/answers")
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.split(b":")[1])
    request = json.loads(sys.stdin.buffer.read(length))
    answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"capabilities": {}}}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(answer), answer))
    sys.stdout.buffer.flush()
    while not os.path.exists(f"{folder}/ends"):
        time.sleep(0.01)
sys.exit(1)
"""

CLIENT_ANSWERS = "local c = vim.lsp.get_clients({ name = 'slipstream' })[1] return c and c.initialized"
AN_HOUR_LATER = "local now = vim.uv.now; vim.uv.now = function() return now() + 3600000 end"


def edit_with(start: Start, folder: Path, options: str) -> Neovim:
    """An editor with a file open in `folder`, whose server is ENDING."""
    (folder / "server.py").write_text(ENDING)
    (folder / "shapes.py").write_text("one = 1\n")
    command = f"{{ 'python3', '{folder}/server.py', '{folder}' }}"
    editor = start(f"vim.o.swapfile = false\nrequire('slipstream').setup({{ cmd = {command}, {options} }})")
    editor.edit(folder / "shapes.py")
    return editor


def num_starts(folder: Path) -> int:
    return len((folder / "starts").read_text().splitlines())


TWICE = "restart = { max_attempts = 2, first_delay_ms = 10 }"


def test_a_server_that_ends_before_it_answers_is_given_up(start: Start, tmp_path: Path) -> None:
    editor = edit_with(start, tmp_path, TWICE)
    editor.until("return vim.fn.execute('messages'):find('crashed 3 times in a row', 1, true)")
    assert num_starts(tmp_path) == 3
    assert editor.call("return require('slipstream').status()") == "Slipstream: error"
    (tmp_path / "answers").touch()
    editor.vim.command("Slipstream restart")
    editor.until(CLIENT_ANSWERS)
    assert editor.call("return require('slipstream').status()") == "Slipstream: loading"
    (tmp_path / "ends").touch()


def test_a_long_healthy_life_forgets_crashes_before_it_and_none_behind_it(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "answers").touch()
    editor = edit_with(start, tmp_path, TWICE)
    editor.until(CLIENT_ANSWERS)
    editor.call(AN_HOUR_LATER)
    (tmp_path / "ends").touch()
    editor.until("return vim.fn.execute('messages'):find('crashed 3 times in a row', 1, true)")
    assert num_starts(tmp_path) == 3


def test_the_end_of_a_snooze_switches_on_nothing_else(bare: Neovim) -> None:
    bare.vim.command("Slipstream disable")
    bare.vim.command("Slipstream snooze 30")
    bare.vim.command("Slipstream resume")
    switches = (
        "local switches = require('slipstream.switches')"
        "return { switches.is_enabled(), switches.snoozed_minutes() }"
    )
    assert bare.call(switches) == [False, 0]
    bare.vim.command("Slipstream enable")


@pytest.fixture
def with_cmd(bare: Neovim) -> Iterator[Callable[[Any], Neovim]]:
    """The bare editor, whose `cmd` is as given."""

    def give(cmd: Any) -> Neovim:
        bare.type("<C-\\><C-n>")
        bare.vim.command("silent! only | enew! | messages clear")
        bare.call("require('slipstream.config').set({ cmd = ... })", cmd)
        return bare

    yield give
    bare.call("require('slipstream.config').set({})")


FROM_MODULE = ["-c", "from lsp_server.cli import main; main()", "doctor"]


@pytest.mark.parametrize(
    ("cmd", "asked"),
    [
        ("/opt/slipstream", ["/opt/slipstream", "doctor"]),
        (["/opt/slipstream", "serve", "--stdio"], ["/opt/slipstream", "doctor"]),
        (["env", "A=b", "slipstream", "serve"], ["env", "A=b", "slipstream", "doctor"]),
        (["python", "-m", "lsp_server"], ["python", *FROM_MODULE]),
        (["python", "-P", "-m", "lsp_server", "--shared"], ["python", "-P", *FROM_MODULE]),
        (["/opt/my-wrapper"], None),
    ],
)
def test_the_program_of_cmd_is_asked_in_its_own_words(
    with_cmd: Callable[[Any], Neovim], cmd: Any, asked: list[str] | None
) -> None:
    assert with_cmd(cmd).call("return require('slipstream.config').command_for('doctor')") == asked


def played_program(folder: Path, says: str) -> Path:
    """A program that notes its arguments and says something."""
    program = folder / "program"
    lines = ["#!/usr/bin/env python3", "import json, sys", f"print({says!r})"]
    lines.append(f'open("{folder}/asked", "w").write(json.dumps(sys.argv[1:]))')
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    return program


def test_the_doctor_of_a_module_is_run_by_its_interpreter(
    with_cmd: Callable[[Any], Neovim], tmp_path: Path
) -> None:
    program = played_program(tmp_path, "fine")
    editor = with_cmd([str(program), "-m", "lsp_server"])
    editor.vim.command("Slipstream doctor")
    editor.until(f"return vim.fn.getfsize('{tmp_path}/asked') > 0")
    assert json.loads((tmp_path / "asked").read_text()) == FROM_MODULE


def test_a_program_that_cannot_be_asked_has_its_doctor_in_a_shell(with_cmd: Callable[[Any], Neovim]) -> None:
    editor = with_cmd(["/opt/my-wrapper"])
    editor.vim.command("Slipstream doctor")
    assert "Run `slipstream doctor` in a shell" in editor.messages()


@pytest.mark.parametrize(("says", "is_good"), [("slipstream 0.1.0", True), ("Python 3.12.1", False)])
def test_checkhealth_takes_no_other_program_for_slipstream(
    with_cmd: Callable[[Any], Neovim], tmp_path: Path, says: str, is_good: bool
) -> None:
    editor = with_cmd([str(played_program(tmp_path, says)), "-m", "lsp_server"])
    editor.vim.command("checkhealth slipstream")
    report = "\n".join(editor.lines())
    assert (
        f"OK {says}" in report if is_good else f"The program is not Slipstream. It printed: {says}" in report
    )
    assert ("The program is not Slipstream" in report) != is_good
