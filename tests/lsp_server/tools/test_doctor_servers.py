"""What the doctor says of a team's servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.tools.commands.servers import server_checks
from lsp_server.workspace.settings import RemoteSettings, Settings
from tests.conftest import write_tiny_tokenizer
from tests.remote_server import RemoteServer


def nothing(_what: str, _done: int, _total: int) -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_tokenizer(tmp_path)
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[RemoteServer]:
    server = RemoteServer(lambda *_: [], load_tokenizer(folder).encode)
    yield server
    server.stop()


def checked(**remote: str) -> list[tuple[str, str, str, str]]:
    checks = server_checks(Settings(remote=RemoteSettings(**remote)), nothing)
    return [(check.name, check.state, check.found, check.advice) for check in checks]


def test_nobody_is_asked_where_nobody_is_named() -> None:
    assert checked() == []


def test_servers_that_answer(server: RemoteServer, folder: Path) -> None:
    servers, leaves = checked(url=server.url, tokenizer=str(folder))
    assert servers[:2] == ("servers", "ok")
    assert "serves tiny, with our tokenizer" in servers[2]
    assert "the text around the cursor" in leaves[2]
    assert not server.completions


def test_what_is_wrong_is_named_with_what_to_do(server: RemoteServer, folder: Path) -> None:
    token = folder / "token"
    token.write_text("abc-123")
    token.chmod(0o644)
    named = {"url": server.url, "tokenizer": str(folder)}
    server.token = "abc-123"  # noqa: S105 - a test's
    for more, said, advice in (
        ({"token_file": str(token)}, "Others may read", "chmod 600"),
        ({}, "does not accept the token (401)", "remote.tokenFile"),
        ({"url": "http://example.org"}, "unencrypted", "https://"),
        ({"tokenizer": str(folder / "none")}, "cannot be read", "Fetch"),
    ):
        ((name, state, found, what_to_do),) = checked(**{**named, **more})
        assert (name, state) == ("servers", "missing")
        assert said in found
        assert advice in what_to_do
