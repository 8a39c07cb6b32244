"""Clients that were written for an account get suggestions, and the answer that they are signed in."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.handlers.older_clients import USER
from tests.windows import Window, one_window, windows_on

URI = "file:///nowhere/a.py"
OLDER = {
    "editorInfo": {"name": "Vim", "version": "9.0"},
    "editorPluginInfo": {"name": "copilot.vim", "version": "1"},
}


def asking(line: int, character: int) -> dict[str, Any]:
    """The parameters that these clients send: everything twice."""
    document = {"uri": URI, "version": 1, "insertSpaces": True, "tabSize": 4, "indentSize": 4}
    position = {"line": line, "character": character}
    return {
        "doc": {**document, "position": position},
        "textDocument": {"uri": URI, "version": 1},
        "position": position,
    }


def heard(window: Window) -> list[Any]:
    return [message["params"] for message in window.heard if message["method"] == "statusNotification"]


async def begun(window: Window) -> dict[str, Any]:
    capabilities = {"general": {"positionEncodings": ["utf-8", "utf-16"]}}
    params = {"processId": None, "capabilities": capabilities, "initializationOptions": OLDER}
    result = await window.request("initialize", params)
    window.notify("initialized", {})
    await window.until(lambda: {"status": "Normal", "message": ""} in heard(window))
    return result


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("checkStatus", {"status": "OK", "user": USER}),
        ("signIn", {"status": "AlreadySignedIn", "user": USER}),
        ("signInInitiate", {"status": "AlreadySignedIn", "user": USER}),
        ("signInConfirm", {"status": "OK", "user": USER}),
        ("signOut", {"status": "NotSignedIn"}),
        ("setEditorInfo", "OK"),
        ("notifyRejected", "OK"),
    ],
)
async def test_nothing_is_signed_in_anywhere(method: str, answer: Any) -> None:
    async with windows_on() as windows:
        window = await windows.open()
        await begun(window)
        assert await window.request(method, {}) == answer
        await window.end()


async def test_completions_have_the_shape_and_the_units_of_these_clients() -> None:
    async with windows_on() as windows:
        window = await windows.open()
        result = await begun(window)
        assert result["capabilities"]["positionEncoding"] == "utf-16"
        window.open(URI, "s = '\U0001f600ä")
        for method in ("getCompletions", "getCompletionsCycling"):
            answer = await window.request(method, asking(0, 8))
            (item,) = answer["completions"]
            name = item.pop("uuid")
            end = {"line": 0, "character": 8}
            text = "s = '\U0001f600ä!"
            assert item == {
                "text": "s = '\U0001f600ä" + text,
                "displayText": text,
                "range": {"start": {"line": 0, "character": 0}, "end": end},
                "position": end,
            }
        assert await window.request("notifyShown", {"uuid": name}) == "OK"
        assert await window.request("notifyAccepted", {"uuid": name, "acceptedLength": 3}) == "OK"
        assert await window.request("notifyAccepted", {"uuid": name, "acceptedLength": 9}) == "OK"
        counters = (await window.request("slipstream/stats"))["counters"]
        names = ("num_shown", "num_partially_accepted", "num_accepted", "num_accepted_chars")
        assert [counters[name] for name in names] == [1, 1, 1, len(text)]
        await window.end()


@pytest.mark.parametrize(
    "params", [None, [], {}, {"doc": 1}, {"doc": {"uri": URI}}, {"doc": {"uri": 1, "position": {}}}], ids=str
)
async def test_a_malformed_request_is_an_error_and_ends_nothing(params: Any) -> None:
    async with windows_on() as windows:
        window = await windows.open()
        await begun(window)
        assert (await window.request("getCompletions", params))["code"] == -32602
        assert await window.request("notifyAccepted", params) == "OK"
        assert (await window.request("getVersion", params))["version"]
        await window.end()


async def test_the_model_is_the_one_that_the_settings_choose() -> None:
    async with windows_on() as windows:
        window = await windows.open()
        await begun(window)
        models = await window.request("copilot/models", {})
        assert all(model["scopes"] == ["completion"] for model in models)
        await window.end()


async def test_other_clients_get_no_older_notification() -> None:
    async with one_window() as window:
        assert not heard(window)
