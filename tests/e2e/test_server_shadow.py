"""The setting `shadow`: answers are checked against plain decoding in idle time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import StartEditor

TEXT = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    \n"


@pytest.mark.parametrize(("share", "num_checked"), [(1, 3), (0, 0)])
async def test_the_statistics_count_what_was_checked(
    start_editor: StartEditor, tmp_path: Path, share: float, num_checked: int
) -> None:
    async with start_editor(tmp_path, {"shadow": share}, own=True) as editor:
        stats: Any = await editor.until_state("ready")
        assert stats["shadow"] == {"num_checked": 0, "num_different": 0}
        uri = editor.open("shadow.py", TEXT)
        for line in (1, 3, 5):
            await editor.suggest(uri, line, 0)
        stats = await editor.until(lambda stats: stats["shadow"]["num_checked"] >= num_checked)
        assert stats["shadow"] == {"num_checked": num_checked, "num_different": 0}
