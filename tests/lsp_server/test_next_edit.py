"""The next edit over the protocol, as clients of other servers ask for it; the engine's part is scripted."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from completion_engine.next_edit.candidates import find_candidates
from completion_engine.next_edit.edits import EditAnswer, EditRequest, ProposedEdit
from completion_engine.request import CancelledError, Progress
from lsp_server.engine.engine_types import Completer, Load, OnTokens
from lsp_server.workspace import open_files
from lsp_server.workspace.settings import Settings
from tests.waiting import until
from tests.windows import ScriptedEngine, Window, Windows, one_window, place, replacement, windows_on

URI = "file:///a.py"
TEXT = "fetch(1)\nfetch(2)\nfetch(3)\n"


@dataclass
class EditingEngine(ScriptedEngine):
    """Proposes the nearest place; where a line reads "slow", only once it is cancelled."""

    def propose_edit(self, request: EditRequest) -> EditAnswer:
        if "slow" in request.documents[0].lines:
            request.cancellation.wait(60)
        if request.cancellation.is_cancelled:
            raise CancelledError
        candidates = find_candidates(request)
        if not candidates:
            return EditAnswer(rule="no-similar-place")
        best = candidates[0]
        return EditAnswer(
            ProposedEdit(best.edit, best.repeats, best.num_examples, 3.0, 0.9), "", len(candidates)
        )


def load_editing(_settings: Settings, _on_tokens: OnTokens) -> Load:
    def load(_report: Progress, _should_stop: Callable[[], bool]) -> Completer:
        return EditingEngine()

    return load


async def ready(windows: Windows, root: Path | None = None, uri: str = URI, **settings: Any) -> Window:
    """A window with a document whose edits are followed."""
    window = await windows.begun(root, index={"enabled": False}, **settings)
    await opened(windows, window, uri)
    return window


async def opened(windows: Windows, window: Window, uri: str, text: str = TEXT) -> None:
    window.open(uri, text)
    await until(lambda: windows.servers[-1].session.edits.is_followed(uri))


async def indexed(windows: Windows, folder: Path, name: str) -> None:
    """Wait until the index of a folder holds a file."""
    indexes = windows.servers[-1].indexes
    await until(lambda: (index := indexes.index_of(folder)) and index.holds(name))


async def ask(window: Window, uri: str = URI, line: int = 0, **context: Any) -> list[Any]:
    found = await window.request("textDocument/copilotInlineEdit", place(uri, line, 0, **context))
    return list(found["edits"])


async def counters(window: Window) -> Any:
    return (await window.request("slipstream/stats"))["counters"]


async def test_an_edit_is_proposed_once_more_explained_and_accepted() -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        assert await ask(window, triggerKind=2) == []
        window.change(URI, replacement(0, 0, 5, "load"))
        (edit,) = await ask(window, triggerKind=2)
        assert (edit["text"], edit["range"]["start"]) == ("load", {"line": 1, "character": 0})
        assert edit["textDocument"] == {"uri": URI, "version": 2}
        (record_id,) = edit["command"]["arguments"]
        why = await window.request("slipstream/why", {"id": record_id})
        assert why["repeats"]["old"] == "fetch(1)" and why["repeats"]["new"] == "load(1)"
        assert (why["old"], why["new"], why["num_candidates"]) == ("fetch(2)", "load(2)", 2)
        window.notify("textDocument/didShowInlineEdit", {"item": {"command": edit["command"]}})
        await window.request(
            "workspace/executeCommand", {k: edit["command"][k] for k in ("command", "arguments")}
        )
        found = await counters(window)
        assert (found["num_edit_requests"], found["num_edits_proposed"]) == (2, 1)
        assert (found["num_edits_shown"], found["num_edits_accepted"]) == (1, 1)
        await window.end()


async def test_an_explanation_at_a_place_also_says_why_there_is_no_edit() -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        assert await ask(window, triggerKind=2) == []
        why = await window.request("slipstream/why", place(URI, 0, 0))
        assert why["next_edit"]["rule"] == "no-similar-place"
        assert why["next_edit"]["reason"] == "No other line has the text that you just changed."
        await window.end()


@pytest.mark.parametrize("how", ["dismissed", "dismissed without an answer", "passed over"])
async def test_an_edit_that_is_not_wanted_is_not_proposed_again(how: str) -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        window.change(URI, replacement(0, 0, 5, "load"))
        (edit,) = await ask(window)
        rejected = {"command": "slipstream.rejectedEdit", "arguments": edit["command"]["arguments"]}
        if how == "dismissed":
            await window.request("workspace/executeCommand", rejected)
        elif how == "dismissed without an answer":
            window.notify("workspace/executeCommand", rejected)
        else:
            window.change(URI, replacement(3, 0, 0, "other"), version=3)
        (edit,) = await ask(window)
        assert edit["range"]["start"]["line"] == 2
        assert (await counters(window))["num_edits_rejected"] == 1
        await window.end()


async def test_edits_count_that_come_before_the_disk_says_which_file_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_answering, find = threading.Event(), open_files.find_file

    def find_late(path: Path) -> open_files.FoundFile:
        is_answering.wait(60)
        return find(path)

    monkeypatch.setattr(open_files, "find_file", find_late)
    async with one_window(index={"enabled": False}, load_for=load_editing) as window:
        window.open(URI, TEXT)
        window.change(URI, replacement(0, 0, 5, "load"))
        await counters(window)
        await asyncio.sleep(0.05)  # rules would be read meanwhile
        is_answering.set()
        (edit,) = await ask(window, triggerKind=2)
        assert edit["range"]["start"]["line"] == 1


async def test_another_document_whose_file_is_found_late_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = open_files.find_file

    def find_late(path: Path) -> open_files.FoundFile:
        time.sleep(0.2 if path.name == "late.py" else 0)
        return find(path)

    monkeypatch.setattr(open_files, "find_file", find_late)
    first, late = ((tmp_path / name).as_uri() for name in ("first.py", "late.py"))
    async with windows_on() as windows:
        window = await windows.begun(tmp_path, index={"enabled": False})
        await opened(windows, window, first, "from app.models import User\n")
        window.open(late, "from app.models import User\n")
        window.change(first, replacement(0, 9, 15, "schema"))
        (edit,) = await ask(window, first, otherDocuments=True)
        assert edit["textDocument"]["uri"] == late
        await window.end()


async def test_a_key_ends_the_search_and_its_request() -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        window.change(URI, replacement(0, 0, 8, "slow"))
        number = window.send("textDocument/copilotInlineEdit", place(URI, 0, 0))
        await window.request("slipstream/stats")
        window.change(URI, replacement(0, 0, 4, "quick"), version=3)
        assert (await window.answer(number))["code"] == -32800
        assert await ask(window) == []
        await window.end()


async def test_a_completion_interrupts_the_search_which_then_goes_on() -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        window.change(URI, replacement(0, 0, 8, "slow"))
        number = window.send("textDocument/copilotInlineEdit", place(URI, 0, 0))
        assert await window.suggest(URI, 1, 8) == ["fetch(2)!"]
        assert number not in window.answers
        window.notify("$/cancelRequest", {"id": number})
        assert (await window.answer(number))["code"] == -32800
        await window.end()


@pytest.mark.parametrize(
    ("setting", "kind", "num_edits"),
    [("off", 1, 0), ("manual", 2, 0), ("manual", 1, 1), ("automatic", 2, 1), ("automatic", 1, 1)],
)
async def test_the_setting_says_when_edits_are_proposed(setting: str, kind: int, num_edits: int) -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows, nextEdit=setting)
        window.change(URI, replacement(0, 0, 5, "load"))
        assert len(await ask(window, triggerKind=kind)) == num_edits
        await window.end()


async def test_other_documents_are_proposed_only_to_clients_that_show_them() -> None:
    other = "file:///b.py"
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        await opened(windows, window, other, "fetch(9)\n")
        window.change(URI, {"text": "load(1)\n"})
        assert await ask(window) == []
        (edit,) = await ask(window, otherDocuments=True)
        assert edit["textDocument"] == {"uri": other, "version": 1}
        await window.end()


RENAMED = "def fetch(a):\n    return a\n"
RENAME = replacement(0, 4, 9, "load")


async def test_the_document_that_was_edited_counts_however_many_others_are_open() -> None:
    edited = "file:///edited.py"
    async with windows_on() as windows:
        window = await ready(windows)
        for number in range(8):
            await opened(windows, window, f"file:///{number}.py")
        await opened(windows, window, edited, f"{RENAMED}x = fetch(1)\n")
        window.change(edited, RENAME)
        (edit,) = await ask(window, otherDocuments=True)
        assert edit["textDocument"]["uri"] == edited
        await window.end()


async def test_a_use_that_a_rename_left_behind_needs_no_model() -> None:
    async with windows_on() as windows:
        window = await ready(windows)
        await opened(windows, window, "file:///b.py", f"{RENAMED}x = fetch(1)\n")
        window.change("file:///b.py", RENAME)
        (edit,) = await ask(window, "file:///b.py", triggerKind=2)
        assert (edit["text"], edit["range"]["start"]) == ("load", {"line": 2, "character": 4})
        why = await window.request("slipstream/why", {"id": edit["command"]["arguments"][0]})
        assert (why["num_scored"], why["log_odds"], why["shown"]) == (0, None, True)
        await window.end()


async def test_imports_in_files_that_are_not_open_follow_a_rename(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("private.py\n")
    for name in ("private.py", "use.py"):
        (tmp_path / name).write_text("import os\nfrom net import fetch\n")
    net, use = ((tmp_path / name).as_uri() for name in ("net.py", "use.py"))
    async with windows_on() as windows:
        window = await windows.begun(tmp_path)
        await opened(windows, window, net, RENAMED)
        await indexed(windows, tmp_path, "use.py")
        window.change(net, RENAME)
        assert await ask(window, net, otherDocuments=True) == []
        (edit,) = await ask(window, net, otherDocuments=True, otherFiles=True)
        assert edit["textDocument"] == {"uri": use, "version": None}
        assert (edit["text"], edit["range"]["start"]) == ("load", {"line": 1, "character": 16})
        await opened(windows, window, use, "import os\n\nfrom net import fetch\n")
        (edit,) = await ask(window, net, otherDocuments=True, otherFiles=True)
        assert edit["textDocument"] == {"uri": use, "version": 1}
        assert edit["range"]["start"] == {"line": 2, "character": 16}
        await window.end()


async def test_an_open_file_of_another_folder_hides_none_of_the_same_name(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "use.py").write_text("import os\nfrom net import fetch\n")
    net = (one / "net.py").as_uri()
    async with windows_on() as windows:
        window = await windows.begun(one)
        added = [{"uri": other.as_uri(), "name": "other"}]
        window.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
        await indexed(windows, other, "use.py")
        await indexed(windows, one, "use.py")
        await opened(windows, window, net, RENAMED)
        await opened(windows, window, (other / "use.py").as_uri(), "other = 1\n")
        window.change(net, RENAME)
        (edit,) = await ask(window, net, otherDocuments=True, otherFiles=True)
        assert edit["textDocument"] == {"uri": (one / "use.py").as_uri(), "version": None}
        await window.end()


async def test_all_edits_come_at_once_where_the_client_wants_them(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text("import os\nfrom net import fetch\n")
    net, use = ((tmp_path / name).as_uri() for name in ("net.py", "use.py"))
    async with windows_on() as windows:
        window = await windows.begun(tmp_path)
        await opened(windows, window, net, f"{RENAMED}x = fetch(1)\ny = fetch(2)\n")
        await indexed(windows, tmp_path, "use.py")
        window.change(net, RENAME)
        edits = await ask(window, net, otherDocuments=True, otherFiles=True, allEdits=True)
        places = [(edit["textDocument"], edit["range"]["start"]["line"], edit["text"]) for edit in edits]
        here, there = {"uri": net, "version": 2}, {"uri": use, "version": None}
        assert places == [(here, 2, "load"), (here, 3, "load"), (there, 1, "load")]
        assert [edit.get("numPlaces") for edit in edits] == [2, None, None]
        assert [("command" in edit) for edit in edits] == [True, False, False]
        await window.end()


@pytest.mark.parametrize("is_bound", [True, False])
async def test_a_file_that_is_not_open_tells_whether_an_import_moves(tmp_path: Path, is_bound: bool) -> None:
    old, new = ("from app.models import User\n", "from app.schema import User\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/models.py").write_text(f"class {'User' if is_bound else 'Order'}:\n    holds = 'User'\n")
    first, second = ((tmp_path / name).as_uri() for name in ("first.py", "second.py"))
    async with windows_on() as windows:
        window = await windows.begun(tmp_path)
        await opened(windows, window, first, old)
        await opened(windows, window, second, old)
        await indexed(windows, tmp_path, "app/models.py")
        window.change(first, replacement(0, 9, 15, "schema"))
        edits = await ask(window, first, otherDocuments=True)
        assert [edit["textDocument"]["uri"] for edit in edits] == ([] if is_bound else [second])
        assert [edit["text"] for edit in edits] == ([] if is_bound else [new[9:15]])
        await window.end()


async def test_edits_of_a_file_that_may_not_be_indexed_are_never_kept(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("private.py\n")
    async with windows_on(load_editing) as windows:
        window = await ready(windows, tmp_path, (tmp_path / "a.py").as_uri())
        private = (tmp_path / "private.py").as_uri()
        window.open(private, TEXT)
        window.change(private, replacement(0, 0, 5, "load"))
        assert await ask(window, private) == []
        assert windows.servers[-1].session.edits.hunks() == ()
        assert (await window.request("slipstream/stats"))["rules"] == {"excluded-file": 1}
        await window.end()


async def test_a_file_that_is_excluded_later_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_server.workspace.leave_rules.VALID_S", 0.0)
    uri = (tmp_path / "a.py").as_uri()
    async with windows_on(load_editing) as windows:
        window = await ready(windows, tmp_path, uri)
        window.change(uri, replacement(0, 0, 5, "load"))
        assert len(await ask(window, uri)) == 1
        (tmp_path / ".gitignore").write_text("a.py\n")
        assert await ask(window, uri) == []
        assert windows.servers[-1].session.edits.documents == ()
        await window.end()


async def test_nothing_is_kept_of_a_closed_document() -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        window.change(URI, replacement(0, 0, 5, "load"))
        window.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        await window.request("slipstream/stats")
        assert windows.servers[-1].session.edits.hunks() == ()
        await window.end()


async def test_an_engine_that_scores_nothing_says_so() -> None:
    async with windows_on() as windows:
        window = await ready(windows)
        window.change(URI, replacement(0, 0, 5, "load"))
        assert await ask(window) == []
        assert (await window.request("slipstream/stats"))["rules"] == {"edit-needs-local-model": 1}
        await window.end()


@pytest.mark.parametrize("params", [None, {}, {"textDocument": {"uri": URI}, "position": {"line": "1"}}])
async def test_malformed_parameters_are_refused(params: Any) -> None:
    async with windows_on(load_editing) as windows:
        window = await ready(windows)
        assert (await window.request("textDocument/copilotInlineEdit", params))["code"] == -32602
        await window.end()
