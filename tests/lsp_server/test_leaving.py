"""A server whose remote target records what it is sent: nothing of what is left out is among it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from completion_engine.prompting.tokenizer import Tokenizer
from lsp_server.engine.engine_types import Job, PrefetchJob
from lsp_server.engine.thread import EngineThread
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.leave_rules import LeaveRules, Question
from lsp_server.workspace.locations import FileIdentity, locate
from lsp_server.workspace.prefetch import ContextQuery
from tests.hosts import PATIENCE_S
from tests.remote_server import RemoteServer
from tests.windows import Window, insertion, load_beside_servers, load_scripted, one_window, windows_on

SECRET = "ghp_" + "a8Fk2LmQ9xZr4TvB7nYc1WdE5uHj3GpS6oIk"
FILES = {
    ".gitignore": "ignored/\n",
    "loans.py": "def lend_out(member, book):\n    return member, book\n",
    "ignored/private.py": "IGNORED_WORD = 1\n",
    "excluded/more.py": "EXCLUDED_WORD = 2\n",
    ".env": "ENV_WORD=3\n",
    "secret.py": f'SECRET_KEY = "{SECRET}"\n',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "repository"


@pytest.fixture
async def window(server: RemoteServer, tokenizer_dir: Path, root: Path) -> AsyncIterator[Window]:
    """With servers for the target, and a scripted engine here."""
    async with windows_on(load_beside_servers, linger_s=0.0) as windows:
        window = await windows.open()
        told = {"url": server.url, "tokenizer": str(tokenizer_dir)}
        index, patient = {"exclude": ["excluded/"]}, {"deadlineMs": 30_000, "patienceMs": 30_000}
        await window.begin(root, remote=told, index=index, target="tiny", **patient)
        yield window
        await window.end()


def sent(server: RemoteServer, decode: Callable[[list[int]], str]) -> str:
    """All data that the server received, prompts as text."""
    prompts = [decode(asked.json["prompt"]) for asked in server.completions]
    return "\n".join([*prompts, *(str(asked.headers) + asked.body.decode() for asked in server.asked)])


async def test_what_is_left_out_is_written_here_and_never_sent(
    window: Window,
    server: RemoteServer,
    tokenizer: Tokenizer,
    root: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    assert (
        "which receives the text around the cursor" in (await window.request("slipstream/stats"))["message"]
    )
    for name, text in FILES.items():
        uri, line = (root / name).as_uri(), f"{name[:3].strip('.')} = "
        window.open(uri, text + line)
        found = await window.suggest_when_loaded(uri, text.count("\n"), len(line))
        is_left_out = name.startswith(("ignored", "excluded"))
        by_servers = ["a_word(1)"] if name in {"loans.py", "secret.py", ".gitignore"} else []
        assert found == ([f"{line}!"] if is_left_out else by_servers), name
    heard = sent(server, tokenizer.decode)
    assert "lend_out" in heard and "SECRET_KEY" in heard
    assert "lend_out" not in caplog.text
    for word in ("IGNORED_WORD", "EXCLUDED_WORD", "ENV_WORD", SECRET, SECRET[6:20], str(root)):
        assert word not in heard


# URIs of VS Code and Neovim for documents that are not files, and whether they may leave: like the
# repository's file that they show, always without a name, never from another machine.
NO_FILES = [
    ("vscode-notebook-cell:{root}/loans.ipynb#W0sZmlsZQ%3D%3D", True),
    ("vscode-notebook-cell:{root}/ignored/loans.ipynb#W0sZmlsZQ%3D%3D", False),
    ("vscode-notebook-cell:{root}/excluded/loans.ipynb#X10sZmlsZQ%3D%3D", False),
    ("vscode-notebook-cell://ssh-remote%2Bhost{root}/loans.ipynb#W0sdnNjb2RlLXJlbW90ZQ%3D%3D", True),
    ("vscode-notebook-cell://ssh-remote%2Bhost{root}/ignored/x.ipynb#W0sdnNjb2RlLXJlbW90ZQ%3D%3D", False),
    ("vscode-notebook-cell://github{root}/loans.ipynb#W0sdnNjb2RlLXZmcw%3D%3D", False),
    ("vscode-notebook-cell:Untitled-1.ipynb?jupyter-notebook#W0sdW50aXRsZWQ%3D", True),
    ("untitled:{root}/new.py", True),
    ("untitled:{root}/ignored/new.py", False),
    ("untitled:{root}/excluded/new/new.py", False),
    ("untitled:Untitled-1", True),
    ("file://", True),
    ("scp://host/{root}/loans.py", False),
    ("fugitive://{root}/.git//0/loans.py", False),
    ("loans.py", False),
]


async def check_leaves(window: Window, server: RemoteServer, uri: str, *, may_leave: bool) -> None:
    """A suggestion in a document comes from the servers if its text may leave, else from the local engine."""
    window.open(uri, "x = ")
    assert await window.suggest_when_loaded(uri, 0, 4) == (["a_word(1)"] if may_leave else ["x = !"])
    assert len(server.completions) == may_leave


@pytest.mark.parametrize(("uri", "may_leave"), NO_FILES)
async def test_what_is_no_file_goes_by_the_rules_of_the_file_that_it_stands_for(
    window: Window, server: RemoteServer, root: Path, uri: str, *, may_leave: bool
) -> None:
    uri = uri.format(root=root)
    await check_leaves(window, server, uri, may_leave=may_leave)


@pytest.mark.parametrize(("name", "may_leave"), [("open.py", True), ("ignored/deep/private.py", False)])
async def test_a_file_that_no_folder_holds_has_the_rules_of_its_work_tree(
    window: Window, server: RemoteServer, tmp_path: Path, name: str, *, may_leave: bool
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / ".gitignore").write_text("ignored/\n")
    (other / name).parent.mkdir(parents=True, exist_ok=True)
    uri = (other / name).as_uri()
    await check_leaves(window, server, uri, may_leave=may_leave)


async def test_what_the_servers_will_be_asked_for_is_not_written_here(
    window: Window, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: set[str] = set()

    submit = EngineThread.submit

    def record(engine: EngineThread, job: Job) -> None:
        if isinstance(job, PrefetchJob):
            expected.add(job.request.indexed_as)
        else:
            submit(engine, job)

    monkeypatch.setattr(EngineThread, "submit", record)
    monkeypatch.setattr("lsp_server.workspace.prefetch.PAUSE_S", 0.0)
    for name in ("ignored/private.py", "loans.py", ".gitignore"):  # the first one loads the local engine
        uri = (root / name).as_uri()
        window.open(uri, "x = ")
        if name != ".gitignore":
            assert await window.suggest_when_loaded(uri, 0, 4)
        window.change(uri, insertion(0, 4, "1"))
        await window.request("slipstream/stats")  # answered after the change
        await window.request("slipstream/stats")
    assert expected == {"ignored/private.py"}


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once a document's context has changed; later servers set it too."""
    event, tell = asyncio.Event(), SlipstreamServer._on_context

    def on_context(server: SlipstreamServer, query: ContextQuery) -> None:
        tell(server, query)
        event.set()

    monkeypatch.setattr(SlipstreamServer, "_on_context", on_context)
    return event


