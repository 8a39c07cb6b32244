"""The doctor's report of a team's servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from completion_engine.probability import TokenProbability
from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.commands.doctor import server_checks
from lsp_server.workspace.settings import RemoteSettings, Settings
from tests.conftest import write_tiny_tokenizer
from tests.remote_server import RemoteServer, WeighedToken


def nothing(_what: str, _done: int, _total: int) -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_tokenizer(tmp_path)
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[RemoteServer]:
    tokenizer = load_tokenizer(folder)
    tokens = [
        WeighedToken(token, TokenProbability(0.9, ((0, 0.1),))) for token in tokenizer.encode(" add(1, 2)")
    ]
    server = RemoteServer(lambda *_: tokens, tokenizer.encode)
    yield server
    server.stop()


def checked(**remote: str) -> list[tuple[str, str, str, str]]:
    checks = server_checks(Settings(remote=RemoteSettings(**remote)), nothing)
    return [(check.name, check.state, check.found, check.advice) for check in checks]


def test_nobody_is_asked_where_nobody_is_named() -> None:
    assert checked() == []


def test_servers_that_answer(server: RemoteServer, folder: Path) -> None:
    servers, answers, leaves = checked(url=server.url, tokenizer=str(folder))
    assert servers[:2] == ("servers", "ok")
    assert "serves tiny, with our tokenizer" in servers[2]
    assert "the text around the cursor" in leaves[2]
    assert answers[:2] == ("their answers", "ok")
    assert answers[2].endswith("and return probabilities")
    first, second = server.completions
    assert first.json["prompt"] == second.json["prompt"]
    assert first.healed == b" ad"


def test_servers_that_do_not_say_how_sure_they_are(server: RemoteServer, folder: Path) -> None:
    server.brain = lambda *_: load_tokenizer(folder).encode(" add(1, 2)")
    _, answers, _ = checked(url=server.url, tokenizer=str(folder))
    assert answers[2].endswith("eagerness has no effect")


def test_servers_whose_answers_come_too_late(server: RemoteServer, folder: Path) -> None:
    settings = Settings(remote=RemoteSettings(url=server.url, tokenizer=str(folder)), patience_ms=0)
    _, answers, _ = server_checks(settings, nothing)
    assert answers.state == "slow"
    assert "patienceMs" in answers.advice


def test_servers_that_serve_and_do_not_answer(server: RemoteServer, folder: Path) -> None:
    """As vLLM where its `--max-logprobs` is too small."""
    server.always = lambda answering: answering.json({"error": {"type": "BadRequestError"}}, 400)
    servers, answers, _ = checked(url=server.url, tokenizer=str(folder))
    assert servers[1] == "ok"
    assert answers[:2] == ("their answers", "missing")
    assert "400: BadRequestError" in answers[2]


def test_what_is_wrong_is_named_with_what_to_do(server: RemoteServer, folder: Path) -> None:
    token = folder / "token"
    token.write_text("abc-123")
    token.chmod(0o644)
    named = {"url": server.url, "tokenizer": str(folder)}
    server.token = "abc-123"  # noqa: S105 - a test's
    for more, said, advice in (
        ({"token_file": str(token)}, "Other users can read", "chmod 600"),
        ({}, "does not accept the token (401)", "remote.tokenFile"),
        ({"url": "http://example.org"}, "unencrypted", "https://"),
        ({"tokenizer": str(folder / "none")}, "cannot be read", "Download"),
    ):
        ((name, state, found, what_to_do),) = checked(**{**named, **more})
        assert (name, state) == ("servers", "missing")
        assert said in found
        assert advice in what_to_do
