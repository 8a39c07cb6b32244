"""What an editor gets: suggestions that fit, in its own units and line ends, and the reasons for each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

INVOKED = 1
TEXT = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    \n"
PLACE = (6, 0)
REST_S = 0.3  # pause of the typist
PATIENCE_S = 120.0


def place(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


async def test_the_capabilities_name_what_is_served(editor: Editor) -> None:
    capabilities = editor.capabilities
    assert capabilities["inlineCompletionProvider"] == {}
    assert "completionProvider" not in capabilities
    assert capabilities["textDocumentSync"]["change"] == 2
    assert capabilities["executeCommandProvider"]["commands"] == [
        "slipstream.accepted",
        "slipstream.acceptedEdit",
        "slipstream.rejectedEdit",
        "slipstream.purgeIndex",
    ]
    assert capabilities["workspace"]["workspaceFolders"] == {"supported": True, "changeNotifications": True}


async def test_a_suggestion_is_the_same_each_time_and_costs_no_pass_the_second_time(editor: Editor) -> None:
    uri = editor.open("same.py", TEXT)
    first = await editor.suggest(uri, *PLACE)
    assert (await editor.why(uri, *PLACE))["stats"]["num_forwards"] > 0
    second = await editor.suggest(uri, *PLACE)
    assert (await editor.why(uri, *PLACE))["stats"]["num_forwards"] == 0
    assert first
    assert first[0]["insertText"] == second[0]["insertText"]
    assert first[0]["range"] == {
        "start": {"line": 6, "character": 0},
        "end": {"line": 6, "character": 0},
    }


async def test_who_asks_a_while_after_a_key_finds_the_answer_written(editor: Editor) -> None:
    uri = editor.open("late.py", TEXT)
    await editor.suggest(uri, *PLACE)
    async with asyncio.timeout(PATIENCE_S):
        for column in range(1_000):
            editor.type(uri, PLACE[0], column, "zqxjv"[column % 5])
            await asyncio.sleep(REST_S * (column + 1))  # on a busy machine it takes longer
            await editor.suggest(uri, PLACE[0], column + 1)
            if not (await editor.why(uri, PLACE[0], column + 1))["stats"]["num_forwards"]:
                return
    pytest.fail("every answer took a pass")


async def test_a_keystroke_only_adds_to_what_the_engine_has_computed(editor: Editor) -> None:
    uri = editor.open("along.py", TEXT)
    await editor.suggest(uri, *PLACE)
    for column, char in enumerate("value = "):
        editor.type(uri, PLACE[0], column, char)
        await editor.suggest(uri, PLACE[0], column + 1)
        stats = (await editor.why(uri, PLACE[0], column + 1))["stats"]
        assert stats["num_cached_tokens"] >= stats["num_prompt_tokens"] - 8


async def test_an_answer_that_was_overtaken_by_typing_fits_the_document_as_it_is(editor: Editor) -> None:
    uri = editor.open("overtaken.py", TEXT)
    text = (await editor.suggest(uri, *PLACE))[0]["insertText"]
    for _ in range(50):  # an answer that is known already takes a millisecond, and may be the faster
        editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        editor.open("overtaken.py", TEXT)
        request = editor.ask(uri, *PLACE)
        editor.type(uri, *PLACE, text[:2])
        (item,) = (await request)["items"]
        if item["range"]["start"] != place(*PLACE):
            break
    assert item["insertText"] == text[2:]
    line, column = PLACE[0] + text[:2].count("\n"), len(text[:2].rpartition("\n")[2])
    assert item["range"]["start"] == place(line, column)


async def test_an_answer_that_no_longer_fits_is_not_given(editor: Editor) -> None:
    for number in range(50):  # one that comes before the key is read fits what there was then
        uri = editor.open(f"unfit{number}.py", f"# other{number}\n{TEXT}")
        request = editor.ask(uri, PLACE[0] + 1, 0)
        editor.type(uri, 0, 0, "x")
        if not (items := (await request)["items"]):
            break
    assert items == []


async def test_inserted_line_ends_are_the_documents_own(start_editor: StartEditor, tmp_path: Path) -> None:
    async with start_editor(tmp_path, {"multiline": "always", "maxTokens": 256}) as editor:
        await editor.until_state("ready")
        texts: list[str] = []
        for number in range(120):  # the tiny target's text is random; some of it has several lines
            if any("\r\n" in text for text in texts):
                break
            uri = editor.open(f"crlf{number}.py", f"# {number}\n{TEXT}".replace("\n", "\r\n"))
            texts += [item["insertText"] for item in await editor.suggest(uri, 6, 4)]
        assert any("\r\n" in text for text in texts)
        assert not any("\n" in text.replace("\r\n", "") for text in texts)


async def test_columns_are_in_the_clients_units(start_editor: StartEditor, tmp_path: Path) -> None:
    async with start_editor(tmp_path, encoding="utf-8") as editor:
        assert editor.capabilities["positionEncoding"] == "utf-8"
        await editor.until_state("ready")
        uri = editor.open("emoji.py", "a = 1\n# 😀\n")
        editor.type(uri, 1, 6, "é")
        items = await editor.suggest(uri, 1, 8)
        assert all(item["range"]["start"] == {"line": 1, "character": 8} for item in items)
        why = await editor.why(uri, 1, 8)
        assert why["triggered"]


async def test_why_explains_a_suggestion(editor: Editor) -> None:
    uri = editor.open("why.py", TEXT)
    text = (await editor.suggest(uri, *PLACE))[0]["insertText"]
    why = await editor.why(uri, *PLACE)
    assert (why["triggered"], why["shown"], why["text"]) == (True, True, text)
    assert "".join(piece["text"] for piece in why["pieces"]) == text
    assert why["stats"]["num_prompt_tokens"] > 0
    assert set(why["stats"]["ms"]) >= {"queue", "prompt", "prefill", "draft", "verify", "total"}


async def test_why_explains_a_place_that_nobody_asked_about(editor: Editor) -> None:
    uri = editor.open("why2.py", TEXT)
    why = await editor.why(uri, 4, 8)
    assert why["triggered"]
    assert why["shown"] == (why["rule"] == "")


async def test_a_suggestion_goes_on_from_the_item_that_is_selected_in_the_editors_list(
    editor: Editor,
) -> None:
    uri = editor.open("selected.py", f"{TEXT}pr")
    selected = {"range": {"start": place(6, 0), "end": place(6, 2)}, "text": "print_all"}
    context = {"triggerKind": 2, "selectedCompletionInfo": selected}
    params = {"textDocument": {"uri": uri}, "position": place(6, 2), "context": context}
    (item,) = (await editor.client.request("textDocument/inlineCompletion", params))["items"]
    editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    editor.open("selected.py", f"{TEXT}print_all")
    (plain,) = await editor.suggest(uri, 6, 9)
    assert item["insertText"] == "int_all" + plain["insertText"]


async def test_settings_decide_where_completions_come(editor: Editor, tiny_model_dir: Path) -> None:
    uri = editor.open("manual.py", TEXT)
    settings = {"target": str(tiny_model_dir), "device": "cpu", "deadlineMs": 0, "eagerness": 1}
    editor.client.configure({**settings, "trigger": "manual"})
    assert await editor.suggest(uri, *PLACE) == []
    assert (await editor.why(uri, *PLACE))["rule"] == "trigger-manual"
    assert await editor.suggest(uri, *PLACE, kind=INVOKED)
    comment = editor.open("comment.py", f"{TEXT}# the fir")
    editor.client.configure({**settings, "suggestInComments": False})
    assert await editor.suggest(comment, 6, 9) == []
    assert (await editor.why(comment, 6, 9))["rule"] == "in-comment"
    assert await editor.suggest(uri, *PLACE)
    editor.client.configure({**settings, "languages": {"python": False}})
    assert await editor.suggest(uri, *PLACE, kind=INVOKED) == []
    editor.client.configure(settings)
    assert await editor.suggest(uri, *PLACE)
    assert (await editor.stats())["state"] == "ready"


async def test_what_becomes_of_a_suggestion_is_counted(editor: Editor) -> None:
    """Taken in steps and then as a whole, each character counts once."""
    uri = editor.open("counted.py", TEXT)
    (item,) = await editor.suggest(uri, *PLACE)
    before = (await editor.stats())["counters"]
    editor.client.notify("textDocument/didShowCompletion", {"item": item})
    for length in (1, 3):
        taken = {"item": item, "acceptedLength": length}
        editor.client.notify("textDocument/didPartiallyAcceptCompletion", taken)
    editor.client.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
    await editor.client.request("workspace/executeCommand", item["command"])
    after = (await editor.stats())["counters"]
    gained = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert gained == {
        "num_shown": 1,
        "num_accepted": 1,
        "num_partially_accepted": 2,
        "num_accepted_chars": len(item["insertText"]),
        "num_focused": 1,
    }


async def test_the_stats_tell_of_the_last_suggestion(editor: Editor) -> None:
    uri = editor.open("fresh.py", TEXT)
    (item,) = await editor.suggest(uri, *PLACE)
    stats = await editor.stats()
    last = stats["last"]
    assert (last["id"], last["text"]) == (item["command"]["arguments"][0], item["insertText"])
    assert last["response_ms"] == stats["recent_response_ms"][-1] > 0
    assert stats["response_ms"]["p50"] <= stats["response_ms"]["p99"] <= stats["response_ms"]["max"]


async def test_a_suggestion_is_explained_by_its_id(editor: Editor) -> None:
    uri = editor.open("explained.py", TEXT)
    (item,) = await editor.suggest(uri, *PLACE)
    (record_id,) = item["command"]["arguments"]
    assert await editor.client.request("slipstream/why", {"id": record_id}) == await editor.why(uri, *PLACE)
    unknown = await editor.client.request("slipstream/why", {"id": "no such"})
    assert (unknown["shown"], unknown["rule"]) == (False, "unknown-suggestion")


async def test_the_status_says_why_nothing_comes_in_the_document_that_has_the_focus(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    async with start_editor(tmp_path, {"languages": {"go": False}}) as editor:
        await editor.until_state("ready")
        for name, language in (("a.py", "python"), ("a.go", "go"), ("b.py", "python")):
            uri = editor.open(name, "x", language=language)
            editor.client.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
            await editor.why(uri, 0, 1)  # which waits until the server knows the file
        editor.client.configure({"device": "cpu", "trigger": "manual"})
        await editor.stats()
    shown = editor.messages("didChangeStatus")
    ready = [(status["kind"], status["message"]) for status in shown if status["state"] == "ready"]
    off = "Suggestions are switched off for this language."
    manual = "The setting trigger is manual: suggestions appear only when you ask for them."
    assert ready[:3] == [("Normal", "Ready."), ("Inactive", off), ("Normal", "Ready.")]
    assert ("Inactive", manual) in ((status["kind"], status["message"]) for status in shown)


async def test_a_client_without_inline_completion_gets_completion_items(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    async with start_editor(tmp_path, capabilities={"textDocument": {}}) as editor:
        assert "triggerCharacters" in editor.capabilities["completionProvider"]
        await editor.until_state("ready")
        uri = editor.open("old.py", f"{TEXT}ad")
        params = {"textDocument": {"uri": uri}, "position": {"line": 6, "character": 2}}
        answer = await editor.client.request("textDocument/completion", params)
        assert answer["isIncomplete"]
        for item in answer["items"]:
            assert item["filterText"].startswith("ad")
            assert item["textEdit"]["newText"].startswith("ad")
            assert item["textEdit"]["range"]["start"] == {"line": 6, "character": 0}


async def test_progress_is_shown_while_the_model_loads(start_editor: StartEditor, tmp_path: Path) -> None:
    async with start_editor(tmp_path, own=True) as editor:
        await editor.until_state("ready")
    kinds = [params["value"]["kind"] for params in editor.messages("$/progress")]
    assert kinds[0] == "begin"
    assert "end" in kinds
    statuses = editor.messages("didChangeStatus")
    assert statuses[0]["busy"]
    assert statuses[0]["state"] == "loading"
    assert {status["percent"] for status in statuses if status["busy"]} - {None}
    ready = next(status for status in statuses if status["state"] == "ready")
    assert (ready["busy"], ready["percent"]) == (False, None)


async def test_a_place_that_was_looked_at_is_prepared_before_anything_is_typed(editor: Editor) -> None:
    for wait_s in (0.2, 1, 5, 20, 60):  # no event reports that the engine has had its idle moment
        uri = editor.open(f"looked_at_{wait_s}.py", f"# {wait_s}\n{TEXT * 4}")
        focus = {"textDocument": {"uri": uri}, "position": {"line": 7, "character": 0}}
        editor.client.notify("textDocument/didFocus", focus)
        await asyncio.sleep(wait_s)
        await editor.suggest(uri, 7, 0)
        stats = (await editor.why(uri, 7, 0))["stats"]
        if stats["num_cached_tokens"] == stats["num_prompt_tokens"] - 1:
            return
    pytest.fail(f"{stats['num_cached_tokens']} of {stats['num_prompt_tokens']} tokens were prepared")
