"""Rules that exist and cannot be read exclude everything: no form of them lets text into an index or out."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from lsp_server.handlers import folders
from lsp_server.workspace import leave_rules, open_files, settings_reading
from lsp_server.workspace.open_files import MAX_CONFIGURED
from lsp_server.workspace.settings_reading import MAX_FILE_BYTES, REPOSITORY_FILE
from tests.remote_server import RemoteServer
from tests.windows import CAPABILITIES, Window, load_beside_servers, windows_on

GOOD = '[index]\nexclude = ["private/", "*.toml"]\n'
TEXT, PRIVATE = "def lend(member):\n    return member\n", "private/plan.py"


def _link(path: Path) -> None:
    path.with_name("elsewhere.toml").write_text(GOOD)
    path.symlink_to("elsewhere.toml")


FORMS: dict[str, Callable[[Path], object]] = {
    "in mid-edit": lambda path: path.write_text(GOOD + "[index\n"),
    "without a quote": lambda path: path.write_text('[index]\nexclude = ["private/]\n'),
    "a key twice": lambda path: path.write_text(GOOD + "[index]\n"),
    "UTF-16": lambda path: path.write_bytes(GOOD.encode("utf-16")),
    "a bad byte": lambda path: path.write_bytes(GOOD.encode() + b"# \xff\n"),
    "too large": lambda path: path.write_text(GOOD + "#" * MAX_FILE_BYTES),
    "a text for a list": lambda path: path.write_text('[index]\nexclude = "private/"\n'),
    "a number in the list": lambda path: path.write_text('[index]\nexclude = ["private/", 1]\n'),
    "a text for a group": lambda path: path.write_text('index = "private/"\n'),
    "a text for off": lambda path: path.write_text('context = "no"\n'),
    "languages as a list": lambda path: path.write_text('languages = ["python"]\n'),
    "nested too deep": lambda path: path.write_text(GOOD + "x = " + "[" * 3_000 + "]" * 3_000),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link": _link,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
if sys.platform == "win32":
    pytest.skip("makes pipes and links", allow_module_level=True)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings_reading, "user_file", lambda: tmp_path / "config.toml")
    for module in (leave_rules, open_files):
        monkeypatch.setattr(module, "VALID_S", 0.0)
    for name in ("open.py", PRIVATE):
        (tmp_path / "repository" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repository" / name).write_text(TEXT)
    return tmp_path / "repository"


class Bench:
    """A window with a team's servers, and what the index holds and the servers got."""

    def __init__(self, window: Window, server: RemoteServer, root: Path, settings: dict[str, Any]) -> None:
        self.window, self.server, self.root, self.settings = window, server, root, settings
        self.number = 1

    async def begin(self, **settings: Any) -> None:
        await self.window.begin(self.root, **self.settings, **settings)
        for name in ("open.py", PRIVATE):
            self.window.open((self.root / name).as_uri(), TEXT + "x = ")

    async def leaves(self, name: str) -> bool:
        """Whether a request in the file goes to the servers; a local engine answers it otherwise."""
        before, uri, self.number = len(self.server.completions), (self.root / name).as_uri(), self.number + 1
        line = f"value_{self.number} = "  # another one each time: the same is not requested again
        self.window.change(uri, {"text": TEXT + line}, version=self.number)
        assert await self.window.suggest_when_loaded(uri, 2, len(line))
        return len(self.server.completions) > before

    async def indexed(self) -> int:
        """The number of indexed files, once every index is complete."""
        while True:
            index = (await self.window.request("slipstream/stats"))["index"]
            if all(one["state"] == "ready" for one in index):
                return sum(one["num_files"] for one in index)
            await asyncio.sleep(0.02)

    def asked_for_settings(self) -> list[dict[str, Any]]:
        return [note for note in self.window.heard if note["method"] == "workspace/configuration"]

    async def until_open(self) -> None:
        """Wait until a folder is indexed."""
        while not (await self.window.request("slipstream/stats"))["index"]:  # noqa: ASYNC110 - it is asked
            await asyncio.sleep(0.02)

    async def changed(self, path: Path) -> None:
        changes = [{"uri": path.as_uri(), "type": 2}]
        self.window.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        await self.window.request("slipstream/stats")

    async def until_shown(self, words: str) -> None:
        await self.window.until(
            lambda: any(words in str(note["params"].get("message")) for note in self.window.heard)
        )

    async def holds_nothing(self) -> bool:
        """Whether nothing is indexed, and requests in all files stay here."""
        leaves = [await self.leaves(name) for name in ("open.py", PRIVATE)]
        return not any(leaves) and await self.indexed() == 0

    async def keeps_private_alone(self) -> bool:
        """Whether the rules of `GOOD` hold."""
        leaves = [await self.leaves(name) for name in ("open.py", PRIVATE)]
        return leaves == [True, False] and await self.indexed() == 1


@pytest.fixture
async def bench(server: RemoteServer, tokenizer_dir: Path, root: Path) -> AsyncIterator[Bench]:
    async with windows_on(load_beside_servers, linger_s=0.0) as windows:
        window = await windows.open()
        remote = {"url": server.url, "tokenizer": str(tokenizer_dir)}
        yield Bench(window, server, root, {"remote": remote, "target": "tiny", "deadlineMs": 30_000})
        await window.end()


CLOSED, KEPT = "is indexed or sent to servers", "stay in force"


@forms
async def test_a_repository_s_file_that_was_never_read_closes_its_folder(
    bench: Bench, form: Callable[[Path], object]
) -> None:
    form(bench.root / REPOSITORY_FILE)
    await bench.begin()
    assert await bench.holds_nothing()
    await bench.until_shown(CLOSED)


