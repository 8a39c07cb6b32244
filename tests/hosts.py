"""An address of their own for the hosts that tests start, and the certain end of every one of them.

Owns the folder with the sockets and the log.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from lsp_server.sharing.address import HostAddress, find_address
from lsp_server.sharing.host_connection import running_hosts
from lsp_server.sharing.listener import HostListener, open_listener
from tests.waiting import first_true

PATIENCE_S = 120.0  # longest time in which a busy machine ends or starts a process


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of servers that run with the environment `env`."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        """One thread per pass: with other test processes, several threads would wait for busy cores."""
        beside_others = {"OMP_NUM_THREADS": "1"} if "PYTEST_XDIST_WORKER" in os.environ else {}
        return {"XDG_RUNTIME_DIR": str(self.folder), **beside_others}

    def facts(self) -> list[dict[str, Any]]:
        """The description of each running host."""
        return list(running_hosts({**self.env, "TMPDIR": str(self.folder)}))

    def only(self) -> dict[str, Any]:
        """The description of the one host, once it answers."""
        (host,) = first_true(self.facts, PATIENCE_S)
        return host

    def relay_env(self) -> dict[str, str]:
        """The environment in which a relay finds the one host: the host's own."""
        return psutil.Process(self.only()["pid"]).environ()

    def serving(self, relay_pid: int) -> dict[str, Any]:
        """The description of the host of this relay, once it answers."""
        path = find_address(psutil.Process(relay_pid).environ()).socket_path
        (host,) = first_true(lambda: [host for host in self.facts() if host["socket"] == path], PATIENCE_S)
        return host

    def end(self) -> None:
        """End all of them, by force if need be."""
        for host in self.facts():
            with suppress(ProcessLookupError):  # it may end by itself at this moment
                os.kill(host["pid"], signal.SIGTERM)
                if not has_ended(host["pid"], PATIENCE_S):
                    os.kill(host["pid"], signal.SIGKILL)


@contextmanager
def own_hosts() -> Iterator[Hosts]:
    """Hosts that no other process finds; they are gone afterwards."""
    # Not in pytest's folders: a socket's path must be short.
    hosts = Hosts(Path(tempfile.mkdtemp(prefix="slip-")))
    try:
        yield hosts
    finally:
        hosts.end()
        shutil.rmtree(hosts.folder)


@contextmanager
def listening(address: HostAddress) -> Iterator[HostListener]:
    """This process as the host at an address, which is free; it is none afterwards, whatever a test finds."""
    listener = open_listener(address)
    assert listener is not None
    with closing(listener):
        yield listener


def has_ended(pid: int, timeout_s: float) -> bool:
    """Whether a process ends in time; a zombie counts as ended."""
    return first_true(lambda: not _runs(pid), timeout_s)


def _runs(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    return False
