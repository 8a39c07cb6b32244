"""Names that an edit writes where they mean nothing: no binding reaches them, or another definition has them.

Bounded in time and text. A language without a grammar has no misplaced names. Does not depend on models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from tree_sitter import Node

from completion_engine.next_edit.added_items import keyword_of
from completion_engine.next_edit.bindings import identifiers, is_binding
from completion_engine.next_edit.edits import EditDocument, LineEdit
from completion_engine.next_edit.linked_names import receiver_of, scope_of
from completion_engine.next_edit.parsing import DocumentParser, ParsedText
from completion_engine.next_edit.substitutions import is_name, tokens_of

_MAX_NAMES = 8  # new names of an edit
_MAX_BINDINGS = 32  # bindings of one name
_DEFINITIONS = ("function", "method", "class", "struct", "enum", "trait", "interface")
_MEMBERS = ("property_", "field_")


def misplaces_names(document: EditDocument, edit: LineEdit, parser: DocumentParser) -> bool:
    """Return whether an edit uses a name that the file binds elsewhere alone, or defines a name twice."""
    old, new = (set(tokens_of("\n".join(side))) for side in (edit.old, edit.new))
    names = sorted(filter(is_name, new - old))[:_MAX_NAMES]
    if not names:
        return False
    lines = document.lines
    edited = replace(document, lines=(*lines[: edit.first_line], *edit.new, *lines[edit.end_line :]))
    parsed = parser.parsed(edited)
    here = range(edit.first_line, edit.first_line + len(edit.new))
    return parsed is not None and any(_is_misplaced(parsed, name, here) for name in names)


def free_names(node: Node) -> Iterator[Node]:
    """Yield the identifiers in a node that something around it must bind."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.child_count == 0 and node.type.endswith("identifier") and is_free(node):
            yield node
        waiting += node.children


def bindings_of(parsed: ParsedText, name: str) -> list[Node]:
    """Return the first 32 bindings of a name."""
    return _bindings(identifiers(parsed, name))


def is_free(name: Node) -> bool:
    """Return whether an identifier is neither a member of something nor the name of an argument."""
    parent = name.parent
    is_keyword = parent is not None and keyword_of(parent) != "" and parent.children[0] == name
    return not is_keyword and receiver_of(name) is None and not name.type.startswith(_MEMBERS)


def reaches(binding: Node, at: Node) -> bool:
    """Return whether a binding counts at a node: its scope is around it, and it comes first in a function."""
    scope = scope_of(binding)
    is_around = scope.start_byte <= at.start_byte and at.end_byte <= scope.end_byte
    return is_around and (scope.parent is None or binding.start_byte < at.start_byte)


def _is_misplaced(parsed: ParsedText, name: str, here: range) -> bool:
    nodes = list(identifiers(parsed, name))
    bindings = _bindings(nodes)
    for node in nodes:
        if node.start_point.row in here:
            is_bound = node in bindings or any(reaches(binding, node) for binding in bindings)
            is_member = parsed.text[: node.start_byte].endswith((b".", b":"))  # also within macros
            is_lost = bindings and not is_bound and is_free(node) and not is_member
            if is_lost or _is_defined_twice(node, bindings):
                return True
    return False


def _bindings(names: Iterable[Node]) -> list[Node]:
    return list(islice(filter(is_binding, names), _MAX_BINDINGS))


def _is_defined_twice(name: Node, bindings: list[Node]) -> bool:
    others = (node for node in bindings if node != name and _is_definition(node))
    return _is_definition(name) and any(scope_of(node) == scope_of(name) for node in others)


def _is_definition(name: Node) -> bool:
    parent = name.parent
    is_own_name = parent is not None and parent.child_by_field_name("name") == name
    return is_own_name and parent is not None and any(word in parent.type for word in _DEFINITIONS)
