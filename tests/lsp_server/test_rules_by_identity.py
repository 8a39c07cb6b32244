"""A repository's rules hold however one of its files is reached: the table of paths, and what each gets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from lsp_server.workspace import leave_rules, open_files
from tests.hosts import PATIENCE_S
from tests.remote_server import RemoteServer
from tests.waiting import until
from tests.windows import insertion, load_beside_servers, one_window, windows_on

FILES = {
    "project/.git/HEAD": "ref: refs/heads/main\n",
    "project/.gitignore": "ignored/\n",
    "project/.slipstream.toml": 'maxTokens = 60\n[index]\nexclude = ["excluded/", "sub/private/"]\n',
    "project/marker.py": "MARKER = 1\n",
    "project/open.py": "OPEN = 1\n",
    "project/ignored/x.py": "IGNORED = 1\n",
    "project/excluded/x.py": "EXCLUDED = 1\n",
    "project/excluded/x.ipynb": "{}\n",
    "project/sub/marker.py": "MARKER = 2\n",
    "project/sub/open.py": "SUB = 1\n",
    "project/sub/private/x.py": "PRIVATE = 1\n",
    "project/.env": "TOKEN=1\n",
    "worktree/.git": "gitdir: ../project/.git/worktrees/w\n",
    "worktree/.slipstream.toml": 'maxTokens = 60\n[index]\nexclude = ["excluded/"]\n',
    "worktree/excluded/x.py": "EXCLUDED = 1\n",
    "plain/.slipstream.toml": 'maxTokens = 60\n[index]\nexclude = ["excluded/"]\n',
    "plain/open.py": "OPEN = 1\n",
    "plain/excluded/deep/x.py": "EXCLUDED = 1\n",
    "project/.git/worktrees/w/HEAD": "ref: refs/heads/other\n",
    "project/.git/worktrees/w/commondir": "../..\n",
    "project/.git/info/exclude": "local.py\n",
    "worktree/local.py": "LOCAL = 1\n",
    "other/marker.py": "MARKER = 3\n",
    "other/rules/.slipstream.toml": "",
}
LINKS = {
    "link": "project",
    "short": "project/excluded",
    "file.py": "project/excluded/x.py",
    "ignored.py": "project/ignored/x.py",
    "open_file.py": "project/open.py",
    "notes.txt": "project/.env",
    "other/vendor": "project/excluded",
    "project/shortcut": "project/ignored",
    "first": "second",
    "second": "project",
}


@dataclass(frozen=True)
class Row:
    """A file that is reached by a path, with a folder open or none, and what holds for it."""

    kind: str
    folder: str
    path: str
    leaves: bool
    is_shared: bool = False
    rule: str = ""
    scheme: str = "file://"
    has_settings: bool = True


PATIENT = {"target": "tiny", "maxTokens": 90, "deadlineMs": 30_000, "patienceMs": 30_000}
CELL = "vscode-notebook-cell:"
TABLE = [
    Row("its own path", "project", "project/open.py", leaves=True, is_shared=True),
    Row("its own path, ignored", "project", "project/ignored/x.py", leaves=False),
    Row("its own path, excluded", "project", "project/excluded/x.py", leaves=False),
    Row("link to the open folder", "project", "link/open.py", leaves=True, is_shared=True),
    Row("link to the open folder, ignored", "project", "link/ignored/x.py", leaves=False),
    Row("link to the open folder, excluded", "project", "link/excluded/x.py", leaves=False),
    Row("link to a link, excluded", "project", "first/excluded/x.py", leaves=False),
    Row("the open folder is a link", "link", "project/open.py", leaves=True, is_shared=True),
    Row("the open folder is a link, ignored", "link", "project/ignored/x.py", leaves=False),
    Row("the open folder is a link, excluded", "link", "project/excluded/x.py", leaves=False),
    Row("both are links, excluded", "first", "link/excluded/x.py", leaves=False),
    Row("both are one link", "link", "link/open.py", leaves=True, is_shared=True),
    Row("link to a file of the open folder", "project", "open_file.py", leaves=True, is_shared=True),
    Row("link to an excluded file", "project", "file.py", leaves=False),
    Row("link to an ignored file", "project", "ignored.py", leaves=False),
    Row("link to an excluded folder", "project", "short/x.py", leaves=False),
    Row("link inside of the folder", "project", "project/shortcut/x.py", leaves=False),
    Row("link out of another open folder", "other", "other/vendor/x.py", leaves=False),
    Row("up and down", "project", "project/sub/../excluded/x.py", leaves=False),
    Row("two slashes", "project", "/project/excluded/x.py", leaves=False),
    Row("link to a secret", "project", "notes.txt", leaves=False, rule="secret-file"),
    Row("unsaved, by a link", "project", "link/excluded/new.py", leaves=False, scheme="untitled:"),
    Row("cell, by a link", "project", "link/excluded/x.ipynb", leaves=False, scheme=CELL),
    Row("new file, by a link", "project", "link/new.py", leaves=True, is_shared=True),
    Row("a folder of the repository is open", "project/sub", "project/sub/private/x.py", leaves=False),
    Row("a folder of it is open, by a link", "project/sub", "link/sub/private/x.py", leaves=False),
    Row("a folder of it is open, a file", "project/sub", "link/sub/open.py", leaves=True, is_shared=True),
    Row("no folder", "", "project/open.py", leaves=True),
    Row("no folder, ignored", "", "project/ignored/x.py", leaves=False),
    Row("no folder, excluded", "", "project/excluded/x.py", leaves=False),
    Row("no folder, link, excluded", "", "link/excluded/x.py", leaves=False),
    Row("no folder, link to a file", "", "file.py", leaves=False),
    Row("no folder, link to an excluded folder", "", "short/x.py", leaves=False),
    Row("no folder, no work tree", "", "plain/open.py", leaves=True),
    Row("no folder, no work tree, excluded", "", "plain/excluded/deep/x.py", leaves=False),
    Row("no folder, cell", "", "project/excluded/x.ipynb", leaves=False, scheme=CELL),
    Row("another folder", "other", "project/excluded/x.py", leaves=False),
    Row("a second work tree", "", "worktree/excluded/x.py", leaves=False),
    Row("a second work tree, git's own rules", "", "worktree/local.py", leaves=False),
]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    disk = tmp_path.resolve() / "disk"
    for name, text in FILES.items():
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_text(text)
    for name, target in LINKS.items():
        (disk / name).symlink_to(disk / target)
    return disk


def uri_of(disk: Path, row: Row) -> str:
    end = "#W0sZmlsZQ%3D%3D" if row.scheme == CELL else ""
    slash = "/" if row.path.startswith("/") else ""
    return f"{row.scheme}{slash}{quote(str(disk))}/{row.path.removeprefix('/')}{end}"


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kind)
async def test_rules_hold_however_a_file_is_reached(
    disk: Path, server: RemoteServer, tokenizer_dir: Path, row: Row
) -> None:
    """Checks the text that leaves, the files that others are drafted from, and the repository's settings."""
    async with windows_on(load_beside_servers, linger_s=0.0) as windows:
        window = await windows.open()
        told = {"url": server.url, "tokenizer": str(tokenizer_dir)}
        root = disk / row.folder if row.folder else None
        await window.begin(root, remote=told, **PATIENT)
        uri = uri_of(disk, row)
        window.open(uri, "x = ")
        found = await window.suggest_when_loaded(uri, 0, 4)
        assert len(server.completions) == row.leaves
        if row.rule:
            assert (await window.why(uri, 0, 4))["rule"] == row.rule
        else:
            assert found == (["a_word(1)"] if row.leaves else ["x = !"])
        session, indexes = windows.servers[0].session, windows.servers[0].indexes
        assert (session.settings_for(uri).max_tokens == 60) is row.has_settings
        if root is not None:
            marker = (root / "marker.py").as_uri()
            window.open(marker, "MARKER = ")
            await until(lambda: indexes.is_shared(session.location_of(marker)))
        assert indexes.is_shared(session.location_of(uri)) is row.is_shared
        await window.end()


