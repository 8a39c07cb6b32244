"""`slipstream uninstall`: ends what runs and removes all that this user's servers ever stored.

Owns the list of places. Must not know what is in them. The program itself is removed by what installed it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import platformdirs
import psutil
import typer

from completion_engine.errors import MachineError, UserError
from lsp_server.commands.terminal import write
from lsp_server.sharing import address
from lsp_server.sharing.host_connection import running_hosts
from lsp_server.sharing.log import log_path

# How long hosts may take to tell their windows.
_END_S = 10.0
_PROGRAM = "slipstream-completion"


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder that is ours alone, and what it is for people.

    `named` is the folder that the user named and that it lies in, if it does.
    """

    path: Path
    what: str
    named: Path | None = None

    @property
    def num_bytes(self) -> int:
        """What lies there; links count for themselves."""
        from completion_engine.models.contents import size_of  # noqa: PLC0415 - not needed for help

        return size_of(self.path)


def uninstall(*, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Remove models, kernels, indexes, logs and settings; end the shared process."""
    found = list(places(os.environ))
    hosts = [int(host["pid"]) for host in running_hosts(os.environ)]
    for place in found:
        write(f"{place.num_bytes / 1e6:10.1f} MB  {place.path}  ({place.what})\n")
    for pid in hosts:
        write(f"{'':10}     process {pid}  (serves your editors' windows)\n")
    if not found and not hosts:
        write(f"There is nothing to remove.\n{next_step(Path(sys.prefix))}\n")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UserError("Nothing was removed, for nobody was asked.", advice="Say --yes.")
        typer.confirm("Remove all of it? Close your editors first.", abort=True)
    end(hosts)
    remove(found)
    write(f"Removed.\n{next_step(Path(sys.prefix))}\n")


def next_step(environment: Path) -> str:
    """How the program goes that is installed in this environment of Python, by what installed it."""
    for mark, tool in (("uv-receipt.toml", "uv tool"), ("pipx_metadata.json", "pipx")):
        if (environment / mark).is_file():
            return f"Now remove the program: {tool} uninstall {_PROGRAM}"
    command = f"Now remove the program: pip uninstall {_PROGRAM}"
    if (environment / "pyvenv.cfg").is_file():
        return (
            f"{command}\nWhat it needed stays in {environment}: delete that folder if it serves nothing else."
        )
    return command


def places(environment: Mapping[str, str]) -> Iterator[Place]:
    """All there is, under the folders that the system and the environment name."""
    from lsp_server.workspace.settings_file import user_file  # noqa: PLC0415 - loads numpy

    candidates = [
        Place(
            platformdirs.user_cache_path("slipstream", appauthor=False), "models, kernels, weights, indexes"
        ),
        *_in_named_folders(environment),
        Place(log_path().parent, "logs"),
        Place(user_file(), "your settings"),
        *(Place(folder, "the socket of the shared process") for folder in address.folders(environment)),
    ]
    yield from (place for place in candidates if os.path.lexists(place.path))


def _in_named_folders(environment: Mapping[str, str]) -> Iterator[Place]:
    """What is ours in folders that the user has named, where more may lie."""
    from completion_engine.choice import attempts, passes  # noqa: PLC0415 - not needed for help
    from completion_engine.models.catalogue import CATALOGUE  # noqa: PLC0415 - as above
    from completion_engine.models.contents import contents  # noqa: PLC0415 - as above
    from ngram_cache.saved_index import saved_in  # noqa: PLC0415 - loads numpy

    if models := environment.get("SLIPSTREAM_MODEL_DIR"):
        folder = Path(models).expanduser()
        marks = [mark for mark, _ in attempts.marks_in(folder, CATALOGUE)]
        paths = [*contents(folder), folder / passes.FILE_NAME, *marks]
        yield from (Place(path, "models", folder) for path in paths)
    if indexes := environment.get("SLIPSTREAM_INDEX_DIR"):
        folder = Path(indexes)
        yield from (Place(path, "an index", folder) for path in saved_in(folder))


def end(hosts: Iterable[int]) -> None:
    """End processes, by force where they do not end by themselves."""
    running = []
    for pid in hosts:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            process.terminate()
            running.append(process)
    for process in psutil.wait_procs(running, timeout=_END_S)[1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def remove(found: Iterable[Place]) -> None:
    """Remove places, and the folders above them that are empty then. Raises MachineError where one stays."""
    from completion_engine.models.contents import discard  # noqa: PLC0415 - not needed for help

    for place in found:
        try:
            discard(place.path)
        except OSError as error:
            raise MachineError(
                f"{place.path} cannot be removed: {error.strerror or error}.",
                advice="Close the editors that use it, and try again.",
            ) from error
        _remove_empty(place.path.parent, [Path.home(), *([place.named] if place.named else [])])


def _remove_empty(folder: Path, kept: Sequence[Path]) -> None:
    """Up to one that is kept, as the home folder is; folders elsewhere are the user's own."""
    while any(top in folder.parents for top in kept):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
