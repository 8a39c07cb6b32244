"""Names that an edit writes where they mean nothing: no binding reaches them, or another definition has them.

Bounded in time and text. A language without a grammar has no misplaced names. Does not depend on models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tree_sitter import Node

from completion_engine.next_edit.added_items import is_keyword
from completion_engine.next_edit.bindings import identifiers, is_binding
from completion_engine.next_edit.edits import LineEdit
from completion_engine.next_edit.linked_names import is_within, receiver_of, scope_of
from completion_engine.next_edit.parsing import ParsedText
from completion_engine.next_edit.substitutions import is_name, tokens_of

_MAX_NAMES = 8  # new names of an edit
_DEFINITIONS = ("function", "method", "class", "struct", "enum", "trait", "interface")
_MEMBERS = ("property_", "field_")
_ASSIGNMENTS = ("assignment", "declarator", "let_", "var_", "for_")
_AT_ONCE = ("comprehension", "generator_expression")
_MAX_LEVELS = 4  # from a name to the assignment that binds it


def misplaces_names(parsed: ParsedText, edit: LineEdit) -> bool:
    """Return whether an edit, which made a text, uses a name that the text binds elsewhere alone, or defines
    one twice.
    """
    old, new = (Counter(tokens_of("\n".join(side))) for side in (edit.old, edit.new))
    names = sorted(filter(is_name, new - old))[:_MAX_NAMES]
    here = range(edit.first_line, edit.first_line + len(edit.new))
    return any(_is_misplaced(parsed, name, here) for name in names)


def free_names(node: Node) -> Iterator[Node]:
    """Yield the identifiers in a node that something around it must bind."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.child_count == 0 and node.type.endswith("identifier") and is_free(node):
            yield node
        waiting += node.children


def is_free(name: Node) -> bool:
    """Return whether an identifier is neither a member of something nor the name of an argument."""
    is_member = receiver_of(name) is not None or name.type.startswith(_MEMBERS)
    return not (is_member or is_keyword(name))


def reaches(binding: Node, at: Node) -> bool:
    """Return whether a binding counts at a node: its scope is around it, and it comes first in a function.

    It does not count in the value that it is bound to, except in functions there.
    """
    scope = scope_of(binding)
    is_before = scope.parent is None or binding.start_byte < at.start_byte
    if not (is_before and is_within(at, scope)):
        return False
    value = _value_of(binding)
    return value is None or not is_within(at, value) or _function_of(at) != scope


def _function_of(node: Node) -> Node:
    """Return the smallest scope around a node whose code may run later."""
    scope = scope_of(node)
    while scope.parent is not None and scope.type.endswith(_AT_ONCE):
        scope = scope_of(scope)
    return scope


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
    nodes = list(identifiers(parsed, name))
    bindings = list(filter(is_binding, nodes))
    for node in nodes:
        if node.start_point.row in here:
            is_bound = node in bindings or any(reaches(binding, node) for binding in bindings)
            is_member = parsed.text[: node.start_byte].endswith((b".", b":"))  # also within macros
            is_lost = bindings and not is_bound and is_free(node) and not is_member
            if is_lost or _is_defined_twice(node, bindings):
                return True
    return False


def _is_defined_twice(name: Node, bindings: list[Node]) -> bool:
    others = (node for node in bindings if node != name and _is_definition(node))
    return _is_definition(name) and any(scope_of(node) == scope_of(name) for node in others)


def _is_definition(name: Node) -> bool:
    parent = name.parent
    is_own_name = parent is not None and parent.child_by_field_name("name") == name
    return is_own_name and parent is not None and any(word in parent.type for word in _DEFINITIONS)
