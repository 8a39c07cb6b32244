"""A team's servers for the tests of what leaves: a scripted one that records what it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from tests.conftest import write_tiny_tokenizer
from tests.remote_server import RemoteServer


@pytest.fixture(scope="session")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tiny_tokenizer(folder)
    return folder


@pytest.fixture
def tokenizer(tokenizer_dir: Path) -> Tokenizer:
    return load_tokenizer(tokenizer_dir)


@pytest.fixture
def server(tokenizer: Tokenizer) -> Iterator[RemoteServer]:
    def brain(_prompt: Any, healed: bytes, *_: Any) -> list[int]:
        return [*tokenizer.encode(healed.decode() + "a_word(1)\n"), min(tokenizer.end_ids)]

    server = RemoteServer(brain, tokenizer.encode, num_positions=8192)
    yield server
    server.stop()
