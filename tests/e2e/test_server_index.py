"""The index follows the folder: saves, deletions, open buffers, ignore rules, and a watch of our own."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Editor, StartEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

Repository = tuple[Path, Path, dict[str, str]]

CREATED, CHANGED, DELETED = 1, 2, 3
CODE = "def fresh(value):\n    return value * 2\n"


def tell(editor: Editor, path: Path, kind: int) -> None:
    changes = [{"uri": path.as_uri(), "type": kind}]
    editor.client.notify("workspace/didChangeWatchedFiles", {"changes": changes})


async def ready_index(editor: Editor) -> dict[str, Any]:
    stats = await editor.until(lambda stats: stats["index"] and stats["index"][0]["state"] == "ready")
    index: dict[str, Any] = stats["index"][0]
    return index


async def until_num_files(editor: Editor, num_files: int) -> None:
    await editor.until(lambda stats: [index["num_files"] for index in stats["index"]] == [num_files])


async def test_files_that_come_and_go_are_followed(editor: Editor) -> None:
    before = await ready_index(editor)
    assert before["folder"] == str(editor.root)
    path = editor.root / "fresh.py"
    path.write_text(CODE)
    tell(editor, path, CREATED)
    await until_num_files(editor, before["num_files"] + 1)
    path.unlink()
    tell(editor, path, DELETED)
    await until_num_files(editor, before["num_files"])


async def test_a_newly_ignored_file_is_forgotten(editor: Editor) -> None:
    before = await ready_index(editor)
    path, rules = editor.root / "generated.py", editor.root / ".ignore"
    path.write_text(CODE)
    tell(editor, path, CREATED)
    await until_num_files(editor, before["num_files"] + 1)
    rules.write_text("generated.py\n")
    tell(editor, rules, CREATED)
    await until_num_files(editor, before["num_files"])


async def test_open_buffers_count_until_they_are_closed_but_never_secret_ones(editor: Editor) -> None:
    before = await ready_index(editor)
    secret = editor.open(".env", "API_KEY=1234\n", language="plaintext")
    uri = editor.open("buffer.py", CODE * 20)
    await until_num_files(editor, before["num_files"] + 1)
    editor.client.close(uri)
    await until_num_files(editor, before["num_files"])
    editor.client.close(secret)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A folder with one file, the place of its index, and the environment with that place."""
    root, saved = tmp_path / "root", tmp_path / "saved"
    root.mkdir()
    (root / "code.py").write_text(CODE)
    return root, saved, {"SLIPSTREAM_INDEX_DIR": str(saved)}


async def test_a_purge_forgets_the_index_on_disk_and_here_and_builds_it_again(
    start_editor: StartEditor, repository: Repository
) -> None:
    root, saved, env = repository
    async with start_editor(root, env=env) as editor:
        await until_num_files(editor, 1)
        await ready_index(editor)
        (before,) = saved.glob("*-*")
        written_ns = before.stat().st_mtime_ns
        purge = {"command": "slipstream.purgeIndex", "arguments": []}
        assert await editor.client.request("workspace/executeCommand", purge) == 1
        await until_num_files(editor, 1)
        await ready_index(editor)
        (after,) = saved.glob("*-*")
        assert after.stat().st_mtime_ns > written_ns


async def test_a_purge_forgets_what_is_saved_of_a_folder_that_is_not_indexed_now(
    start_editor: StartEditor, repository: Repository
) -> None:
    root, saved, env = repository
    async with start_editor(root, env=env) as editor:
        await ready_index(editor)
    assert list(saved.glob("*-*"))
    async with start_editor(root, {"index": {"enabled": False}}, env=env) as editor:
        await editor.until_state("ready")
        await editor.client.request("workspace/executeCommand", {"command": "slipstream.purgeIndex"})
        assert not list(saved.glob("*-*"))


async def test_without_a_watch_by_the_editor_the_server_watches(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    async with start_editor(tmp_path, capabilities={"workspace": {"workspaceFolders": True}}) as editor:
        assert (await ready_index(editor))["num_files"] == 0
        (tmp_path / "fresh.py").write_text(CODE)
        await until_num_files(editor, 1)


async def test_folders_may_come_and_go(start_editor: StartEditor, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "code.py").write_text(CODE)

    def change(editor: Editor, **event: list[Path]) -> None:
        folders = {
            name: [{"uri": path.as_uri(), "name": path.name} for path in event.get(name, [])]
            for name in ("added", "removed")
        }
        editor.client.notify("workspace/didChangeWorkspaceFolders", {"event": folders})

    def folders(stats: Any) -> dict[str, int]:
        return {index["folder"]: index["num_files"] for index in stats["index"]}

    async with start_editor(first) as editor:
        await editor.until(lambda stats: folders(stats) == {str(first): 1})
        change(editor, added=[second])
        await editor.until(lambda stats: folders(stats) == {str(first): 1, str(second): 1})
        change(editor, removed=[first])
        await editor.until(lambda stats: folders(stats) == {str(second): 1})


async def test_a_repository_of_traps_is_indexed_as_far_as_it_can_be(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    (tmp_path / "good.py").write_text(CODE)
    (tmp_path / "latin.py").write_bytes("# caf\u00e9".encode("latin-1") * 50)
    (tmp_path / "binary.py").write_bytes(os.urandom(5000))
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(200 << 20)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    os.mkfifo(tmp_path / "pipe.py")
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    async with start_editor(tmp_path) as editor:
        await until_num_files(editor, 1)
        await editor.until_state("ready")
        uri = editor.open("latin.py", "x = 1\n")
        assert isinstance(await editor.suggest(uri, 1, 0), list)
    closed.chmod(stat.S_IRWXU)


async def test_a_folder_that_is_not_there_is_a_message(start_editor: StartEditor, tmp_path: Path) -> None:
    async with start_editor(tmp_path / "gone") as editor:
        index = await ready_index(editor)
        assert "cannot be read" in index["problem"]
        assert any(
            "cannot be read" in message["message"] for message in editor.messages("window/showMessage")
        )


async def test_a_corrupt_saved_index_is_built_anew_with_a_message(
    start_editor: StartEditor, repository: Repository
) -> None:
    root, saved, env = repository
    async with start_editor(root, env=env) as editor:
        await until_num_files(editor, 1)
        await ready_index(editor)
    (file,) = [path for path in saved.rglob("*") if path.is_file() and path.stat().st_size]
    file.write_bytes(file.read_bytes()[:-7] + b"garbage")
    async with start_editor(root, env=env) as editor:
        index = await ready_index(editor)
        assert index["num_files"] == 1
        assert "builds the saved index again" in index["problem"]
