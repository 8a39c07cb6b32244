"""Answers as wholes: every field that a client reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from completion_engine.request import Completion, CompletionStats
from lsp_server.engine.engine_types import EngineStatus
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.reasons import texts
from lsp_server.workspace.documents import Document
from lsp_server.workspace.measurements import FolderReport
from lsp_server.workspace.offers import CompletionRecord, Offer

ACCEPTED = types.Command("Slipstream: accepted", command="slipstream.accepted", arguments=["7"])


def offer(text: str, content: str, line: int, column: int, num_replaced: int = 0, typed: str = "") -> Offer:
    return Offer("7", Document("file:///a", "go", 1, content), line, column, text, num_replaced, typed)


def span(line: int, start: int, end: int) -> types.Range:
    return types.Range(types.Position(line, start), types.Position(line, end))


def test_an_inline_item() -> None:
    (item,) = lsp_conversion.inline_completions([offer("b)\nc", "x\r\n😀f(é)z\r\n", 1, 4, 2)], "utf-16").items
    assert item == types.InlineCompletionItem(insert_text="b)\r\nc", range=span(1, 5, 7), command=ACCEPTED)


def test_an_inline_item_at_the_start_of_a_line_replaces_nothing_before_it() -> None:
    (item,) = lsp_conversion.inline_completions([offer("b", "é😀", 0, 0, 1)], "utf-8").items
    assert item.range == span(0, 0, 2)


def test_a_completion_item_of_several_lines() -> None:
    answer = lsp_conversion.completions([offer("nt(x)\nmore", "x\n😀 = pri)", 1, 7, 1)], "utf-16")
    code = "print(x)\nmore"
    assert answer == types.CompletionList(
        is_incomplete=True,
        items=[
            types.CompletionItem(
                label="print(x) …",
                kind=types.CompletionItemKind.Text,
                detail="Slipstream",
                documentation=types.MarkupContent(types.MarkupKind.Markdown, f"````go\n{code}\n````"),
                filter_text="print(x)",
                sort_text="\uffff0",
                text_edit=types.TextEdit(span(1, 5, 9), code),
                insert_text_mode=types.InsertTextMode.AsIs,
                command=ACCEPTED,
            )
        ],
    )


def test_a_completion_item_of_one_line_that_was_typed_along() -> None:
    (item,) = lsp_conversion.completions([offer("(b)", "f.max)", 0, 5, 1, typed="ax")], "utf-16").items
    assert item == types.CompletionItem(
        label="max(b)",
        kind=types.CompletionItemKind.Text,
        detail="Slipstream",
        filter_text="max(b)",
        sort_text="\uffff0",
        text_edit=types.TextEdit(span(0, 2, 4), "max(b)"),
        insert_text_mode=types.InsertTextMode.AsIs,
        command=ACCEPTED,
    )


def test_a_completion_items_range_is_in_the_clients_units() -> None:
    (item,) = lsp_conversion.completions([offer("x", "é😀 = pri", 0, 8)], "utf-8").items
    assert item.text_edit == types.TextEdit(span(0, 9, 12), "prix")


def test_what_was_typed_over_several_lines_is_no_item_of_one() -> None:
    offers = [offer("x", "a\nb", 1, 1, typed="a\nb"), offer("y", "ab", 0, 2)]
    (item,) = lsp_conversion.completions(offers, "utf-16").items
    assert (item.label, item.sort_text) == ("aby", "\uffff0")


def test_an_offer_of_white_space_has_an_empty_label() -> None:
    (item,) = lsp_conversion.completions([offer("\n", "", 0, 0)], "utf-16").items
    assert (item.label, item.filter_text, item.documentation) == ("", "", None)


@pytest.mark.parametrize(
    ("status", "inactive_by", "kind", "message"),
    [
        (EngineStatus("ready", "All is", "well.", done=1, total=2), "", "Normal", "All is well."),
        (EngineStatus("loading"), "", "Normal", "Loading the model."),
        (
            EngineStatus("ready"),
            "trigger-manual",
            "Inactive",
            "The setting trigger is manual: suggestions appear only when you ask for them.",
        ),
        (EngineStatus("error", "Broken."), "trigger-manual", "Error", "Broken."),
    ],
)
def test_a_status(status: EngineStatus, inactive_by: str, kind: str, message: str) -> None:
    assert lsp_conversion.shown_status(status, inactive_by) == {
        "busy": status.state == "loading",
        "message": message,
        "kind": kind,
        "state": status.state,
        "percent": None,
    }


def test_the_engine_and_an_index_in_the_statistics() -> None:
    status = EngineStatus("loading", "Fetching", "Wait.", done=1, total=3, details={"device": "cpu"})
    assert lsp_conversion.engine_state(status) == {
        "state": "loading",
        "message": "Fetching",
        "advice": "Wait.",
        "progress": {"done": 1, "total": 3},
        "engine": {"device": "cpu"},
    }
    report = FolderReport(Path("/a"), "ready", "b.py", 4, 5, 6, 7, "none")
    assert lsp_conversion.index_state(report) == {
        "folder": "/a",
        "state": "ready",
        "num_files": 6,
        "num_tokens": 7,
        "progress": {"done": 4, "total": 5, "path": "b.py"},
        "problem": "none",
    }


def test_what_is_not_known_is_said() -> None:
    assert lsp_conversion.unknown("unknown-document") == {
        "triggered": False,
        "shown": False,
        "rule": "unknown-document",
        "reason": "This document is not open.",
        "texts": texts(),
    }


def test_an_explanation() -> None:
    snapshot = Document("file:///a", "python", 1, "").snapshot(0, 0)
    stats = CompletionStats()
    record = CompletionRecord("1", snapshot, Completion("x", 2, stats), text="x", is_triggered=False)
    assert lsp_conversion.explanation(record, None) == {
        "triggered": False,
        "shown": True,
        "rule": "",
        "reason": "",
        "text": "x",
        "num_replaced": 2,
        "pieces": [],
        "stats": stats.as_dict(),
        "texts": texts(),
    }