@forms
async def test_the_last_rules_that_could_be_read_stay_in_force(
    bench: Bench, form: Callable[[Path], object]
) -> None:
    path = bench.root / REPOSITORY_FILE
    path.write_text(GOOD)
    await bench.begin()
    assert await bench.keeps_private_alone()
    path.unlink()
    form(path)
    await bench.changed(path)
    await bench.until_shown(KEPT)
    assert await bench.keeps_private_alone()
    path.rmdir() if path.is_dir() else path.unlink()
    path.write_text('[index]\nexclude = ["*.toml"]\n')
    await bench.changed(path)
    assert [await bench.leaves(name) for name in ("open.py", PRIVATE)] == [True, True]
    assert await bench.indexed() == 2


async def test_a_mark_of_the_byte_order_is_no_error(bench: Bench, root: Path) -> None:
    (root / REPOSITORY_FILE).write_text(GOOD, encoding="utf-8-sig")
    await bench.begin()
    assert await bench.keeps_private_alone()


async def test_a_file_above_the_folder_closes_it_too(bench: Bench, root: Path) -> None:
    (root.parent / ".git").mkdir()
    (root.parent / REPOSITORY_FILE).write_text("index = ")
    await bench.begin()
    assert await bench.holds_nothing()
    await bench.until_shown(CLOSED)


async def test_a_file_above_the_folder_that_changes_reaches_the_index(bench: Bench, root: Path) -> None:
    (root.parent / ".git").mkdir()
    (root.parent / REPOSITORY_FILE).write_text("")
    await bench.begin()
    assert await bench.leaves(PRIVATE)
    assert await bench.indexed() == 2
    (root.parent / REPOSITORY_FILE).write_text('[index]\nexclude = ["repository/private/"]\n')
    assert not await bench.leaves(PRIVATE)
    assert await bench.indexed() == 1


async def test_more_files_around_a_document_than_are_read_close_it(bench: Bench, tmp_path: Path) -> None:
    inner = tmp_path / "elsewhere"
    for number in range(MAX_CONFIGURED + 1):
        inner /= f"d{number}"
        inner.mkdir(parents=True)
        (inner / REPOSITORY_FILE).write_text("")
    (inner / "a.py").write_text(TEXT)
    await bench.begin()
    bench.window.open((inner.parent / "a.py").as_uri(), TEXT + "x = ")
    bench.window.open((inner / "a.py").as_uri(), TEXT + "x = ")
    assert await bench.leaves(str(inner.parent / "a.py"))
    assert not await bench.leaves(str(inner / "a.py"))


@pytest.mark.parametrize("text", [GOOD + "[index\n", '[index]\nexclude = "private/"\n'])
async def test_the_user_s_file_closes_everything_until_it_is_right(
    bench: Bench, root: Path, text: str
) -> None:
    user_file = root.parent / "config.toml"
    user_file.write_text(text)
    await bench.begin()
    assert await bench.holds_nothing()
    await bench.until_shown(CLOSED)
    user_file.write_text(GOOD)
    bench.window.notify("textDocument/didSave", {"textDocument": {"uri": (root / "open.py").as_uri()}})
    await bench.window.request("slipstream/stats")
    assert await bench.keeps_private_alone()


@pytest.mark.parametrize("exclude", ["private/", ["private/", 7], {"a": 1}])
async def test_the_editor_s_rules_of_a_wrong_type_close_everything_or_change_nothing(
    bench: Bench, exclude: object
) -> None:
    await bench.begin(index={"exclude": exclude})
    assert await bench.holds_nothing()
    await bench.until_shown(CLOSED)
    bench.window.notify("workspace/didChangeConfiguration", {"settings": {"slipstream": {}}})
    assert await bench.holds_nothing()


async def test_the_editor_s_last_good_rules_stay_in_force(bench: Bench) -> None:
    await bench.begin(index={})

    def push(exclude: object) -> None:
        settings = {"slipstream": {"index": {"exclude": exclude}}}
        bench.window.notify("workspace/didChangeConfiguration", {"settings": settings})

    push(["private/", "*.toml"])
    assert await bench.keeps_private_alone()
    push("other/")
    await bench.until_shown(KEPT)
    assert await bench.keeps_private_alone()


async def test_rules_of_the_start_give_way_to_right_ones_from_the_editor(bench: Bench) -> None:
    await bench.begin(index={"exclude": "private/"})
    assert await bench.holds_nothing()
    settings = {"slipstream": {"index": {"exclude": ["private/", "*.toml"]}}}
    bench.window.notify("workspace/didChangeConfiguration", {"settings": settings})
    assert await bench.keeps_private_alone()


RULES = {"index": {"exclude": ["private/", "*.toml"]}}


@pytest.mark.parametrize(("at_start", "answer"), [(RULES, None), ({}, RULES)])
async def test_an_editor_that_does_not_send_its_settings_is_asked_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, at_start: dict[str, Any], answer: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(folders, "PULL_TIMEOUT_S", 0.1)
    monkeypatch.setitem(CAPABILITIES["workspace"], "configuration", True)
    bench.window.answers_requests = False
    await bench.begin(**at_start)
    assert await bench.holds_nothing()
    await bench.until_shown(CLOSED)
    monkeypatch.setattr(folders, "PULL_TIMEOUT_S", 60)
    bench.window.notify("textDocument/didSave", {"textDocument": {"uri": (bench.root / "open.py").as_uri()}})
    asked = await bench.window.until(lambda: bench.asked_for_settings()[1:])
    bench.window.answer_request(asked[0]["id"], [answer and {**bench.settings, **answer}])
    await bench.until_open()
    assert await bench.keeps_private_alone()
