"""Statistics by day over the wire: the next editor shows what was saved before, and scripts do not count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.protocol.framing import OWN_CLIENT
from tests.windows import CAPABILITIES, Window, windows_on

URI = "file:///nowhere/shapes.py"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr("lsp_server.protocol.server.usage_path", lambda: tmp_path / "usage.sqlite3")
    yield tmp_path


async def begin(window: Window, client: str) -> None:
    options = {"slipstream": {"deadlineMs": 0, "eagerness": 1, "index": {"enabled": False}}}
    params: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": CAPABILITIES}
    params |= {"clientInfo": {"name": client}, "initializationOptions": options}
    await window.request("initialize", params)
    window.notify("initialized", {})
    window.open(URI, "area")


async def usage_of(window: Window) -> Any:
    return (await window.request("slipstream/stats"))["usage"]


async def accept_one(window: Window) -> None:
    assert await window.suggest_when_loaded(URI, 0, 4)
    result = await window.answer(window.ask(URI, 0, 4))
    command = result["items"][0]["command"]
    await window.request("workspace/executeCommand", command)


async def test_the_next_editor_shows_what_the_last_one_saved() -> None:
    async with windows_on() as windows:
        first = await windows.open()
        await begin(first, "Neovim")
        await accept_one(first)
        await first.end()
        await first.until(lambda: first.answers.get("end"))
        second = await windows.open()
        await begin(second, "Visual Studio Code")
        usage = await usage_of(second)
        assert usage["today"] == usage["week"]
        assert (usage["today"]["num_accepted"], usage["today"]["num_keys_saved"]) == (1, len("area!") - 1)
        assert usage["today"]["p50_ms"] > 0


async def test_what_a_script_types_is_not_counted(home: Path) -> None:
    async with windows_on() as windows:
        window = await windows.open()
        await begin(window, OWN_CLIENT)
        await accept_one(window)
        assert await usage_of(window) is None
        await window.end()
        await window.until(lambda: window.answers.get("end"))
    assert not (home / "usage.sqlite3").exists()
