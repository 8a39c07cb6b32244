"""Which document a client's text is from, and where in it: a small repository, and texts out of it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from lsp_server.http_api import documents
from lsp_server.http_api.dialects import CursorText
from lsp_server.http_api.documents import MAX_DOCUMENTS, HttpDocument, HttpDocuments
from tests.waiting import first_true

LOANS = "".join(f"def loan_of_number_{number}():\n    return {number}\n\n\n" for number in range(100))
BOOKS = LOANS.replace("loan", "book").replace("return", "yield")
SHARED = "import os\nimport sys\n\nfrom lending.books import Book, Shelf\n\n"
FILES = {
    "lending/loans.py": LOANS,
    "lending/books.py": BOOKS,
    "one.py": f"{SHARED}def one(value):\n    return value\n",
    "two.py": f"{SHARED}def two(value):\n    return [value, value]\n",
    "short.py": "def short_one(): ...\n",
    ".env": "DATABASE_PASSWORD=nightingale\nDATABASE_HOST=127.0.0.1\nDATABASE_NAME=lending\n",
    ".env.example": "DATABASE_PASSWORD=\nDATABASE_HOST=127.0.0.1\nDATABASE_NAME=lending\n",
    "local/generated.py": "def ignored_number_one():\n    return 'ignored one'\n\n# the end of it\n",
    ".gitignore": "local/\n",
    ".ssh/config": "Host example\n  HostName example.org\n  IdentityFile key\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path.resolve()


def at(text: str, num_before: int, num_after: int = 60, cut: str = "") -> CursorText:
    """The lines around a cursor in the middle of a text, as clients send them; `cut` is typed there."""
    lines = text.splitlines(keepends=True)
    middle = len(lines) // 2
    prefix = "".join(lines[max(0, middle - num_before) : middle])
    return CursorText(prefix + cut, "\n" + "".join(lines[middle : middle + num_after]))


async def placed(found: HttpDocuments, cursor: CursorText) -> tuple[HttpDocument, str, int]:
    document = await found.find(cursor)
    offset = found.place(document, cursor)
    return document, document.text, offset


# The text that a client sends, and the file that it is from; none for a text without a file.
SHORT = "def short_one(): ...\n"
FOUND: dict[str, tuple[CursorText, str]] = {
    "a whole file": (CursorText(LOANS, ""), "lending/loans.py"),
    "lines of a file": (at(LOANS, 60), "lending/loans.py"),
    "lines with an edit": (at(LOANS, 60, cut="def new_function(argument):\n    ret"), "lending/loans.py"),
    "a file with a beginning of others": (CursorText(f"{SHARED}def two(value):\n    ", "return"), "two.py"),
    "a new file": (CursorText("def new(a):\n    return a\n\nclass New:\n    pass\n", ""), ""),
    "hardly any lines": (CursorText(SHORT, ""), ""),
    "hardly any lines and a name": (CursorText(SHORT, "", "short.py"), "short.py"),
    "a name that the client has read": (CursorText(SHORT, "", other_names=("short.py",)), "short.py"),
    "an absolute name": (CursorText(SHORT, "", "/home/user/repository/short.py"), "short.py"),
    "a name of Windows": (CursorText(at(LOANS, 9).prefix, "", "x\\lending\\loans.py"), "lending/loans.py"),
    "a name of another file": (CursorText("def other_text(): ...\n", "", "short.py"), ""),
    "a name above the folder": (CursorText(SHORT, "", "../../etc/passwd"), ""),
    "a name with a NUL": (CursorText(SHORT, "", "a\0b.py"), ""),
    "a file with secrets": (CursorText(FILES[".env"], ""), ".env"),
    "a line of a file with secrets": (CursorText("DATABASE_PASSWORD=nightingale\n", ""), ".env"),
    "a text that has most of its lines": (CursorText(FILES[".env.example"], ""), ".env"),
    "a folder with secrets": (CursorText(FILES[".ssh/config"], ""), ".ssh/config"),
    "an ignored file": (CursorText(FILES["local/generated.py"], ""), ""),
    "nothing": (CursorText("", ""), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
async def test_a_text_is_found_by_its_lines(name: str, repository: Path) -> None:
    cursor, file = FOUND[name]
    document, text, offset = await placed(HttpDocuments([repository]), cursor)
    if file:
        assert document.uri == (repository / file).as_uri()
    else:
        assert not document.uri.startswith("file:")
        assert text == cursor.prefix + cursor.suffix
    assert text[:offset].endswith(cursor.prefix)
    assert text[offset:].startswith(cursor.suffix)


@pytest.mark.parametrize(
    ("cursor", "language"),
    [
        (CursorText("x", "", "src/new.rs"), "rust"),
        (CursorText("x", "", language="lua"), "lua"),
        (CursorText("x", ""), "plaintext"),
    ],
)
async def test_the_language_is_what_the_client_says(cursor: CursorText, language: str) -> None:
    document, _, _ = await placed(HttpDocuments([]), cursor)
    assert document.language == language
    assert unquote(document.uri).endswith(cursor.name)


async def test_lines_around_the_cursor_become_the_whole_file(repository: Path) -> None:
    cursor = at(LOANS, 20, 20)
    _, text, offset = await placed(HttpDocuments([repository]), cursor)
    assert text[:offset] + text[offset + 1 :] == LOANS  # all but the line end at the cursor
    assert text[offset] == "\n"


async def test_a_document_stays_the_same_while_the_user_types_and_moves(repository: Path) -> None:
    found = HttpDocuments([repository])
    uris = set()
    for num_before in range(20, 60, 5):
        document, _, _ = await placed(found, at(LOANS, num_before, cut="value = comp"))
        uris.add(document.uri)
    assert uris == {(repository / "lending/loans.py").as_uri()}


async def test_another_file_is_another_document(repository: Path) -> None:
    found = HttpDocuments([repository])
    names = []
    for text in (LOANS, BOOKS, LOANS):
        document, _, _ = await placed(found, at(text, 60))
        names.append(Path(document.uri).name)
    assert names == ["loans.py", "books.py", "loans.py"]


async def test_a_new_file_is_one_document_from_its_first_key(repository: Path) -> None:
    found = HttpDocuments([repository])
    whole = "class Fresh:\n    def first_method(self):\n        return self.first_value\n" * 3
    uris = set()
    for length in range(len(whole)):
        document, _, _ = await placed(found, CursorText(whole[:length], ""))
        uris.add(document.uri)
    assert len(uris) == 1


async def test_a_new_file_is_found_once_it_is_saved(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_SEARCH_AGAIN_S", 0.0)
    found = HttpDocuments([repository])
    cursor = CursorText("class Fresh:\n    first_value = 1\n    second_value = 2\n", "")
    document, _, _ = await placed(found, cursor)
    assert not document.uri.startswith("file:")
    (repository / "fresh.py").write_text(cursor.prefix)
    document, _, _ = await placed(found, cursor)
    assert document.uri == (repository / "fresh.py").as_uri()


async def test_few_documents_stay_open(tmp_path: Path) -> None:
    found = HttpDocuments([tmp_path])
    for number in range(2 * MAX_DOCUMENTS):
        text = "".join(f"line {number} of the text {line}\n" for line in range(9))
        document, _, _ = await placed(found, CursorText(text, ""))
    dropped = found.pop_surplus()
    assert len(dropped) == MAX_DOCUMENTS
    assert document not in dropped


async def test_a_settings_file_that_excludes_everything_hides_all_but_secrets(repository: Path) -> None:
    (repository / ".slipstream.toml").write_text("[index]\nenabled = false\n")
    found = HttpDocuments([repository])
    document, _, _ = await placed(found, CursorText(LOANS, ""))
    assert not document.uri.startswith("file:")
    document, _, _ = await placed(found, CursorText(FILES[".env"], ""))
    assert document.uri.endswith("/.env")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.timeout(60)
async def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key.txt").write_text("an outside text\nwith several lines\nof its own\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.txt").symlink_to(tmp_path / "outside" / "key.txt")
    (folder / "around").symlink_to(tmp_path)
    os.mkfifo(folder / "secrets.env")
    os.mkfifo(folder / "pipe.py")
    cursor = CursorText((tmp_path / "outside" / "key.txt").read_text(), "")
    document, _, _ = await placed(HttpDocuments([folder]), cursor)
    assert not document.uri.startswith("file:")


@pytest.mark.timeout(120)
async def test_a_search_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MAX_SEARCH_S", 0.0)
    for number in range(50):
        (tmp_path / f"{number}.py").write_text(LOANS)
    cursor = CursorText("a line of no file\nanother line of no file\na third line of no file\n", "")
    document, _, _ = await placed(HttpDocuments([tmp_path]), cursor)
    assert not document.uri.startswith("file:")


class Folders:
    """Searches that end when they may, in place of those of a large folder."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file, self.num_begun, self.may_end = file, 0, threading.Event()
        monkeypatch.setattr(documents, "_files", self.files)

    def files(self, *_: object, **__: object) -> Iterator[tuple[Path, str]]:
        self.num_begun += 1
        self.may_end.wait(60)
        yield self.file, self.file.read_text()


