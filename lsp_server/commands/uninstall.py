"""`slipstream uninstall`: ends the shared process, and removes all that this user's servers ever stored.

Owns the list of stored files and folders. The installer of the program removes the program itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import platformdirs
import psutil
import typer

from completion_engine.choice import pass_log
from completion_engine.errors import MachineError, UserError
from completion_engine.models.catalogue import CATALOGUE
from completion_engine.models.storage import contents, discard, size_of
from lsp_server.commands.terminal import new_app, write
from lsp_server.sharing import address
from lsp_server.sharing.host_connection import running_hosts
from lsp_server.sharing.supervision import log_path
from lsp_server.workspace.settings_reading import user_file
from lsp_server.workspace.usage_by_day import http_token_path, usage_path
from ngram_cache.saved_index import saved_in

app = new_app()


_PROGRAM = "slipstream-completion"


class Stored(NamedTuple):
    """A file or folder of ours, what it is for people, and the folder that the user named for it, if any."""

    path: Path
    what: str
    named: Path | None = None


@app.command()
def uninstall(*, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Remove models, kernels, indexes, logs and settings; end the shared process."""
    found = [stored for stored in _stored(os.environ) if os.path.lexists(stored.path)]
    hosts = [int(host["pid"]) for host in running_hosts(os.environ)]
    for path, what, _ in found:
        write(f"{size_of(path) / 1e6:10.1f} MB  {path}  ({what})\n")
    for pid in hosts:
        write(f"{'':10}     process {pid}  (serves your editors' windows)\n")
    if not found and not hosts:
        write(f"There is nothing to remove.\n{next_step(Path(sys.prefix))}\n")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(
                "Slipstream removed nothing, because it could not ask for confirmation.",
                advice="Run it in a terminal, or add --yes.",
            )
        typer.confirm("Remove all of it? Close your editors first.", abort=True)
    _end(hosts)
    for stored in found:
        _remove(stored)
    write(f"Removed.\n{next_step(Path(sys.prefix))}\n")


def next_step(environment: Path) -> str:
    """How to remove the program from this environment of Python, by what installed it."""
    for mark, tool in (("uv-receipt.toml", "uv tool"), ("pipx_metadata.json", "pipx")):
        if (environment / mark).is_file():
            return f"Now remove the program: {tool} uninstall {_PROGRAM}"
    command = f"Now remove the program: pip uninstall {_PROGRAM}"
    if (environment / "pyvenv.cfg").is_file():
        return (
            f"{command}\nIts dependencies stay in {environment}. Delete that folder if nothing else uses it."
        )
    return command


def _stored(environment: Mapping[str, str]) -> Iterator[Stored]:
    """All that may be stored, in the folders that the system and the environment name."""
    cache = platformdirs.user_cache_path("slipstream", appauthor=False)
    yield Stored(cache, "models, kernels, weights, indexes")
    if named := environment.get("SLIPSTREAM_MODEL_DIR"):
        folder = Path(named).expanduser()
        marks = [mark for mark, _ in pass_log.marks_in(folder, CATALOGUE)]
        for path in (*contents(folder), folder / pass_log.FILE_NAME, *marks):
            yield Stored(path, "models", folder)
    if named := environment.get("SLIPSTREAM_INDEX_DIR"):
        for path in saved_in(Path(named)):
            yield Stored(path, "an index", Path(named))
    yield Stored(log_path().parent, "logs")
    yield Stored(usage_path(), "statistics by day")
    yield Stored(http_token_path(), "the token of HTTP clients")
    yield Stored(user_file(), "your settings")
    for folder in address.folders(environment):
        yield Stored(folder, "the socket of the shared process")


def _end(hosts: Iterable[int]) -> None:
    """End processes, by force if they do not end by themselves."""
    running = []
    for pid in hosts:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            process.terminate()
            running.append(process)
    for process in psutil.wait_procs(running, timeout=10.0)[1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _remove(stored: Stored) -> None:
    """Remove it, and the folders above it that are empty then. Raises MachineError if one stays."""
    try:
        discard(stored.path)
    except OSError as error:
        advice = "Close the editors that use it, and try again."
        raise MachineError(
            f"{stored.path} cannot be removed: {error.strerror or error}.", advice=advice
        ) from error
    kept, folder = {Path.home(), stored.named}, stored.path.parent  # folders elsewhere are the user's own
    while kept & set(folder.parents):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
