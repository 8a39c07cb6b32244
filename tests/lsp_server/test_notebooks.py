"""A notebook's cells beside an index: what each of them lacks is no reason to doubt what is written there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from completion_engine.request import CompletionRequest
from completion_engine.stats import Completion
from lsp_server.engine.engine_types import Load, OnTokens
from lsp_server.workspace.settings import Settings
from tests.windows import ScriptedEngine, load_scripted, windows_on


class Noting(ScriptedEngine):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[CompletionRequest] = []

    def complete(self, request: CompletionRequest) -> Completion:
        self.asked.append(request)
        return super().complete(request)


@pytest.mark.parametrize(
    ("uri", "has_index"),
    [
        ("file://{root}/loans.py", True),
        ("untitled:{root}/new.py", True),
        ("vscode-notebook-cell:{root}/loans.ipynb#W0sZmlsZQ%3D%3D", False),
        ("untitled:Untitled-1", False),
    ],
)
async def test_who_knows_a_folder_s_names(tmp_path: Path, uri: str, *, has_index: bool) -> None:
    engine = Noting()

    def load_for(settings: Settings, on_tokens: OnTokens) -> Load:
        load = load_scripted(settings, on_tokens)

        def noting(*arguments: Any) -> Noting:
            load(*arguments)
            return engine

        return noting

    (tmp_path / "loans.py").write_text("def lend(book):\n    return book\n")
    uri = uri.format(root=tmp_path)
    async with windows_on(load_for, linger_s=0.0) as windows:
        window = await windows.open()
        await window.begin(tmp_path)
        while (await window.request("slipstream/stats"))["index"][0]["state"] != "ready":
            pass
        window.open(uri, "x = ")
        assert await window.suggest(uri, 0, 4) == ["x = !"]
        await window.end()
    assert [request.index is not None for request in engine.asked] == [has_index]
