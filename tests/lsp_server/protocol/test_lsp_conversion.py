"""Suggestions in the words of the protocol: the client's units, the document's line ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lsprotocol import types

from completion_engine.request import Completion, CompletionSegment, CompletionStats
from lsp_server.engine.engine_types import EngineStatus
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.reasons import CUT_REASONS
from lsp_server.workspace.documents import Document, PositionEncoding
from lsp_server.workspace.offers import CompletionRecord, Offer


def offer(text: str, content: str, column: int, num_replaced: int = 0) -> Offer:
    return Offer("7", Document("file:///a", "python", 1, content), 0, column, text, num_replaced)


@pytest.mark.parametrize(("encoding", "start", "end"), [("utf-8", 6, 10), ("utf-16", 4, 6), ("utf-32", 3, 4)])
def test_ranges_are_in_the_clients_units(encoding: PositionEncoding, start: int, end: int) -> None:
    (item,) = lsp_conversion.inline_completions([offer("x", "a😀(😀)", 3, num_replaced=1)], encoding).items
    assert item.range
    assert (item.range.start.character, item.range.end.character) == (start, end)
    assert item.range.start.line == item.range.end.line == 0


def test_line_ends_are_the_documents_and_the_command_carries_the_id() -> None:
    (item,) = lsp_conversion.inline_completions([offer("a\n  b", "x\r\ny", 1)], "utf-16").items
    assert item.insert_text == "a\r\n  b"
    assert item.command
    assert (item.command.command, item.command.arguments) == ("slipstream.accepted", ["7"])


def test_a_completion_item_begins_with_the_word_that_is_typed() -> None:
    (item,) = lsp_conversion.completions([offer("nt(x)\nmore", "x = pri", 7)], "utf-16").items
    assert item.label == "print(x) …"
    assert item.filter_text == "print(x)"
    assert item.text_edit
    assert item.text_edit.new_text == "print(x)\nmore"
    assert isinstance(item.documentation, types.MarkupContent)
    assert item.documentation.value == "````python\nprint(x)\nmore\n````"


@pytest.mark.parametrize("typed", ["", "m", "max(é😀"])
def test_a_completion_item_is_for_the_line_as_it_was_when_it_was_asked_for(typed: str) -> None:
    """Clients apply it there, whatever the user typed meanwhile."""
    text = "max(é😀, b)"
    now = Offer("7", Document("file:///a", "python", 1, f"x = a.{typed})"), 0, 6 + len(typed), "", 1, typed)
    (item,) = lsp_conversion.completions([replace(now, text=text.removeprefix(typed))], "utf-16").items
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == item.filter_text == text
    span = item.text_edit.range
    assert (span.start, span.end) == (types.Position(0, 6), types.Position(0, 7))


@pytest.mark.parametrize(
    ("text", "content", "column", "label"),
    [
        (" + b", "a", 1, "a + b"),
        ("\n    return x", "def f():", 8, "return x"),
        ("\n  more", "x", 1, "x …"),
        ("(b)", "f.", 2, "(b)"),
        ("é)", "f(x", 3, "xé)"),
    ],
)
def test_a_completion_item_is_one_line_to_look_at_and_its_range_holds_the_cursor(
    text: str, content: str, column: int, label: str
) -> None:
    """Clients show no item whose filter does not match the typed word, nor ranges over several lines."""
    (item,) = lsp_conversion.completions([offer(text, content + ")", column, num_replaced=1)], "utf-16").items
    assert item.label == label
    assert isinstance(item.text_edit, types.TextEdit)
    start, end = item.text_edit.range.start, item.text_edit.range.end
    assert start.line == end.line == 0
    assert start.character <= column <= end.character
    typed = content[start.character : column]
    assert item.filter_text
    assert item.filter_text.startswith(typed)
    assert item.text_edit.new_text == typed + text


def test_several_completion_items_keep_their_order_behind_those_of_others() -> None:
    offers = [offer(text, "x = ", 4) for text in ("b", "a", "c")]
    items = lsp_conversion.completions(offers, "utf-16").items
    ordered = sorted(items, key=lambda item: item.sort_text or "")
    assert [item.label for item in ordered] == ["b", "a", "c"]
    assert all((item.sort_text or "") > "zzz" for item in items)


def test_no_offer_is_an_empty_list() -> None:
    assert lsp_conversion.inline_completions([], "utf-16").items == []


@pytest.mark.parametrize(
    ("status", "busy", "kind", "percent"),
    [
        (EngineStatus("loading", "Downloading", done=1, total=3), True, "Normal", 33),
        (EngineStatus("loading", "Looking"), True, "Normal", None),
        (EngineStatus("ready"), False, "Normal", None),
        (EngineStatus("error", "No space.", "Make room."), False, "Error", None),
    ],
)
def test_the_status_is_shown_in_the_words_of_existing_clients(
    status: EngineStatus, busy: bool, kind: str, percent: int | None
) -> None:
    message = f"{status.message} {status.advice}".strip() or "Ready."
    shown = lsp_conversion.shown_status(status)
    rest = {"state": status.state, "percent": percent}
    assert shown == {"busy": busy, "message": message, "kind": kind, **rest}


def test_where_the_settings_want_nothing_the_status_is_inactive_and_says_why() -> None:
    shown = lsp_conversion.shown_status(EngineStatus("ready"), "language-disabled")
    assert (shown["kind"], shown["message"]) == (
        "Inactive",
        "Suggestions are switched off for this language.",
    )
    broken = lsp_conversion.shown_status(EngineStatus("error", "No space."), "language-disabled")
    assert (broken["kind"], broken["message"]) == ("Error", "No space.")


@pytest.mark.parametrize(
    ("text", "outcome", "rule", "reason"),
    [
        ("x", "", "", ""),
        ("x", "", "end-of-statement", "The statement at the cursor is complete."),
        ("", "", "blank", "The suggestion would contain nothing but blanks."),
        (
            "",
            "document-changed",
            "",
            "The document changed before the suggestion was ready.",
        ),
        ("", "", "engine-loading", "The model is still loading."),
        ("", "", "", "The model had nothing to add."),
    ],
)
def test_every_outcome_has_a_reason(text: str, outcome: str, rule: str, reason: str) -> None:
    snapshot = Document("file:///a", "python", 1, "").snapshot(0, 0)
    completion = Completion(
        text, 0, CompletionStats(), (CompletionSegment(text, "ngram", path="b/a.py", line=2),), rule
    )
    record = CompletionRecord("1", snapshot, completion, text=text, outcome=outcome)
    explanation = lsp_conversion.explanation(record, Path("/work"))
    assert explanation["reason"] == reason
    assert explanation["rule"] == (outcome or rule)
    assert explanation["shown"] == bool(text)
    (piece,) = explanation["pieces"]
    assert piece == {
        "text": text,
        "source": "ngram",
        "evidence": "b/a.py:3",
        "file": "/work/b/a.py",
        "line": 2,
    }


@pytest.mark.parametrize(
    ("rule", "finish_reason", "said"),
    [
        ("", "end", "The model ended the text"),
        ("", "deadline", "deadlineMs"),
        ("", "length", "maxTokens"),
        ("end-of-block", "end", "The block at the cursor"),
    ],
)
def test_where_no_rule_decided_the_reason_is_what_ended_the_writing(
    rule: str, finish_reason: str, said: str
) -> None:
    snapshot = Document("file:///a", "python", 1, "").snapshot(0, 0)
    completion = Completion("x", 0, CompletionStats(finish_reason=finish_reason), rule=rule)
    assert said in lsp_conversion.explanation(CompletionRecord("1", snapshot, completion), None)["reason"]


@pytest.mark.parametrize("rule", CUT_REASONS)
def test_every_rule_is_explained_by_its_own_sentence(rule: str) -> None:
    snapshot = Document("file:///a", "python", 1, "").snapshot(0, 0)
    record = CompletionRecord("1", snapshot, Completion("", 0, CompletionStats(), rule=rule))
    explanation = lsp_conversion.explanation(record, None)
    assert (explanation["rule"], explanation["reason"]) == (rule, CUT_REASONS[rule])


@pytest.mark.parametrize(
    ("piece", "folder"),
    [
        (CompletionSegment("x", "ngram", "this file"), Path("/work")),
        (CompletionSegment("x", "ngram", path="a.py", line=2), None),
    ],
)
def test_a_piece_that_was_read_from_no_known_file_names_none(
    piece: CompletionSegment, folder: Path | None
) -> None:
    snapshot = Document("file:///a", "python", 1, "").snapshot(0, 0)
    record = CompletionRecord("1", snapshot, Completion("x", 0, CompletionStats(), (piece,)))
    (shown,) = lsp_conversion.explanation(record, folder)["pieces"]
    assert (shown["file"], shown["line"]) == (None, None)
    assert shown["evidence"] == piece.evidence


def test_why_shows_no_secret_that_the_text_around_the_cursor_names() -> None:
    document = Document("file:///a", "python", 1, 'password = \n"""')
    pieces = CompletionSegment('"tu', "ngram"), CompletionSegment('lip"', "model")
    completion = Completion('"tulip"', 0, CompletionStats(), pieces)
    record = CompletionRecord("1", document.snapshot(0, 11), completion, text='"tulip"')
    told = lsp_conversion.explanation(record, None)
    assert told["text"] == '""'
    assert [piece["text"] for piece in told["pieces"]] == ['"', '"']
