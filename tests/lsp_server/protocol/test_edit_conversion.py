"""An edit in the client's units: as little text as whole tokens allow, with the document's line ends."""

from __future__ import annotations

from typing import Any

import pytest

from completion_engine.next_edit.edits import EditAnswer, Hunk, LineEdit, ProposedEdit
from lsp_server.protocol.edit_conversion import EditContext, changed_span, read_context, some_edits
from lsp_server.workspace.documents import Document, PositionEncoding
from lsp_server.workspace.offers import EditRecord


def converted(old: str, new: str, encoding: PositionEncoding = "utf-16", newline: str = "\n") -> Any:
    document = Document("file:///a.py", "python", 7, f"top{newline}{old.replace(chr(10), newline)}{newline}")
    edit = LineEdit(document.uri, 1, tuple(old.split("\n")), tuple(new.split("\n")))
    return in_protocol(edit, document, encoding)


def in_protocol(edit: LineEdit, document: Document, encoding: PositionEncoding = "utf-16") -> Any:
    hunk = Hunk("a", 0, ("b",), ("c",))
    answer = EditAnswer(ProposedEdit(edit, hunk, 1, None, 0.9), num_candidates=3)
    record = EditRecord("edit-1", document.uri, answer, 0.0)
    (found,) = some_edits(record, [edit], {document.uri: document}, encoding)["edits"]
    return found


def test_one_token_is_replaced() -> None:
    found = converted("x = fetch(1)", "x = load(1)")
    assert found["text"] == "load"
    assert found["range"] == {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 9}}
    assert found["textDocument"] == {"uri": "file:///a.py", "version": 7}
    assert found["command"]["command"] == "slipstream.acceptedEdit"
    assert found["command"]["arguments"] == ["edit-1"]
    assert found["numPlaces"] == 3


@pytest.mark.parametrize(("encoding", "start"), [("utf-8", 9), ("utf-16", 7), ("utf-32", 6)])
def test_positions_count_the_clients_units(encoding: PositionEncoding, start: int) -> None:
    found = converted("'🦊' + fetch", "'🦊' + load", encoding=encoding)
    assert found["range"]["start"] == {"line": 1, "character": start}


def test_several_lines_keep_the_documents_line_ends() -> None:
    found = converted("f(\n    a)", "g(\n    b,\n    a)", newline="\r\n")
    assert found["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 2}}
    assert found["text"] == "g(\r\n    b,"


@pytest.mark.parametrize(
    ("old", "new", "span"),
    [("a.get(b)", "a.put(b)", (2, 5)), ("run(job)", "run(job, 5)", (7, 7)), ("await go()", "go()", (0, 6))],
)
def test_the_span_holds_what_differs(old: str, new: str, span: tuple[int, int]) -> None:
    assert changed_span(old, new) == span


@pytest.mark.parametrize(
    ("params", "context"),
    [
        ({"context": {"triggerKind": 2, "otherDocuments": True}}, EditContext(2, takes_other_documents=True)),
        ({"context": {"otherFiles": True}}, EditContext(takes_other_files=True)),
        ({"context": {"allEdits": True}}, EditContext(wants_all=True)),
        ({"context": {"triggerKind": "2", "otherDocuments": 1, "otherFiles": "x"}}, EditContext()),
        ({"context": []}, EditContext()),
        ({}, EditContext()),
        (None, EditContext()),
    ],
)
def test_a_malformed_context_is_the_usual_one(params: Any, context: EditContext) -> None:
    assert read_context(params) == context


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\nb\nc", {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}),
        ("a\nb", {"start": {"line": 0, "character": 1}, "end": {"line": 1, "character": 1}}),
    ],
    ids=["with its end", "the last line, with the end before it"],
)
def test_a_line_that_goes_away_leaves_no_empty_line(text: str, wanted: Any) -> None:
    document = Document("file:///a.py", "python", 7, text)
    found = in_protocol(LineEdit(document.uri, 1, ("b",), ()), document)
    assert (found["text"], found["range"]) == ("", wanted)
