"""Faults in settings or models are reported clearly, harm nothing else, and can be mended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    \n"


def shown(editor: Editor) -> list[str]:
    return [params["message"] for params in editor.messages("window/showMessage")]


async def test_malformed_settings_are_named_one_by_one_and_the_rest_holds(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    (tmp_path / ".slipstream.toml").write_text('target = "evil"\nmaxTokens = 5\n')
    config = tmp_path / "config" / "slipstream"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("maxTokens = = 3\n")
    bad = {"deadlineMs": "soon", "multilines": "never", "index": {"maxFiles": -1}}
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    async with start_editor(tmp_path, bad, env=env) as editor:
        await editor.until_state("ready")
        said = "\n".join(shown(editor))
        assert 'deadlineMs must be a number, 0 or more, not "soon". Slipstream uses 100.' in said
        assert "Did you mean multiline?" in said
        assert "index.maxFiles must be a whole number from 0 to 1,000,000, not -1." in said
        assert "a repository may not set target" in said
        assert "config.toml: until these rules can be read, no file is indexed or sent to servers." in said
        assert len(shown(editor)) == len(set(shown(editor)))
        uri = editor.open("a.py", TEXT)
        assert 0 < (await editor.why(uri, 6, 0))["stats"]["num_tokens"] <= 5


@pytest.mark.parametrize("fault", ["truncated", "no tokenizer", "missing", "unknown id"])
async def test_a_broken_model_is_an_error_with_advice_and_another_one_heals_it(
    start_editor: StartEditor, tmp_path: Path, tiny_model_dir: Path, fault: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny_model_dir, broken)
    weights = broken / "model.safetensors"
    match fault:
        case "truncated":
            weights.write_bytes(weights.read_bytes()[:-1000])
        case "no tokenizer":
            (broken / "tokenizer.json").write_text("{")
        case "missing":
            weights.unlink()
    target = "qwen2.5-coder-0.5" if fault == "unknown id" else str(broken)
    async with start_editor(tmp_path, {"target": target}) as editor:
        stats = await editor.until_state("error", "ready")
        assert stats["state"] == "error"
        assert stats["message"]
        assert stats["advice"]
        assert any(stats["message"] in text for text in shown(editor))
        assert editor.messages("didChangeStatus")[-1]["kind"] == "Error"
        uri = editor.open("a.py", TEXT)
        assert await editor.suggest(uri, 6, 0) == []
        assert (await editor.why(uri, 6, 0))["rule"] == "engine-error"
        editor.client.configure(
            {"target": str(tiny_model_dir), "device": "cpu", "deadlineMs": 0, "eagerness": 1}
        )
        await editor.until_state("ready")
        assert await editor.suggest(uri, 6, 0)
        assert editor.messages("didChangeStatus")[-1]["kind"] == "Normal"


async def test_while_the_model_loads_completions_are_answered_empty_at_once(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    async with start_editor(tmp_path, own=True) as editor:
        uri = editor.open("a.py", TEXT)
        assert await editor.suggest(uri, 6, 0) == []
        assert (await editor.why(uri, 6, 0))["rule"] in {"unread-folder", "engine-loading", ""}
