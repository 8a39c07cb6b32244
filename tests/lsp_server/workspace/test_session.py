"""The session: which folder a document belongs to, and whether a suggestion still fits when it arrives."""

from __future__ import annotations

from pathlib import Path

import pytest

from completion_engine.request import Completion, CompletionStats
from lsp_server.workspace import documents
from lsp_server.workspace.documents import Document, Edit
from lsp_server.workspace.locations import WorkspaceFolders
from lsp_server.workspace.offers import NUM_RECORDS, CompletionRecord, fitted
from lsp_server.workspace.session import Session

URI = "file:///work/a.py"


def session_with(text: str) -> Session:
    session = Session()
    session.documents[URI] = Document(URI, "python", 1, text)
    return session


def completion(text: str, num_replaced: int = 0) -> Completion:
    return Completion(text, num_replaced, CompletionStats())


def type_text(session: Session, line: int, column: int, text: str) -> None:
    document = session.documents[URI]
    document.apply(Edit((line, column), (line, column), text), session.encoding)
    document.version += 1


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("", "add(a, b)"),
        ("a", "dd(a, b)"),
        ("add(", "a, b)"),
        ("add(a, b)", None),
        ("x", None),
        ("add)", None),
        ("add(a, b) ", None),
    ],
)
def test_what_was_typed_along_is_taken_off_and_anything_else_voids_the_answer(
    typed: str, left: str | None
) -> None:
    session = session_with("x = \ny = 1\n")
    snapshot = session.snapshot(URI, (0, 4))
    assert snapshot
    type_text(session, 0, 4, typed)
    offer = fitted(session.documents.get(snapshot.uri), "1", snapshot, completion("add(a, b)"))
    assert (offer.text if offer else None) == left
    if offer:
        assert (offer.line, offer.column) == (0, 4 + len(typed))


def test_typing_over_a_line_end_moves_the_offer_to_the_next_line() -> None:
    session = session_with("if x:\r\n")
    snapshot = session.snapshot(URI, (0, 5))
    assert snapshot
    type_text(session, 0, 5, "\r\n  ")
    offer = fitted(session.documents.get(snapshot.uri), "1", snapshot, completion("\n  return 1"))
    assert offer
    assert (offer.text, offer.line, offer.column) == ("return 1", 1, 2)


@pytest.mark.parametrize(("line", "column"), [(0, 0), (1, 0), (2, 2)])
def test_an_edit_elsewhere_voids_the_answer(line: int, column: int) -> None:
    session = session_with("x = 1\ny = 2\nz = 3\n")
    snapshot = session.snapshot(URI, (1, 5))
    assert snapshot
    type_text(session, line, column, "2")
    assert fitted(session.documents.get(snapshot.uri), "1", snapshot, completion("222")) is None


def test_a_closed_document_gets_no_offer() -> None:
    session = session_with("x")
    snapshot = session.snapshot(URI, (0, 1))
    assert snapshot
    del session.documents[URI]
    assert fitted(session.documents.get(snapshot.uri), "1", snapshot, completion("y")) is None
    assert session.snapshot(URI, (0, 1)) is None


def test_what_is_replaced_ends_with_the_line() -> None:
    session = session_with("f()\nnext\n")
    snapshot = session.snapshot(URI, (0, 2))
    assert snapshot
    offer = fitted(session.documents.get(snapshot.uri), "1", snapshot, completion("x)", num_replaced=9))
    assert offer
    assert offer.num_replaced == 1


@pytest.mark.parametrize(
    "uri",
    [
        "file:///work/d/x.ipynb",
        "vscode-notebook-cell:/work/d/x.ipynb#W2sZmlsZQ%3D%3D",
        "untitled:/work/d/x.ipynb",
    ],
)
def test_what_a_folder_says_holds_for_whatever_stands_for_its_files(uri: str) -> None:
    session = Session(folders=WorkspaceFolders({"a": Path("/work")}))
    session.configuration.set_repository(Path("/work"), {"trigger": "manual"})
    assert session.refusal(uri, "python", is_invoked=False) == "trigger-manual"
    assert session.location_of(uri).indexed_as == "d/x.ipynb"


def test_a_document_keeps_its_location_until_folders_change() -> None:
    session = Session(folders=WorkspaceFolders({"a": Path("/work")}))
    inner = "file:///work/inner/x.py"
    session.put(Document(inner, "python", 1, "x"))
    session.put(Document("file:///work/y.py", "python", 1, "y"))
    session.folders.add("b", Path("/work/inner"))
    session.put(Document(inner, "python", 2, "xy"))
    assert session.location_of(inner).folder == Path("/work")
    assert [(found.uri, found.folder, found.name) for found in session.relocate()] == [
        (inner, Path("/work/inner"), "x.py")
    ]
    assert session.location_of(inner).folder == Path("/work/inner")
    assert session.relocate() == []
    session.drop(inner)
    session.folders.remove("b")
    assert session.relocate() == []
    assert session.location_of(inner).folder == Path("/work")


