"""Names that an edit writes where they mean nothing: no binding reaches them, or another definition has them.

Bounded in time and text. A language without a grammar has no misplaced names. Does not depend on models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tree_sitter import Node

from completion_engine.next_edit.edits import LineEdit
from completion_engine.next_edit.occurrences import definitions_of, occurrences_of
from completion_engine.next_edit.parsing import ParsedText, text_of
from completion_engine.next_edit.resolution import Resolver
from completion_engine.next_edit.scoped_names import TABLES, Occurrence
from completion_engine.next_edit.substitutions import is_name, tokens_of

_MAX_NAMES = 8  # new names of an edit
_ASSIGNMENTS = ("assignment", "declarator", "let_", "var_", "for_")
_MAX_LEVELS = 4  # from a name to the assignment that binds it


def misplaces_names(parsed: ParsedText, edit: LineEdit) -> bool:
    """Return whether an edit, which made a text, uses a name that the text binds elsewhere alone, or defines
    one twice.
    """
    old, new = (Counter(tokens_of("\n".join(side))) for side in (edit.old, edit.new))
    names = sorted(filter(is_name, new - old))[:_MAX_NAMES]
    here = range(edit.first_line, edit.first_line + len(edit.new))
    return any(_is_misplaced(parsed, name, here) for name in names)


def free_names(parsed: ParsedText, node: Node) -> Iterator[str]:
    """Yield the names in a node that something around it must bind."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        name = text_of(node) if node.child_count == 0 and is_name(text_of(node)) else ""
        found = (one for one in occurrences_of(parsed, name) or () if one.node == node) if name else ()
        if any(one.is_free for one in found):
            yield name
        waiting += node.children


def reaches(parsed: ParsedText, binding: Occurrence, at: Node) -> bool:
    """Return whether a binding counts at a node: its scope is around it, and it comes first in a function.

    It does not count in the value that it is bound to, except in functions there.
    """
    home = binding.home
    is_before = home.kind == "file" or binding.start < at.start_byte
    if not (is_before and _is_within(at, home.node)):
        return False
    value = _value_of(binding.node)
    return value is None or not _is_within(at, value) or _runs_later(parsed, at, value)


def _runs_later(parsed: ParsedText, node: Node, value: Node) -> bool:
    """Return whether a function in a value is around a node."""
    scopes = TABLES[parsed.language].scopes
    above: Node | None = node
    while above is not None and _is_within(above, value):
        if scopes.get(above.type) == "function":
            return True
        above = above.parent
    return False


def _is_within(node: Node, other: Node) -> bool:
    return other.start_byte <= node.start_byte and node.end_byte <= other.end_byte


def _value_of(binding: Node) -> Node | None:
    """Return the value in the assignment, declaration or loop that binds a name."""
    node = binding.parent
    for _ in range(_MAX_LEVELS):
        if node is None:
            return None
        if any(word in node.type for word in _ASSIGNMENTS):
            return node.child_by_field_name("value") or node.child_by_field_name("right")
        node = node.parent
    return None


def _is_misplaced(parsed: ParsedText, name: str, here: range) -> bool:
    found = occurrences_of(parsed, name) or []
    bindings = definitions_of(parsed, name)
    keys = Resolver(parsed, found).keys(found) if found else []
    defined = Counter(key for one, key in zip(found, keys, strict=True) if one.role in ("outer", "member"))
    for one, key in zip(found, keys, strict=True):
        if one.position[0] in here:
            is_bound = one.is_definition or any(reaches(parsed, it, one.node) for it in bindings)
            if bindings and not is_bound and one.is_free:
                return True
            if one.role in ("outer", "member") and defined[key] > 1:
                return True
    return False
