"""A whole fleet: two vLLM replicas with HAProxy, and its users.

Owns who is in it. Every process of it ends with the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.front import PLENTY, Front
from tests.fleet.replica import Replica

ADA, BEN, CAT = "token-of-ada", "token-of-ben", "token-of-cat"
USERS = {ADA: "ada", BEN: "ben", CAT: "cat"}


@dataclass(slots=True)
class Team:
    """The front and its replicas, which all answer."""

    front: Front
    replicas: list[Replica]

    @property
    def num_running(self) -> int:
        """Requests that the replicas work on."""
        return sum(replica.num_running for replica in self.replicas if replica.is_running)

    @property
    def num_written(self) -> int:
        """Tokens that the replicas have written so far."""
        return sum(replica.num_written for replica in self.replicas)

    @property
    def num_cached(self) -> int:
        """Prompt tokens so far that the replicas had cached."""
        return sum(replica.num_cached for replica in self.replicas)


@contextmanager
def running_team(
    model: Path,
    folder: Path,
    *,
    cache_bytes: int = 64 << 20,
    quota: int = PLENTY,
    options: tuple[str, ...] = (),
) -> Iterator[Team]:
    """Starts the replicas beside each other and waits for all. Raises MissingError, StartError."""
    with ExitStack() as stack:
        replicas = []
        for _ in range(2):
            replicas.append(Replica(model, folder, cache_bytes=cache_bytes, options=options))
            stack.callback(replicas[-1].kill)
        for replica in replicas:
            replica.wait_until_ready()
        front = Front(folder, [f"127.0.0.1:{replica.port}" for replica in replicas], USERS, quota=quota)
        stack.callback(front.kill)
        yield Team(front, replicas)
