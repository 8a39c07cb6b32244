"""What was written where something had been foretold is counted on this machine, and no text with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lsp_server.workspace.learned import read_learned

if TYPE_CHECKING:
    from tests.e2e.conftest import StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINES = ["    first = second_name\n", "    third = fourth_name\n"]


@pytest.mark.parametrize("is_learning", [True, False])
async def test_a_window_learns_from_the_lines_that_it_leaves(
    start_editor: StartEditor, tmp_path: Path, tiny_model_dir: Path, *, is_learning: bool
) -> None:
    settings = {"eagerness": 0.9, "learnFromUse": is_learning}
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    async with start_editor(tmp_path, settings, env=env) as editor:
        await editor.until_state("ready")
        uri = editor.open("a.py", "def add(a, b):\n")
        for number, line in enumerate([*LINES, "    pass\n"]):
            await editor.suggest(uri, number + 1, 0)
            editor.type(uri, number + 1, 0, line)
        await editor.stats()
    told = list((tmp_path / "state").rglob("learned.json"))
    assert len(told) == is_learning
    for path in told:
        assert 1 <= read_learned(path)[str(tiny_model_dir)].num_tokens < 64
        assert "name" not in path.read_text(encoding="ascii").replace(str(tiny_model_dir), "")
