"""Runs git on a hostile repository: nothing that it names runs, and every output and wait is bounded.

Hooks, filters, text converters, pagers, signatures and remote helpers stay off.
"""

from __future__ import annotations

import math
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from completion_engine.errors import MachineError, UserError

MAX_WAIT_S = 60.0
MAX_OUTPUT_BYTES = 64 * 1024 * 1024
_SAFE_OPTIONS = (
    "--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs",
    "-c", "core.hooksPath=" + os.devnull,
    "-c", "core.fsmonitor=false",
    "-c", "core.attributesFile=" + os.devnull,
    "-c", "core.quotePath=true",
)  # fmt: skip
_SAFE_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # a promisor's remote is never asked
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
}
_KEPT_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


class Watch:
    """Kills a process that takes more than `MAX_WAIT_S` within one `with` block, which then fails.

    One thread for all blocks: there may be one for each of 50,000 files.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._until = math.inf
        self._has_ended = threading.Event()
        self.has_killed = False
        threading.Thread(target=self._run, name="git watch", daemon=True).start()

    def __enter__(self) -> None:
        self._until = time.monotonic() + MAX_WAIT_S

    def __exit__(self, *_error: object) -> None:
        self._until = math.inf
        if self.has_killed:
            advice = "Try again when the disk is less busy."
            raise MachineError(f"git took more than {MAX_WAIT_S:.0f} s.", advice=advice)

    def end(self) -> None:
        """Watch no more."""
        self._has_ended.set()

    def _run(self) -> None:
        while not self._has_ended.wait(max(0.0, min(MAX_WAIT_S, self._until - time.monotonic()))):
            if time.monotonic() >= self._until:
                self.has_killed = True
                self._process.kill()
                return


def command_of(folder: Path, arguments: Sequence[str]) -> list[str]:
    """The command line of git in a folder."""
    return ["git", "-C", str(folder), *_SAFE_OPTIONS, *arguments]


def environment() -> Mapping[str, str]:
    """The environment of git: the user's, without what could make it run or fetch something."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    named = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | named | _SAFE_ENVIRONMENT


def run(folder: Path, arguments: Sequence[str]) -> bytes:
    """The output of git. Raises UserError when git fails, MachineError when it takes too long or too much."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command_of(folder, arguments),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=environment(),
        )
    except FileNotFoundError as error:
        raise MachineError("git is not installed here.", advice="Install git.") from error
    with process:
        assert process.stdout is not None and process.stderr is not None
        watch, errors = Watch(process), bytearray()
        drain = threading.Thread(target=_keep_beginning, args=(process.stderr, errors), daemon=True)
        drain.start()
        try:
            with watch:
                output = process.stdout.read(MAX_OUTPUT_BYTES + 1)
                if len(output) > MAX_OUTPUT_BYTES:
                    process.kill()
                drain.join()
        finally:
            watch.end()
    if len(output) > MAX_OUTPUT_BYTES:
        raise MachineError(f"`git {arguments[0]}` gave more than {MAX_OUTPUT_BYTES >> 20} MiB.")
    if process.returncode:
        reason = errors.decode("utf-8", "replace").strip() or "no output"
        raise UserError(f"`git {arguments[0]}` failed in {folder}: {reason}", advice="Name a git repository.")
    return output


def _keep_beginning(stream: IO[bytes], kept: bytearray) -> None:
    """Read to the end, so that git never waits to write, and keep what fits into a message."""
    while block := stream.read1(4096):  # type: ignore[attr-defined]  # a pipe of subprocess is buffered
        kept += block[: 4096 - len(kept)]
