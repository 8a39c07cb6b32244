"""Suggestions in the words of the protocol: the client's units, the document's line ends."""

from __future__ import annotations

import pytest

from completion_engine.stats import Completion, CompletionStats, Piece
from lsp_server import conversion
from lsp_server.documents import Document
from lsp_server.engine_thread import EngineStatus
from lsp_server.positions import PositionEncoding
from lsp_server.session import Offer, Record


def offer(text: str, content: str, column: int, num_replaced: int = 0) -> Offer:
    return Offer("7", Document("file:///a", "python", 1, content), 0, column, text, num_replaced)


@pytest.mark.parametrize(("encoding", "start", "end"), [("utf-8", 6, 10), ("utf-16", 4, 6), ("utf-32", 3, 4)])
def test_ranges_are_in_the_clients_units(encoding: PositionEncoding, start: int, end: int) -> None:
    (item,) = conversion.inline_completions([offer("x", "a😀(😀)", 3, num_replaced=1)], encoding).items
    assert item.range
    assert (item.range.start.character, item.range.end.character) == (start, end)
    assert item.range.start.line == item.range.end.line == 0


def test_line_ends_are_the_documents_and_the_command_carries_the_id() -> None:
    (item,) = conversion.inline_completions([offer("a\n  b", "x\r\ny", 1)], "utf-16").items
    assert item.insert_text == "a\r\n  b"
    assert item.command
    assert (item.command.command, item.command.arguments) == ("slipstream.accepted", ["7"])


def test_a_completion_item_begins_with_the_word_that_is_typed() -> None:
    (item,) = conversion.completions([offer("nt(x)\nmore", "x = pri", 7)], "utf-16").items
    assert item.label == "print(x) …"
    assert item.filter_text == "print(x)\nmore"
    assert item.text_edit
    assert item.text_edit.new_text == "print(x)\nmore"
    assert item.documentation == "nt(x)\nmore"


def test_no_offer_is_an_empty_list() -> None:
    assert conversion.inline_completions([], "utf-16").items == []


@pytest.mark.parametrize(
    ("status", "busy", "kind"),
    [
        (EngineStatus("loading", "Downloading"), True, "Normal"),
        (EngineStatus("warming"), False, "Normal"),
        (EngineStatus("ready"), False, "Normal"),
        (EngineStatus("error", "No space.", "Make room."), False, "Error"),
    ],
)
def test_the_status_is_shown_in_the_words_of_existing_clients(
    status: EngineStatus, busy: bool, kind: str
) -> None:
    shown = conversion.shown_status(status)
    assert shown == {"busy": busy, "message": f"{status.message} {status.advice}".strip(), "kind": kind}


@pytest.mark.parametrize(
    ("text", "outcome", "rule", "reason"),
    [
        ("x", "", "", ""),
        ("", "", "unmatched-bracket", "The rule unmatched-bracket filtered it."),
        (
            "",
            "document-changed",
            "",
            "The document changed in another way while the suggestion was computed.",
        ),
        ("", "", "engine-loading", "The model is still loading."),
    ],
)
def test_every_outcome_has_a_reason(text: str, outcome: str, rule: str, reason: str) -> None:
    snapshot = Document("file:///a", "python", 1, "").snapshot(0, 0)
    completion = Completion(text, 0, CompletionStats(), (Piece(text, "ngram", "a.py:3"),), rule)
    explanation = conversion.explanation(Record("1", snapshot, completion, text=text, outcome=outcome))
    assert explanation["reason"] == reason
    assert explanation["rule"] == (outcome or rule)
    assert explanation["shown"] == bool(text)
    assert explanation["pieces"] == [{"text": text, "source": "ngram", "evidence": "a.py:3"}]
