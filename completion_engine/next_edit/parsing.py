"""Syntax trees of documents, and whether an edit would break code that parses.

Bounded in time and text. A language without a grammar has no trees and no errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tree_sitter import Node, Parser, Tree

from completion_engine.grammars import new_parser, parse_within
from completion_engine.next_edit.edits import EditDocument, LineEdit, Lines

_NUM_LINES_AROUND = 60
_MAX_ERRORS = 50
_MAX_DEPTH = 256
_MAX_CHARS = 300_000
_MAX_PARSE_S = 0.2


class PathStep(NamedTuple):
    """A node on the way from the root to a leaf, and its field in the node above."""

    node: Node
    field: str | None


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text in UTF-8 and its tree. `found` keeps the occurrences of names that were searched."""

    tree: Tree
    text: bytes
    language: str
    found: dict[str, list[Any] | None] = field(default_factory=dict, compare=False)

    def path_to(self, start: int, end: int) -> list[PathStep] | None:
        """Return the way from the root to the leaf at a span of bytes; None where it is nested too deeply."""
        cursor = self.tree.walk()
        path = [PathStep(self.tree.root_node, None)]
        for _ in range(_MAX_DEPTH):
            at = cursor.goto_first_child_for_byte(start)
            node = cursor.node
            if at is None or node is None or node.start_byte >= end:
                return path
            path.append(PathStep(node, cursor.field_name))
        return None

    def node_at(self, start: int, end: int) -> Node | None:
        """Return the smallest node that holds a span of bytes; None where it is nested too deeply.

        The parser looks for a node's parent from the root, so that a way up takes the square of the depth.
        """
        cursor = self.tree.walk()
        for _ in range(_MAX_DEPTH):
            if cursor.goto_first_child_for_byte(start) is None:
                return self.tree.root_node.descendant_for_byte_range(start, end)
        return None


class DocumentParser:
    """Parses whole documents, and keeps the tree of the last one. Used on one thread."""

    def __init__(self) -> None:
        self._parsers: dict[str, Parser | None] = {}
        self._last: tuple[tuple[str, Lines], ParsedText | None] | None = None

    def parsed(self, document: EditDocument) -> ParsedText | None:
        """Return a document's tree; None without a grammar, or where it is too long or too slow."""
        key = document.language, document.lines
        if self._last is None or self._last[0] != key:
            self._last = key, self.parse(document)
        return self._last[1]

    def forget(self) -> None:
        """Drop the tree, and with it the text of a document."""
        self._last = None

    def parse(self, document: EditDocument) -> ParsedText | None:
        """Return a document's tree as `parsed` does, without keeping it."""
        if document.language not in self._parsers:
            self._parsers[document.language] = new_parser(document.language)
        parser = self._parsers[document.language]
        if parser is None or sum(map(len, document.lines)) > _MAX_CHARS:
            return None
        text = "\n".join(document.lines).encode("utf-8", "replace")
        tree = parse_within(parser, text, _MAX_PARSE_S)
        return None if tree is None else ParsedText(tree, text, document.language)


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def with_spans(line: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Return a line with some spans replaced by texts; a span is (start, end, text) in bytes, as in trees."""
    text = line.encode("utf-8", "replace")
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new.encode("utf-8", "replace") + text[end:]
    return text.decode("utf-8", "replace")


def adds_errors(old: ParsedText | None, new: ParsedText | None) -> bool:
    """Return whether a text has more errors after an edit than before; False where one has no tree."""
    if old is None or new is None or not new.tree.root_node.has_error:
        return False
    return _num_errors(new.tree) > _num_errors(old.tree)


def with_lines_around(document: EditDocument, edit: LineEdit) -> tuple[EditDocument, LineEdit]:
    """Return the part of a document from 60 lines before an edit to 60 lines after it, and the edit in it."""
    first = max(0, edit.first_line - _NUM_LINES_AROUND)
    lines = document.lines[first : edit.end_line + _NUM_LINES_AROUND]
    return replace(document, lines=lines), replace(edit, first_line=edit.first_line - first)


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