async def suggest_with_context(window: Window, chosen: asyncio.Event, uri: str, text: str) -> None:
    """Have the servers answer at the end of `text`, then again once repository context is chosen for it."""
    line, column = text.count("\n"), len(text.rpartition("\n")[2])
    while (await window.request("slipstream/stats"))["index"][0]["state"] != "ready":  # noqa: ASYNC110 - asked
        await asyncio.sleep(0.005)
    window.open(uri, text)
    assert await window.suggest_when_loaded(uri, line, column) == ["a_word(1)"]
    async with asyncio.timeout(PATIENCE_S):
        await chosen.wait()
    window.change(uri, insertion(line, column, "y "))
    assert await window.suggest(uri, line, column + 2) == ["a_word(1)"]


async def test_what_is_shown_of_a_document_out_of_sight_brings_no_secret_along(
    chosen: asyncio.Event, window: Window, server: RemoteServer, tokenizer: Tokenizer, root: Path
) -> None:
    head = f'import os\n\nAPI_KEY = "{SECRET}"\nDB_PASSWORD = "tulip-garden-77"\n\n'
    steps = "".join(f"def step_{number}(value):\n    return value\n\n\n" for number in range(400))
    uri, text = (root / "app.py").as_uri(), f"{head}{steps}x = "
    await suggest_with_context(window, chosen, uri, text)
    heard = sent(server, tokenizer.decode)
    assert "DB_PASSWORD" in heard
    for word in ("tulip-garden-77", SECRET, SECRET[6:20]):
        assert word not in heard


