"""What this user's hosts say of themselves. Owns the question; must not know what the answers are for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from lsp_server.sharing.address import sockets
from lsp_server.sharing.endpoint import connect
from lsp_server.sharing.wire import STATUS

ANSWER_S = 3.0


def running_hosts(environment: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The facts of each host that answers: `socket`, `pid`, `num_windows`, `engines`, `num_memory_bytes`."""
    for path in sockets(environment):
        with contextlib.suppress(OSError, ValueError), connect(path, ANSWER_S) as connection:
            connection.sendall(STATUS)
            with connection.makefile("rb") as stream:
                yield {"socket": path, **json.loads(stream.read())}
