"""Whether a Python program that a model wrote part of runs to its end, in a confined process of its own.

Where the system allows it the process also has a network of its own, with nothing in it.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
from functools import cache

from completion_engine.errors import MachineError
from tests.benchmarks.infilling import bounded_program

_MAX_WALL_S = 60.0  # on a busy machine the processor's time may take so long


def runs_to_its_end(program: str) -> bool:
    """Whether all of `program` ran without an error. Raises MachineError where nothing can be confined."""
    if sys.platform == "win32":
        raise MachineError("Programs cannot be confined here.", advice="Measure on Linux or macOS.")
    word = secrets.token_hex(8)  # it proves that the last line was reached
    command = [*_without_network(), sys.executable, "-I", "-S", str(bounded_program.__file__)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command,
                input=f"{program}\nprint({word!r})\n",
                capture_output=True,
                text=True,
                check=False,
                timeout=_MAX_WALL_S,
                cwd=folder,
                env={},
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0 and done.stdout.endswith(f"{word}\n")


@cache
def _without_network() -> tuple[str, ...]:
    """A prefix that runs a command without network; empty if that is not allowed."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    command = (unshare, "--user", "--net", "--map-root-user")
    done = subprocess.run([*command, "true"], capture_output=True, check=False)
    return command if done.returncode == 0 else ()
