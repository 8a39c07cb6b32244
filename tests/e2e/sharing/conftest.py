"""Editor windows on one host, which ends with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hosts import Hosts, own_hosts

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

StartWindow = Callable[..., AbstractAsyncContextManager["Editor"]]


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """A place without any host yet."""
    with own_hosts() as hosts:
        yield hosts


@pytest.fixture
def start_window(start_editor: StartEditor, hosts: Hosts) -> StartWindow:
    """Starts an editor window as `start_editor` does, through the host."""

    def start(root: Path, settings: dict[str, Any] | None = None, **env: str) -> Any:
        log = {"XDG_STATE_HOME": str(hosts.folder / "state")}
        return start_editor(root, settings, env={**hosts.env, **log, **env}, arguments=["--shared"])

    return start
