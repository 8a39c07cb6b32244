"""Folders are read side by side; for each, one reading runs and one waits, however many ask."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsp_server.workspace.open_files import FolderReadings

HANGS, ANSWERS = Path("/hangs"), Path("/answers")


class Disk:
    def __init__(self) -> None:
        self.begun: list[Path] = []
        self.has_begun, self.may_answer = asyncio.Event(), asyncio.Event()

    async def read(self, folder: Path) -> None:
        self.begun.append(folder)
        self.has_begun.set()
        if folder == HANGS:
            await self.may_answer.wait()


async def test_a_folder_that_hangs_keeps_no_other_waiting() -> None:
    readings, disk = FolderReadings(), Disk()
    hanging = readings.begin(HANGS, disk.read)
    await readings.begin(ANSWERS, disk.read)
    assert not hanging.done()
    disk.may_answer.set()
    await hanging


async def test_news_while_a_folder_is_read_lead_to_one_more_reading() -> None:
    readings, disk = FolderReadings(), Disk()
    first = readings.begin(HANGS, disk.read)
    await disk.has_begun.wait()
    later = {readings.begin(HANGS, disk.read) for _ in range(100)}
    assert len(later) == 1
    disk.may_answer.set()
    await asyncio.gather(first, *later)
    assert disk.begun == [HANGS] * 2
    await readings.begin(HANGS, disk.read)
    assert disk.begun == [HANGS] * 3


async def test_a_reading_that_fails_is_not_the_last() -> None:
    readings, disk = FolderReadings(), Disk()

    async def fails(_folder: Path) -> None:
        raise OSError

    failing = readings.begin(ANSWERS, fails)
    waiting = readings.begin(ANSWERS, disk.read)
    await asyncio.wait([failing, waiting])
    assert isinstance(failing.exception(), OSError)
    await waiting
    await readings.begin(ANSWERS, disk.read)
    assert disk.begun == [ANSWERS] * 2
