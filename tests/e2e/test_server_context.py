"""Definitions of other files go in front of a document's prompt, once computed in idle time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

SHELF = 'def put_on_shelf(book: str, place: int, *, is_heavy: bool = False) -> bool:\n    """Put it."""\n'
TIDY = "from shelf import put_on_shelf\n\n\ndef tidy(book):\n    put_on_shelf(\n"
LINE, COLUMN = 4, len("    put_on_shelf(")
NUM_MORE = 20  # tokens that a definition takes at least, and what is typed does not
PATIENCE_S = 120.0
REST_S = 0.6


class Typist:
    """A user who types letters after a name that another file defines."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.uri = editor.open("tidy.py", TIDY)
        self.num_typed = 0

    async def num_prompt_tokens(self) -> int:
        """Length of the prompt after one more letter."""
        self.editor.type(self.uri, LINE, COLUMN + self.num_typed, "x")
        self.num_typed += 1
        before = (await self.editor.stats())["tokens"].get("num_prompt_tokens", 0)
        await self.editor.suggest(self.uri, LINE, COLUMN + self.num_typed)
        return int((await self.editor.stats())["tokens"]["num_prompt_tokens"] - before)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    (root / "shelf.py").write_text(SHELF)
    (root / "tidy.py").write_text(TIDY)
    return root


async def until_indexed(editor: Editor, num_files: int) -> None:
    await editor.until_state("ready")
    await editor.until(lambda stats: [index["num_files"] for index in stats["index"]] == [num_files])


async def test_a_definition_comes_when_somebody_rests_and_goes_with_its_file(
    start_editor: StartEditor, repository: Path
) -> None:
    async with start_editor(repository) as editor:
        await until_indexed(editor, 2)
        typist = Typist(editor)
        first = await typist.num_prompt_tokens()
        async with asyncio.timeout(PATIENCE_S):
            while await typist.num_prompt_tokens() < first + NUM_MORE:  # noqa: ASYNC110 - another process
                await asyncio.sleep(REST_S)
        shelf = repository / "shelf.py"
        shelf.unlink()
        changes = [{"uri": shelf.as_uri(), "type": 3}]
        editor.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        await until_indexed(editor, 1)
        assert await typist.num_prompt_tokens() < first + NUM_MORE


async def test_a_request_at_the_same_place_gets_what_the_index_knows_by_now(
    start_editor: StartEditor, repository: Path
) -> None:
    """The first one comes before there is an index; nothing is typed after it."""
    async with start_editor(repository) as editor:
        uri = editor.open("tidy.py", TIDY)
        asked: list[int] = []

        async def num_prompt_tokens() -> int:
            asked.append((await editor.stats())["tokens"].get("num_prompt_tokens", 0))
            await editor.suggest(uri, LINE, COLUMN)
            return int((await editor.stats())["tokens"]["num_prompt_tokens"] - asked[-1])

        await editor.until_state("ready")
        first = await num_prompt_tokens()
        async with asyncio.timeout(PATIENCE_S):
            while await num_prompt_tokens() < first + NUM_MORE:  # noqa: ASYNC110 - another process
                await asyncio.sleep(REST_S)


async def test_where_the_setting_is_off_nothing_comes(start_editor: StartEditor, repository: Path) -> None:
    """Until another window of the same process, where it is on, has its context."""
    async with start_editor(repository, {"context": False}) as off, start_editor(repository) as on:
        typists = []
        for editor in (off, on):
            await until_indexed(editor, 2)
            typists.append(Typist(editor))
        first = [await typist.num_prompt_tokens() for typist in typists]
        assert first[0] == first[1]
        async with asyncio.timeout(PATIENCE_S):
            while await typists[1].num_prompt_tokens() < first[1] + NUM_MORE:
                assert await typists[0].num_prompt_tokens() < first[0] + NUM_MORE
                await asyncio.sleep(REST_S)
