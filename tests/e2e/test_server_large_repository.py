"""A repository of 5,000 files is indexed with visible progress, and completions work meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUM_FILES = 5_000
LINES = "def handle_{0}(request, limit={0}):\n    value = request.get('{0}')\n    return value or limit\n\n\n"


def write_repository(root: Path) -> None:
    for number in range(NUM_FILES):
        folder = root / f"part{number % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"module{number}.py").write_text(
            "".join(LINES.format(number * 10 + at) for at in range(10))
        )


async def test_completions_work_while_a_large_repository_is_indexed(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    large.mkdir()
    write_repository(large)
    num_meanwhile = 0
    async with start_editor(small) as editor:
        # The engine is there first, so that it does not depend on the machine which of the two waits.
        await editor.until_state("ready")
        uri = (large / "new.py").as_uri()
        editor.client.open(uri, "def handle(request):\n    \n", language="python")
        added = {"uri": large.as_uri(), "name": "large"}
        editor.client.notify(
            "workspace/didChangeWorkspaceFolders", {"event": {"added": [added], "removed": []}}
        )
        for column in range(1_000):
            editor.type(uri, 1, 4 + column, "valu"[column % 4])
            await editor.suggest(uri, 1, 5 + column)
            index = (await editor.stats())["index"][-1]
            if index["state"] == "ready" and index["num_files"] >= NUM_FILES:
                break
            num_meanwhile += (await editor.why(uri, 1, 5 + column))["stats"]["num_prompt_tokens"] > 0
        num_buffers = index["num_files"] - NUM_FILES
        assert num_buffers in {0, 1}  # the open buffer counts from 300 ms after its last change on
        percentages = [
            message["value"]["percentage"]
            for message in editor.messages("$/progress")
            if message["value"].get("percentage")
        ]
    assert num_meanwhile >= 5
    assert len(set(percentages)) >= 5