@pytest.fixture
def folders(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    made = Folders(repository / "lending" / "books.py", monkeypatch)
    yield made
    made.may_end.set()


async def test_a_search_holds_up_no_request_in_another_document(repository: Path, folders: Folders) -> None:
    found = HttpDocuments([repository])
    known = asyncio.create_task(placed(found, at(BOOKS, 60)))
    await asyncio.to_thread(first_true, lambda: folders.num_begun, 60)
    folders.may_end.set()
    document, _, _ = await known
    folders.may_end.clear()
    searching = asyncio.create_task(found.find(CursorText(FILES["two.py"], "")))
    await asyncio.to_thread(first_true, lambda: folders.num_begun == 2, 60)
    assert await asyncio.wait_for(found.find(at(BOOKS, 61)), 60) is document
    assert not searching.done()
    folders.may_end.set()
    await searching


async def test_clients_that_leave_leave_one_search(repository: Path, folders: Folders) -> None:
    found = HttpDocuments([repository])
    tasks = [asyncio.create_task(found.find(at(BOOKS, number))) for number in range(9, 300)]
    await asyncio.to_thread(first_true, lambda: folders.num_begun, 60)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert folders.num_begun == 1
    folders.may_end.set()
    assert (await found.find(at(BOOKS, 60))).uri == folders.file.as_uri()
    assert folders.num_begun == 1  # a client that left did not end its search
