"""Whether an edit would break code that parses: errors in the lines around it, before and after.

Bounded in time. A language without a grammar has no errors.
"""

from __future__ import annotations

from functools import cache

from tree_sitter import Node, Parser

from completion_engine.grammars import new_parser, parse_within
from completion_engine.next_edit.edits import EditDocument, LineEdit

_NUM_LINES_AROUND = 60
_MAX_CHARS = 20_000
_MAX_PARSE_S = 0.05
_MAX_ERRORS = 50


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
    old, new = (_num_errors(parser, text) for text in texts)
    return new is not None and old is not None and new > old


def _num_errors(parser: Parser, text: str) -> int | None:
    """Return the number of errors, up to `_MAX_ERRORS`; None where the parser took too long."""
    tree = parse_within(parser, text.encode("utf-8", "replace"), _MAX_PARSE_S)
    if tree is None:
        return None
    waiting: list[Node] = [tree.root_node]
    num_errors = 0
    while waiting and num_errors < _MAX_ERRORS:
        node = waiting.pop()
        if node.has_error:
            num_errors += node.is_error or node.is_missing
            waiting += node.children
    return num_errors
