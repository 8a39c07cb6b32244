"""A notebook in VS Code: real workbench, real server, real model."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.editors import recorder
from tests.editors.vscode.window import Window
from tests.editors.vscode.workbench import Workbench

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(1200)]

ABOVE = "def quadrilateral_perimeter(sides):\n    return sum(sides)"


def cell(source: str) -> dict[str, Any]:
    """A code cell of a notebook's file."""
    lines = source.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines}


def test_a_cell_is_completed_with_a_name_of_the_cell_above(
    the_workbench: Workbench,
    open_window: Callable[..., AbstractContextManager[Window]],
    tmp_path: Path,
) -> None:
    notebook = {
        "cells": [cell(ABOVE), cell("")],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "sides.ipynb").write_text(json.dumps(notebook))
    with open_window(the_workbench, tmp_path) as window:
        window.wait_until_ready()
        window.open_notebook(tmp_path / "sides.ipynb", cell=1)
        window.type("print(quad")
        assert "print(quadrilateral_perimeter(" in window.preview()
    said = recorder.read(recorder.recordings(the_workbench.profile / "recordings")[-1])
    assert any(heard.message.get("method") == "notebookDocument/didOpen" for heard in said)
