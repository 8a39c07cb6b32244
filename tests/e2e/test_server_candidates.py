"""A choice of suggestions where the user asks for one, each known by its own id."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

INVOKED, AUTOMATIC = 1, 2
TEXT = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    \n"
PLACE = (6, 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def choosing(
    start_editor: StartEditor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Editor]:
    async with start_editor(tmp_path_factory.mktemp("repository")) as editor:
        await editor.until_state("ready")
        yield editor


def texts(items: list[Any]) -> list[str]:
    return [item["insertText"] for item in items]


def ids(items: list[Any]) -> list[str]:
    return [item["command"]["arguments"][0] for item in items]


async def test_who_asks_gets_a_choice_and_who_types_gets_its_first(choosing: Editor) -> None:
    uri = choosing.open("choice.py", TEXT)
    typed = await choosing.suggest(uri, *PLACE, AUTOMATIC)
    asked = await choosing.suggest(uri, *PLACE, INVOKED)
    assert len(typed) == 1
    assert len(set(texts(asked))) == len(asked) == 3
    assert len(set(ids(asked))) == 3
    assert asked[0]["insertText"] == typed[0]["insertText"]
    assert texts(await choosing.suggest(uri, *PLACE, AUTOMATIC)) == texts(typed)


async def test_each_is_explained_by_its_id_and_the_place_by_the_first(choosing: Editor) -> None:
    uri = choosing.open("explained.py", TEXT)
    items = await choosing.suggest(uri, *PLACE, INVOKED)
    answers = [await choosing.client.request("slipstream/why", {"id": name}) for name in ids(items)]
    assert [why["text"] for why in answers] == texts(items)
    for why in answers:
        assert "".join(piece["text"] for piece in why["pieces"]) == why["text"]
        assert why["stats"]["num_forwards"] >= 0
    assert await choosing.why(uri, *PLACE) == answers[0]


async def test_the_one_that_is_taken_counts(choosing: Editor) -> None:
    uri = choosing.open("taken.py", TEXT)
    items = await choosing.suggest(uri, *PLACE, INVOKED)
    before = (await choosing.stats())["counters"]
    choosing.client.notify(
        "textDocument/didPartiallyAcceptCompletion", {"item": items[2], "acceptedLength": 2}
    )
    await choosing.client.request("workspace/executeCommand", items[2]["command"])
    after = (await choosing.stats())["counters"]
    assert after["num_accepted_chars"] - before["num_accepted_chars"] == len(items[2]["insertText"])
    assert after["num_answered"] == before["num_answered"]


async def test_a_client_without_inline_completion_gets_a_choice_behind_no_word(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    """After a word typing may have caused the request, which must not cost several answers."""
    async with start_editor(tmp_path, capabilities={"textDocument": {}}) as editor:
        await editor.until_state("ready")

        async def items(name: str, typed: str) -> list[Any]:
            position = {"line": PLACE[0], "character": len(typed)}
            place = {"textDocument": {"uri": editor.open(name, TEXT + typed)}, "position": position}
            answer = await editor.client.request(
                "textDocument/completion", {**place, "context": {"triggerKind": INVOKED}}
            )
            found: list[Any] = answer["items"]
            return found

        several = await items("several.py", "")
        assert len({item["label"] for item in several}) > 1
        assert sorted(several, key=lambda item: item["sortText"]) == several
        assert len(await items("word.py", "ad")) <= 1


@pytest.mark.real_model
async def test_the_default_target_offers_different_lines_and_says_where_they_were_read(
    start_editor: StartEditor, real_model_dir: Path, tmp_path: Path
) -> None:
    known = tmp_path / "settings.py"
    known.write_text(
        "import json\n\n\ndef read(path):\n"
        '    with open(path, "r", encoding="utf-8") as file:\n        return json.load(file)\n',
        encoding="utf-8",
    )
    settings = {"target": str(real_model_dir)}
    async with start_editor(tmp_path, settings) as editor:
        await editor.until_state("ready")
        await editor.until(lambda stats: stats["index"][0]["num_files"] == 1)
        uri = editor.open("new.py", "def read_settings(path):\n    with open(pa\n")
        items = await editor.suggest(uri, 1, len("    with open(pa"), INVOKED)
        assert len(set(texts(items))) == 3
        why = await editor.client.request("slipstream/why", {"id": ids(items)[0]})
        read = [(piece["file"], piece["line"]) for piece in why["pieces"] if piece["source"] == "ngram"]
        assert (str(known), 4) in read