async def test_a_link_that_leads_elsewhere_by_now_has_the_rules_of_where_it_leads(
    disk: Path, server: RemoteServer, tokenizer_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "VALID_S", 0.0)
    monkeypatch.setattr(leave_rules, "VALID_S", 0.0)
    async with windows_on(load_beside_servers, linger_s=0.0) as windows:
        window = await windows.open()
        told = {"url": server.url, "tokenizer": str(tokenizer_dir)}
        await window.begin(None, remote=told, **PATIENT)
        uri = (disk / "open_file.py").as_uri()
        window.open(uri, "x = ")
        assert await window.suggest_when_loaded(uri, 0, 4) == ["a_word(1)"]
        (disk / "open_file.py").unlink()
        (disk / "open_file.py").symlink_to(disk / "project/excluded/x.py")
        window.change(uri, insertion(0, 0, "y"))
        assert await window.suggest_when_loaded(uri, 0, 5) == ["yx = !"]
        assert len(server.completions) == 1
        await window.end()


async def test_a_settings_file_around_a_single_file_that_changes_holds_soon(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "VALID_S", 0.0)
    async with one_window() as window:
        uri = (disk / "plain/excluded/deep/x.py").as_uri()
        window.open(uri, "x = ")
        assert await window.suggest(uri, 0, 4) == ["x = !"]
        (disk / "plain/.slipstream.toml").write_text("[languages]\npython = false\n")
        async with asyncio.timeout(PATIENCE_S):
            while await window.suggest(uri, 0, 4):
                pass
        assert (await window.why(uri, 0, 4))["rule"] == "language-disabled"
        window.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        window.open(uri, "x = ")
        assert await window.suggest(uri, 0, 4) == []


async def test_a_folder_that_is_closed_leaves_its_settings_with_its_open_documents(disk: Path) -> None:
    async with windows_on() as windows:
        window = await windows.begun(disk / "project", maxTokens=90)
        uri = (disk / "project/open.py").as_uri()
        window.open(uri, "x = ")
        assert await window.suggest(uri, 0, 4) == ["x = !"]
        gone = {"uri": (disk / "project").as_uri(), "name": "project"}
        window.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [gone]}})
        assert await window.suggest(uri, 0, 4) == ["x = !"]
        session = windows.servers[0].session
        assert session.location_of(uri).folder is None
        assert session.settings_for(uri).max_tokens == 60
        await window.end()


async def test_the_index_of_a_repository_s_subfolder_leaves_out_what_the_repository_excludes(
    disk: Path,
) -> None:
    async with windows_on() as windows:
        window = await windows.begun(disk / "project/sub")
        async with asyncio.timeout(PATIENCE_S):
            while (await window.request("slipstream/stats"))["index"][0]["state"] != "ready":
                pass
        index = windows.servers[0].indexes.index_of(disk / "project/sub")
        assert index is not None and index.holds("open.py") and not index.holds("private/x.py")
        await window.end()
