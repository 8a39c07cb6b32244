"""Syntax trees of documents, and whether an edit would break code that parses.

Bounded in time and text. A language without a grammar has no trees and no errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from tree_sitter import Node, Parser, Tree

from completion_engine.grammars import new_parser, parse_within
from completion_engine.next_edit.edits import EditDocument, LineEdit, Lines

_NUM_LINES_AROUND = 60
_MAX_CHARS = 20_000
_MAX_PARSE_S = 0.05
_MAX_ERRORS = 50
_MAX_DOCUMENT_CHARS = 300_000
_MAX_DOCUMENT_PARSE_S = 0.2


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text in UTF-8 and its tree."""

    tree: Tree
    text: bytes


class DocumentParser:
    """Parses whole documents, and keeps the tree of the last one. Used on one thread."""

    def __init__(self) -> None:
        self._parsers: dict[str, Parser | None] = {}
        self._last: tuple[tuple[str, Lines], ParsedText | None] | None = None

    def parsed(self, document: EditDocument) -> ParsedText | None:
        """Return a document's tree; None without a grammar, or where it is too long or too slow."""
        key = document.language, document.lines
        if self._last is None or self._last[0] != key:
            self._last = key, self._parse(document)
        return self._last[1]

    def forget(self) -> None:
        """Drop the tree, and with it the text of a document."""
        self._last = None

    def _parse(self, document: EditDocument) -> ParsedText | None:
        if document.language not in self._parsers:
            self._parsers[document.language] = new_parser(document.language)
        parser = self._parsers[document.language]
        if parser is None or sum(map(len, document.lines)) > _MAX_DOCUMENT_CHARS:
            return None
        text = "\n".join(document.lines).encode("utf-8", "replace")
        tree = parse_within(parser, text, _MAX_DOCUMENT_PARSE_S)
        return None if tree is None else ParsedText(tree, text)


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def with_spans(line: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Return a line with some spans replaced by texts; a span is (start, end, text) in bytes, as in trees."""
    text = line.encode("utf-8", "replace")
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new.encode("utf-8", "replace") + text[end:]
    return text.decode("utf-8", "replace")


@cache
def edit_parser(language: str) -> Parser | None:
    """Return the next edit's own parser of a language: a parser serves one thread."""
    return new_parser(language)


def breaks_syntax(document: EditDocument, edit: LineEdit) -> bool:
    """Return whether the text around an edit has more errors after it than before."""
    parser = edit_parser(document.language)
    before = document.lines[max(0, edit.first_line - _NUM_LINES_AROUND) : edit.first_line]
    after = document.lines[edit.end_line : edit.end_line + _NUM_LINES_AROUND]
    texts = ["\n".join((*before, *side, *after)) for side in (edit.old, edit.new)]
    if parser is None or max(map(len, texts)) > _MAX_CHARS:
        return False
    old, new = (parse_within(parser, text.encode("utf-8", "replace"), _MAX_PARSE_S) for text in texts)
    return new is not None and old is not None and _num_errors(new) > _num_errors(old)


def breaks_document(
    document: EditDocument, edit: LineEdit, documents: DocumentParser, edited_ones: DocumentParser
) -> bool:
    """Return whether a whole document has more errors after an edit than before.

    Each of the two parsers keeps the tree that the next call may need again.
    """
    new = edited_ones.parsed(edited(document, edit))
    if new is None or not new.tree.root_node.has_error:
        return False
    old = documents.parsed(document)
    return old is not None and _num_errors(new.tree) > _num_errors(old.tree)


def edited(document: EditDocument, edit: LineEdit) -> EditDocument:
    """Return a document after an edit."""
    lines = document.lines
    return replace(document, lines=(*lines[: edit.first_line], *edit.new, *lines[edit.end_line :]))


def _num_errors(tree: Tree) -> int:
    """Return the number of errors, up to `_MAX_ERRORS`."""
    waiting: list[Node] = [tree.root_node]
    num_errors = 0
    while waiting and num_errors < _MAX_ERRORS:
        node = waiting.pop()
        if node.has_error:
            num_errors += node.is_error or node.is_missing
            waiting += node.children
    return num_errors
