"""Folders are indexed beside the event loop: the tokenizer starts them, buffers are shown when still."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lsp_server.folder_worker import FolderReport, TokenSource
from lsp_server.indexing_job import BUFFER_QUIET_S, MAX_PAUSE_S, IndexingJobs
from lsp_server.settings import IndexSettings

CODE = "def fresh(value):\n    return value * 2\n"
ENABLED = IndexSettings()


def encode_many(texts: list[str]) -> list[list[int]]:
    return [list(text.encode()) for text in texts]


BYTES = TokenSource("bytes", encode_many)


class Place:
    """Indexing jobs and all that they reported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.is_engine_busy = False
        self.reports: list[FolderReport] = []
        self.jobs = IndexingJobs(self.reports.append, lambda: self.is_engine_busy)

    def folder(self, name: str = "a") -> Path:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        (folder / "code.py").write_text(CODE)
        return folder

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110 - conditions of other threads, which set no event
                await asyncio.sleep(0.005)

    async def until_ready(self, num_files: int = 1) -> None:
        await self.until(
            lambda: [(r.state, r.num_files) for r in self.jobs.reports()] == [("ready", num_files)]
        )


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path / "index"))
    place = Place(tmp_path)
    yield place
    assert place.jobs.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("index ")]


async def test_nothing_is_indexed_before_the_tokens_are_known(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_folders({folder: ENABLED})
    assert [report.state for report in place.jobs.reports()] == ["waiting"]
    assert place.jobs.index_of(folder) is None
    place.jobs.set_tokens(BYTES)
    await place.until_ready()
    index = place.jobs.index_of(folder)
    assert index
    assert index.paths == ["code.py"]


async def test_another_tokenizer_builds_another_index(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    doubled = TokenSource("doubled", lambda texts: [[2 * i for i in ids] for ids in encode_many(texts)])
    before = place.jobs.index_of(folder)
    place.jobs.set_tokens(doubled)
    await place.until(lambda: place.jobs.index_of(folder) not in {None, before})
    await place.until_ready()


async def test_a_disabled_folder_has_no_index_and_changed_rules_make_a_new_one(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: IndexSettings(enabled=False)})
    assert place.jobs.reports() == []
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.set_folders({folder: IndexSettings(exclude=("code.py",))})
    await place.until_ready(num_files=0)


async def test_a_buffer_is_shown_once_when_typing_pauses_and_hidden_when_it_is_closed(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    lines = ["first\r\n"]
    path = folder / "open.py"
    for number in range(20):
        lines.append(f"line{number}\r\n")
        place.jobs.document_changed(folder, path, lines)
        await asyncio.sleep(BUFFER_QUIET_S / 20)
        assert place.jobs.reports()[0].num_files == 1
    await place.until_ready(num_files=2)
    index = place.jobs.index_of(folder)
    assert index
    found = index.lookup(list(b"line18\n"), max_nodes=4, max_depth=4)
    assert found.match_length >= len("line18\n")
    place.jobs.document_closed(folder, path)
    await place.until_ready(num_files=1)


async def test_a_buffer_that_is_larger_than_any_indexed_file_is_not_shown(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.document_changed(folder, folder / "open.py", ["x = 1\n"])
    await place.until_ready(num_files=2)
    place.jobs.document_changed(folder, folder / "open.py", ["x = 1\n"] * 200_000)
    await place.until_ready(num_files=1)


async def test_a_document_closed_at_once_is_never_shown(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.document_changed(folder, folder / "open.py", ["x = 1\n"])
    place.jobs.document_closed(folder, folder / "open.py")
    await asyncio.sleep(2 * BUFFER_QUIET_S)
    assert place.jobs.reports()[0].num_files == 1


async def test_indexing_makes_way_for_a_completion_but_not_forever(place: Place) -> None:
    folder = place.folder()
    place.is_engine_busy = True
    begin = time.monotonic()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    assert MAX_PAUSE_S <= time.monotonic() - begin < 10 * MAX_PAUSE_S


async def test_what_git_writes_is_not_followed(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    num_reports = len(place.reports)
    place.jobs.files_changed([folder / ".git" / "index.lock", place.root / "elsewhere.py"])
    await asyncio.sleep(0.1)
    assert len(place.reports) == num_reports


async def test_a_tokenizer_that_fails_is_a_report_and_the_folder_lives_on(place: Place) -> None:
    folder = place.folder()

    def fail(_texts: list[str]) -> list[list[int]]:
        raise ValueError("no tokens")

    place.jobs.set_tokens(TokenSource("broken", fail))
    place.jobs.set_folders({folder: ENABLED})
    await place.until(lambda: place.jobs.reports()[0].state == "error")
    assert "no tokens" in place.jobs.reports()[0].problem
    place.jobs.set_tokens(BYTES)
    await place.until_ready()