async def test_context_repeats_nothing_that_the_servers_window_shows(
    chosen: asyncio.Event, window: Window, server: RemoteServer, tokenizer: Tokenizer, root: Path
) -> None:
    """Servers see more of a document than a CPU's target does: all of this one."""
    steps = "".join(f"def step_{number}(value):\n    return value + value\n" for number in range(60))
    uri, text = (root / "app.py").as_uri(), f"import os\n\n\n{steps}x = lend_out("
    await suggest_with_context(window, chosen, uri, text)
    last = tokenizer.decode(server.completions[-1].json["prompt"])
    assert "def lend_out(member, book)" in last
    assert [last.count(f"def step_{number}(") for number in range(60)] == [1] * 60


async def test_a_rule_that_is_new_holds_soon(
    window: Window, server: RemoteServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_server.workspace.leave_rules.VALID_S", 0.0)
    uri = (root / "loans.py").as_uri()
    window.open(uri, "x = ")
    assert await window.suggest_when_loaded(uri, 0, 4) == ["a_word(1)"]
    (root / ".gitignore").write_text("loans.py\n")
    assert await window.suggest_when_loaded(uri, 0, 4) == ["x = !"]
    assert len(server.completions) == 1


async def test_who_types_faster_than_rules_are_read_is_answered_by_the_first_reading(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each key cancels the request before it."""
    begun: list[Path] = []
    may_read = threading.Event()

    def read(question: Question) -> bool:
        begun.append(question.called)
        return may_read.wait(PATIENCE_S)

    monkeypatch.setattr("lsp_server.workspace.leave_rules._allows", read)
    file = tmp_path / "loans.py"
    rules, location = LeaveRules(), locate(file.as_uri(), {tmp_path: tmp_path}, FileIdentity(file, tmp_path))
    typed = [asyncio.create_task(rules.allow(location, ())) for _ in range(20)]
    await asyncio.sleep(0)
    for request in typed[:-1]:
        request.cancel()
    may_read.set()
    assert await typed[-1]
    assert rules.known(location, ())
    assert begun == [tmp_path / "loans.py"]


class Rules:
    """Rules that are read for so long as the disk takes."""

    def __init__(self) -> None:
        self.reading, self.may_go = asyncio.Event(), asyncio.Event()

    async def allow(self, *_: object) -> bool:
        is_first = not self.reading.is_set()
        self.reading.set()
        if is_first:
            await self.may_go.wait()
        return True


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    found = Rules()
    monkeypatch.setattr(LeaveRules, "allow", lambda _, *asked: found.allow(*asked))
    monkeypatch.setattr(SlipstreamServer, "follow_edits", lambda *_: None)  # asks for the same rules
    return found


async def test_a_document_that_is_closed_while_its_rules_are_read_leaves_no_more(
    window: Window, server: RemoteServer, root: Path, rules: Rules
) -> None:
    uri = (root / "loans.py").as_uri()
    window.open(uri, "x = ")
    number = window.ask(uri, 0, 4)
    await rules.reading.wait()
    window.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await window.request("slipstream/stats")
    rules.may_go.set()
    assert (await window.answer(number))["items"] == []
    assert not server.completions


async def test_a_request_whose_rules_are_read_for_longer_does_not_supersede_a_newer_one(
    window: Window, server: RemoteServer, root: Path, rules: Rules
) -> None:
    uri = (root / "loans.py").as_uri()
    window.open(uri, "x = \ny = ")
    older = window.ask(uri, 0, 4)
    await rules.reading.wait()
    assert await window.suggest(uri, 1, 4) == ["a_word(1)"]
    rules.may_go.set()
    assert "items" not in await window.answer(older)
    assert len(server.completions) == 1


async def test_a_repository_sends_nobody_s_text_anywhere(
    server: RemoteServer, tokenizer_dir: Path, root: Path
) -> None:
    (root / ".slipstream.toml").write_text(
        f'[remote]\nurl = "{server.url}"\ntokenizer = "{tokenizer_dir}"\ntokenFile = "/etc/passwd"\n'
    )
    async with one_window(root, load_for=load_scripted) as window:
        uri = (root / "loans.py").as_uri()
        window.open(uri, "x = ")
        assert await window.suggest_when_loaded(uri, 0, 4) == ["x = !"]
    shown = [heard["params"]["message"] for heard in window.heard if "showMessage" in heard["method"]]
    assert "may not set remote.url, remote.tokenFile, remote.tokenizer" in " ".join(shown)
    assert server.asked == []
