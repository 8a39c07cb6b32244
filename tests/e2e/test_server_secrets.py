"""Secrets are stored nowhere: not in the index, the log, the statistics, nor in drafts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from completion_engine.prompting.tokenizer import load_tokenizer
from ngram_cache import snapshot
from tests.quality.redaction import Example, corpus

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

CODE = "def total(first, second):\n    return first + second\n\n\n"
TELLTALE = "quetzal-umbra-7731"


@pytest.mark.parametrize(
    "name",
    [".env", "conf/.env.local", "credentials.json", ".ssh/config", "%2Eenv", "certs/server.key", ".netrc"],
)
async def test_a_buffer_with_a_secret_name_gets_no_completion_and_a_reason(editor: Editor, name: str) -> None:
    await editor.until_state("ready")
    before = (await editor.stats())["tokens"]
    uri = f"{editor.root.as_uri()}/{name}"
    editor.client.open(uri, CODE + "def again(first", language="python")
    for kind in (1, 2):
        assert await editor.suggest(uri, 4, 15, kind) == []
    why = await editor.why(uri, 4, 15)
    assert (why["triggered"], why["shown"], why["rule"]) == (False, False, "secret-file")
    assert "secrets" in why["reason"]
    assert (await editor.stats())["tokens"] == before


async def test_a_name_that_is_on_no_disk_counts_as_well(editor: Editor) -> None:
    await editor.until_state("ready")
    for uri in (
        "untitled:.env",
        "vscode-vfs://host/repository/.env",
        f"git:/x/.env?{quote(json.dumps({'a': 1}))}",
    ):
        editor.client.open(uri, CODE, language="python")
        assert (await editor.why(uri, 1, 4))["rule"] == "secret-file"


async def test_the_status_line_says_why_nothing_comes(editor: Editor) -> None:
    await editor.until_state("ready")
    uri = editor.open(".env.test", "A=1\n", language="plaintext")
    editor.client.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
    async with asyncio.timeout(60):
        while not any("secrets" in shown["message"] for shown in editor.messages("didChangeStatus")):
            await editor.stats()


async def test_a_repository_of_secrets_leaves_none_in_index_log_and_statistics(
    start_editor: StartEditor, tiny_model_dir: Path, tmp_path: Path
) -> None:
    examples = [example for example in corpus() if not example.leaks()]
    root, saved = tmp_path / "repository", tmp_path / "index"
    root.mkdir()
    for number, example in enumerate(examples):
        (root / f"file{number}.py").write_text(example.text, encoding="utf-8")
    (root / ".env").write_text(f"ANYTHING={TELLTALE}\n", encoding="utf-8")
    seen: list[str] = []
    async with start_editor(root, env={"SLIPSTREAM_INDEX_DIR": str(saved)}) as editor:
        await editor.until_state("ready")
        await editor.until(lambda stats: stats["index"] and stats["index"][0]["state"] == "ready")
        secret = editor.open(".env", f"ANYTHING={TELLTALE}\n", language="plaintext")
        await editor.suggest(secret, 0, 9)
        bad: Any = {"uri": 3, "languageId": [], "version": TELLTALE, "text": {"x": TELLTALE}}
        editor.client.notify("textDocument/didOpen", {"textDocument": bad})
        editor.client.notify(
            "textDocument/didChange", {"textDocument": {"uri": secret}, "contentChanges": TELLTALE}
        )
        for example in examples[::40]:
            uri = editor.open(f"open{example.form}.py", example.text)
            await editor.suggest(uri, 2, 0)
        other = editor.open("other.py", "ANYTHING=")
        await editor.suggest(other, 0, 9)
        seen.append(json.dumps(await editor.why(other, 0, 9)))
        seen.append(json.dumps(await editor.why(secret, 0, 9)))
        seen.append(json.dumps(await editor.stats()))
        seen += [json.dumps(params) for _, params in editor.heard]
        await editor.client.shutdown()
        seen += editor.client.stderr_lines
    assert TELLTALE not in "\n".join(seen)
    assert_none_in(saved, root, tiny_model_dir, examples)


def assert_none_in(saved: Path, root: Path, model: Path, examples: list[Example]) -> None:
    """No secret in the tokens that are on the disk, written out again."""
    tokenizer = load_tokenizer(model)
    (file,) = [path for path in saved.rglob("*") if path.is_file() and path.stat().st_size]
    header, _ = snapshot._read_header(file.read_bytes())
    loaded = snapshot.load(file, fingerprint=header["fingerprint"], root=str(root.resolve()))
    texts: dict[str, str] = {}
    for segment in loaded.stored.segments:
        for number, start, length in zip(segment.documents, segment.starts, segment.lengths, strict=True):
            tokens = (segment.words()[start : start + length][::-1].astype(int) - 1).tolist()
            texts[loaded.stored.paths[number]] = tokenizer.spell(tokens).decode(errors="replace")
    assert len(texts) > 0.9 * len(examples)  # examples with a private key are not indexed
    assert all("after = 2" in text for text in texts.values())
    leaked = []
    for number, example in enumerate(examples):
        length = min(8, len(example.secret))
        windows = {example.secret[at : at + length] for at in range(len(example.secret) - length + 1)}
        if any(window in texts.get(f"file{number}.py", "") for window in windows):
            leaked.append(example)
    assert not leaked
    assert TELLTALE.encode() not in file.read_bytes()
    assert not any(TELLTALE in text for text in texts.values())
