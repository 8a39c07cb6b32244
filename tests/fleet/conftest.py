"""A fleet of a tiny target for all tests of a file, and how its users ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from completion_engine.remote.endpoint import Endpoint, RemoteConfig
from completion_engine.remote.vllm_client import VllmClient
from tests.fleet.team import Team, running_team
from tests.fleet.tiny_target import write_served_target
from tests.parts import MissingError

# The text must not depend on the rest of the batch: answers are compared.
_PRECISE = ("--dtype", "float32")
Connect = Callable[[RemoteConfig], VllmClient]


@pytest.fixture(scope="session")
def served_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny target's folder."""
    return write_served_target(tmp_path_factory.mktemp("served") / "tiny")


@pytest.fixture(scope="session")
def team(served_target: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Two replicas with HAProxy; skips if vLLM or HAProxy is not set up."""
    try:
        with running_team(served_target, tmp_path_factory.mktemp("fleet"), options=_PRECISE) as team:
            yield team
    except MissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects as the settings say."""
    opened: list[VllmClient] = []

    def connected(config: RemoteConfig) -> VllmClient:
        opened.append(VllmClient(Endpoint.of(config)))
        return opened[-1]

    yield connected
    for servers in opened:
        servers.close()
