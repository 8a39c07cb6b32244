"""An open document is drafted from in the folder that holds it alone, while folders come and go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lsp_server.handlers import folders
from tests.waiting import until
from tests.windows import Window, Windows, insertion, windows_on

CODE = "def stored(value):\n    return value * 2\n"


@dataclass
class Workplace:
    """A window on `root`, which has an `inner` folder; both hold a file."""

    window: Window
    windows: Windows
    root: Path

    @property
    def inner(self) -> Path:
        return self.root / "inner"

    def overlaid(self, folder: Path) -> list[str] | None:
        """The documents that stand over their files in the index of a folder; None while there is none."""
        (server,) = self.windows.servers
        index = server.indexes.index_of(folder)
        is_ready = any((one.folder, one.state) == (folder, "ready") for one in server.indexes.reports())
        return list(index.overlaid) if index and is_ready else None

    def change(self, *, added: list[Path], removed: list[Path]) -> None:
        event = {
            name: [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
            for name, folders in (("added", added), ("removed", removed))
        }
        self.window.notify("workspace/didChangeWorkspaceFolders", {"event": event})

    def close(self, file: Path) -> None:
        self.window.notify("textDocument/didClose", {"textDocument": {"uri": file.as_uri()}})

    async def open_changed(self, file: Path) -> None:
        """Open a file's document with a change that is not saved."""
        self.window.open(file.as_uri(), CODE)
        self.window.change(file.as_uri(), insertion(0, 0, "def discarded(): pass\n"))
        await self.window.request("slipstream/stats")


@pytest.fixture
async def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workplace]:
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path / "index"))
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    for folder in (root, root / "inner"):
        (folder / "a.py").write_text(CODE)
    async with windows_on() as windows:
        window = await windows.begun(root)
        work = Workplace(window, windows, root)
        await until(lambda: work.overlaid(root) == [])
        yield work
        await window.end()


async def test_what_was_discarded_while_its_folder_was_away_hides_no_file(work: Workplace) -> None:
    file = work.root / "a.py"
    await work.open_changed(file)
    await until(lambda: work.overlaid(work.root) == ["a.py"])
    work.change(added=[], removed=[work.root])
    work.close(file)
    work.change(added=[work.root], removed=[])
    await work.window.request("slipstream/stats")
    await until(lambda: work.overlaid(work.root) is not None)
    await asyncio.sleep(0.7)  # a buffer is shown once it was still for 0.3 s
    assert work.overlaid(work.root) == []


async def test_a_document_goes_to_the_inner_folder_that_is_added_and_back(work: Workplace) -> None:
    await work.open_changed(work.inner / "a.py")
    await until(lambda: work.overlaid(work.root) == ["inner/a.py"])
    work.change(added=[work.inner], removed=[])
    await until(lambda: work.overlaid(work.inner) == ["a.py"])
    await until(lambda: work.overlaid(work.root) == [])
    work.change(added=[], removed=[work.inner])
    await until(lambda: work.overlaid(work.root) == ["inner/a.py"])
    work.close(work.inner / "a.py")
    await until(lambda: work.overlaid(work.root) == [])


async def test_what_is_closed_after_an_inner_folder_came_is_in_no_index(work: Workplace) -> None:
    await work.open_changed(work.inner / "a.py")
    await until(lambda: work.overlaid(work.root) == ["inner/a.py"])
    work.change(added=[work.inner], removed=[])
    work.close(work.inner / "a.py")
    await until(lambda: work.overlaid(work.inner) == [])
    await until(lambda: work.overlaid(work.root) == [])


async def test_an_open_document_is_drafted_from_in_a_folder_that_comes_later(work: Workplace) -> None:
    work.change(added=[], removed=[work.root])
    await work.open_changed(work.inner / "a.py")
    work.change(added=[work.inner], removed=[])
    await until(lambda: work.overlaid(work.inner) == ["a.py"])


@pytest.mark.parametrize("num_events", [3, 300, 20_000])
async def test_many_changed_files_are_taken_in_few_steps(
    work: Workplace, monkeypatch: pytest.MonkeyPatch, num_events: int
) -> None:
    """An answer waits for no more than the steps before it: 20,000 events once took 625, and 2.5 s."""
    (server,) = work.windows.servers
    taken: list[int] = []
    files_changed = server.indexes.files_changed

    def note(paths: Sequence[Path]) -> None:
        taken.append(len(paths))
        files_changed(paths)

    monkeypatch.setattr(server.indexes, "files_changed", note)
    (work.root / "new.py").write_text(CODE)
    names = ["new.py", *(f"gone{number}.py" for number in range(num_events - 1))]
    changes = [{"uri": (work.root / name).as_uri(), "type": 2} for name in names]
    work.window.notify("workspace/didChangeWatchedFiles", {"changes": [*changes[1:], changes[0]]})
    index = server.indexes.index_of(work.root)
    assert index is not None
    await until(lambda: index.holds("new.py"))
    assert len(taken) <= 10
    assert max(taken) <= 32


@pytest.mark.parametrize("is_read_in_time", [True, False])
async def test_a_request_waits_for_the_reading_of_its_folder_but_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_read_in_time: bool
) -> None:
    """A window whose engine is ready at once, because it is another window's too."""
    may_read = threading.Event()
    read_folder = folders._read_folder
    monkeypatch.setattr(folders, "_read_folder", lambda path: may_read.wait(60) and read_folder(path))
    uri = (tmp_path / "a.py").as_uri()
    async with windows_on() as windows:
        await (await windows.open()).begin()
        window = await windows.begun(tmp_path)
        window.open(uri, "x")
        asked = window.ask(uri, 0, 1)
        await window.request("slipstream/stats")
        if is_read_in_time:
            may_read.set()
        answer = await window.answer(asked)
        may_read.set()
    assert [item["insertText"] for item in answer["items"]] == (["x!"] if is_read_in_time else [])