def test_old_records_are_dropped_and_the_last_one_at_a_place_is_found() -> None:
    session = session_with("abc")
    snapshot = session.snapshot(URI, (0, 3))
    elsewhere = session.snapshot(URI, (0, 0))
    assert snapshot
    assert elsewhere
    for _ in range(NUM_RECORDS + 3):
        session.offers.remember(CompletionRecord(session.offers.next_id(), snapshot, completion("x")))
    assert session.offers.record("1") is None
    assert session.offers.record(["no", "id"]) is None
    last = session.offers.last_at(snapshot)
    assert last
    assert last.id == str(NUM_RECORDS + 3)
    assert session.offers.last_at(elsewhere) is None


def accepted(session: Session, record_id: object, num_units: int | None = None) -> int:
    """Number of newly accepted characters."""
    before = session.measurements.num_accepted_chars
    session.accept(record_id, num_units)
    return session.measurements.num_accepted_chars - before


@pytest.mark.parametrize(
    ("steps", "counted"),
    [
        ([3, 6, None], [3, 3, 4]),
        ([None, None], [10, 0]),
        ([6, 3, 99], [6, 0, 4]),
        ([-1, 0], [0, 0]),
    ],
)
def test_what_is_taken_in_steps_counts_once(steps: list[int | None], counted: list[int]) -> None:
    session = session_with("")
    snapshot = session.snapshot(URI, (0, 0))
    assert snapshot
    session.offers.remember(CompletionRecord("1", snapshot, completion("0123456789"), text="0123456789"))
    assert [accepted(session, "1", step) for step in steps] == counted
    assert accepted(session, "unknown", 3) == accepted(session, None) == 0


def test_taken_units_are_those_of_the_inserted_text() -> None:
    session = session_with("\r\n")
    snapshot = session.snapshot(URI, (0, 0))
    assert snapshot
    session.offers.remember(CompletionRecord("1", snapshot, completion("x"), text="😀\nab"))
    assert accepted(session, "1", len("😀\r\na".encode("utf-16-le")) // 2) == len("😀\na")
    assert accepted(session, "1") == 1


def test_further_candidates_are_known_by_their_ids_and_the_best_one_by_its_place() -> None:
    session = session_with("abc")
    snapshot = session.snapshot(URI, (0, 3))
    assert snapshot
    for rank in range(3):
        session.offers.remember(
            CompletionRecord(session.offers.next_id(), snapshot, completion("x"), rank=rank)
        )
    last, third = session.offers.last_at(snapshot), session.offers.record("3")
    assert last
    assert third
    assert (last.id, third.rank) == ("1", 2)


def test_recent_text_is_shared_within_a_window_and_folder_alone(tmp_path: Path) -> None:
    one, two = Session(window=1), Session(window=2)
    folders = {name: tmp_path / name for name in ("a", "b")}
    one.folders = two.folders = WorkspaceFolders({folder.as_uri(): folder for folder in folders.values()})

    def scope(session: Session, name: str, *, is_shared: bool = True) -> str:
        location = session.location_of((tmp_path / name).as_uri())
        return session.recent_scope(location, is_shared=is_shared)

    assert scope(one, "a/x.py") == scope(one, "a/deep/y.py")
    ignored, outside = scope(one, "a/y.py", is_shared=False), scope(one, "z.py")
    assert ignored == one.document_key((tmp_path / "a/y.py").as_uri())
    scopes = [
        scope(one, "a/x.py"),
        scope(one, "b/x.py"),
        scope(two, "a/x.py"),
        ignored,
        outside,
        scope(two, "z.py"),
    ]
    assert len(set(scopes)) == len(scopes)


def held(session: Session) -> tuple[list[str], list[str]]:
    """The documents that are followed, and those that are not."""
    return sorted(session.documents), sorted(session.too_large)


def test_a_document_that_grows_too_large_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_CHARS", 1_000)
    session = Session()
    for text in ("x = 1\n" * 50, "x = 1\n" * 1000):
        session.put(Document("a", "python", 1, text))
    assert held(session) == ([], ["a"])
    assert session.too_large["a"].language == "python"


def test_what_is_opened_and_closed_again_leaves_nothing() -> None:
    session = Session()
    for number in range(100):
        session.put(Document(URI, "python", number, "x\n" * number))
    session.drop(URI)
    assert held(session) == ([], [])
    assert not session.follows(URI)
