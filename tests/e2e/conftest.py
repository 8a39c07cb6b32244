"""A real server process on the tiny target, and the editor's side of the conversation with it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lsp_server.commands.language_client import LanguageClient, PendingRequest
from lsp_server.workspace.documents import PositionEncoding
from tests.hosts import Hosts, own_hosts
from tests.waiting import pauses

INVOKED, AUTOMATIC = 1, 2
WATCHED = ("didChangeStatus", "window/showMessage", "window/logMessage", "$/progress")
# Without a deadline every answer of the tiny target is whole and the same each time.
SETTINGS = {"device": "cpu", "deadlineMs": 0, "patienceMs": 60_000, "eagerness": 1}


@dataclass
class Editor:
    """One editor with one server."""

    client: LanguageClient
    root: Path
    capabilities: dict[str, Any] = field(default_factory=dict)
    heard: list[tuple[str, Any]] = field(default_factory=list)

    def listener(self, method: str) -> Callable[[Any], None]:
        return lambda params: self.heard.append((method, params))

    def messages(self, method: str) -> list[Any]:
        """The server's messages of this method."""
        return [params for name, params in self.heard if name == method]

    async def stats(self) -> Any:
        return await self.client.request("slipstream/stats")

    async def until(self, condition: Callable[[Any], bool], timeout_s: float = 300) -> Any:
        """The first stats that meet `condition`."""
        async with asyncio.timeout(timeout_s):
            for pause_s in pauses():
                if condition(stats := await self.stats()):
                    break
                await asyncio.sleep(pause_s)
        return stats

    async def until_state(self, *states: str) -> Any:
        stats = await self.until(lambda stats: stats["state"] in {*states, "error"})
        assert stats["state"] in states, stats["message"]
        return stats

    def open(self, name: str, text: str, language: str = "python") -> str:
        uri = (self.root / name).as_uri()
        self.client.open(uri, text, language=language)
        return uri

    def type(self, uri: str, line: int, column: int, text: str) -> None:
        place = {"line": line, "character": column}
        self.client.change(uri, [{"range": {"start": place, "end": place}, "text": text}])

    def ask(self, uri: str, line: int, column: int, kind: int = AUTOMATIC) -> PendingRequest:
        return self.client.send("textDocument/inlineCompletion", _at(uri, line, column, triggerKind=kind))

    async def suggest(self, uri: str, line: int, column: int, kind: int = AUTOMATIC) -> list[Any]:
        """The items offered at a place."""
        items: list[Any] = (await self.ask(uri, line, column, kind))["items"]
        return items

    async def why(self, uri: str, line: int, column: int) -> Any:
        params = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        return await self.client.request("slipstream/why", params)


def _at(uri: str, line: int, column: int, **context: Any) -> dict[str, Any]:
    position = {"line": line, "character": column}
    return {"textDocument": {"uri": uri}, "position": position, "context": context}


StartEditor = Callable[..., AbstractAsyncContextManager[Editor]]


@pytest.fixture(scope="session")
def warm_hosts() -> Iterator[Hosts]:
    """The process that serves the editors of all tests that are not about a process: it starts once."""
    with own_hosts() as hosts:
        yield hosts


@pytest.fixture(scope="session")
def start_editor(
    tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory, warm_hosts: Hosts
) -> StartEditor:
    """Start an editor in a folder, with the tiny target unless the settings name another.

    It shares the warm process, unless it is to have its `own`, or an environment or arguments of its own.
    """
    home = tmp_path_factory.mktemp("home")

    @asynccontextmanager
    async def start(
        root: Path,
        settings: Mapping[str, Any] | None = None,
        *,
        encoding: PositionEncoding = "utf-16",
        env: Mapping[str, str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        arguments: Sequence[str] = (),
        own: bool = False,
    ) -> AsyncIterator[Editor]:
        if not (own or env or arguments):
            env = {**warm_hosts.env, "XDG_STATE_HOME": str(warm_hosts.folder / "state")}
            arguments = ["--shared"]
        places = {"SLIPSTREAM_INDEX_DIR": str(home / "index"), "XDG_CONFIG_HOME": str(home / "config")}
        argv = [sys.executable, "-m", "lsp_server", *arguments]
        client = await LanguageClient.start(
            argv, cwd=Path(__file__).parents[2], env={**places, **(env or {})}
        )
        async with client:
            editor = Editor(client, root)
            for method in WATCHED:
                client.on_notification(method, editor.listener(method))
            wanted = {"target": str(tiny_model_dir), **SETTINGS, **(settings or {})}
            result = await client.initialize(
                root, position_encoding=encoding, settings=wanted, capabilities=capabilities
            )
            editor.capabilities = result["capabilities"]
            yield editor

    return start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(
    start_editor: StartEditor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Editor]:
    """One ready editor for all tests of a module; each test opens documents of its own."""
    root = tmp_path_factory.mktemp("repository")
    (root / "known.py").write_text("def add(first, second):\n    return first + second\n")
    async with start_editor(root) as editor:
        await editor.until_state("ready")
        yield editor
