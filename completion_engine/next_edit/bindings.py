"""Bindings of a name that an edit exchanges: whether its file still has one.

An edit that renames a definition leaves uses of a name that nothing binds any more. A name that is still
bound means what it meant before. Bounded in time and text. Does not depend on models.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from tree_sitter import Node

from completion_engine.next_edit.edits import Hunk, LineEdit
from completion_engine.next_edit.parsing import ParsedText
from completion_engine.next_edit.substitutions import exchanged_names

_MAX_OCCURRENCES = 256
_MAX_LEVELS = 4  # from a name to the node that binds it

_BINDING_FIELDS = frozenset({"name", "left", "pattern", "alias", "declarator", "parameter", "parameters"})
_BINDING_NODES = ("definition", "declaration", "declarator", "item", "parameter", "assignment", "spec",
                  "binding", "for_", "foreach", "let_", "alias", "signature", "catch", "_clause",
                  "named_expression", "arrow_function", "lambda", "type_switch", "receive", "resource",
                  "enumerator", "enum_constant", "preproc_def")  # fmt: skip
_PATTERNS = ("as_pattern_target", "case_pattern", "match_pattern", "exception_variable", "variable_list",
             "enum_body")  # fmt: skip
# The only fields of these nodes that bind: no names of properties, classes and values.
_BOUND_FIELDS = {"pair_pattern": "value", "field_pattern": "pattern", "instanceof_expression": "name",
                 "class_pattern": ""}  # fmt: skip
_PARAMETER_LISTS = ("parameters", "lambda_parameters", "formal_parameters")
_IMPORTS = ("import", "use_")
_MEMBERS = ("attribute", "member_expression", "field_expression", "selector_expression")
_MEMBER_FIELDS = frozenset({"attribute", "property", "field"})
_CALLS = ("argument_list", "arguments", "call", "call_expression", "subscript", "block")
_CHANGES = ("augmented_assignment", "compound_assignment", "update_expression")
_PATH_FIELDS = frozenset({"path", "scope", "module_name"})
_VALUE_FIELDS = frozenset(
    {"value", "right", "type", "body", "return_type", "object", "function", "condition", "arguments"}
)


class OldName(IntEnum):
    """The state of the name that an edit replaces: still bound, not known, or dangling.

    A dangling name has no binding left in its file, and the hunk that the edit repeats binds the new name.
    """

    BOUND = -1
    UNKNOWN = 0
    DANGLING = 1


def state_of_old_name(parsed: ParsedText | None, edit: LineEdit, hunk: Hunk) -> OldName:
    """Return the state of the one name that `edit` exchanges as `hunk` did, in the tree before the edit."""
    names = exchanged_names(edit)
    if parsed is None or len(names) != 1:
        return OldName.UNKNOWN
    ((old, new),) = names
    if any(True for _ in bindings_of(parsed, old)):
        return OldName.BOUND
    found = bindings_of(parsed, new) if edit.document == hunk.document else ()
    is_renamed = any(hunk.first_line <= node.start_point.row < hunk.end_line for node in found)
    return OldName.DANGLING if is_renamed else OldName.UNKNOWN


def identifiers(parsed: ParsedText, name: str) -> Iterator[Node]:
    """Yield the leaves of a tree that are a name, at most 256 of them."""
    token = name.encode("utf-8", "replace")
    at = parsed.text.find(token)
    for _ in range(_MAX_OCCURRENCES):
        if at < 0:
            return
        end = at + len(token)
        node = parsed.node_at(at, end)
        if node is not None and (node.start_byte, node.end_byte) == (at, end) and _is_identifier(node):
            yield node
        at = parsed.text.find(token, end)


def _is_identifier(node: Node) -> bool:
    return node.child_count == 0 and node.type.endswith("identifier")


def bindings_of(parsed: ParsedText, name: str) -> Iterator[Node]:
    """Yield the identifiers that bind a name."""
    return filter(is_binding, identifiers(parsed, name))


def is_binding(node: Node) -> bool:
    """Return whether an identifier is defined, declared, assigned or imported where it stands."""
    for _ in range(_MAX_LEVELS):
        parent = node.parent
        if parent is None:
            return False
        is_bound = _is_bound_in(parent, node)
        if is_bound is not None:
            return is_bound
        node = parent
    return False


def _is_bound_in(parent: Node, node: Node) -> bool | None:
    """Return whether a node binds what its child `node` names; None where a node above it decides."""
    field = _field_of(parent, node)
    kind = parent.type
    if kind in _CALLS or kind.startswith(_CHANGES) or _is_only_imported_from(parent, node, field):
        return False
    if kind in _MEMBERS:
        return None if field in _MEMBER_FIELDS else False
    if kind in (*_PARAMETER_LISTS, *_PATTERNS) or kind.startswith(_IMPORTS) or "import" in kind:
        return True
    if kind in _BOUND_FIELDS:
        return field == _BOUND_FIELDS[kind] or node.type.startswith("shorthand")
    if field in _VALUE_FIELDS:
        return False
    is_name_field = field in _BINDING_FIELDS or (
        "parameter" in kind and field is None and kind != "type_parameter"
    )
    return True if is_name_field and any(word in kind for word in _BINDING_NODES) else None


def _is_only_imported_from(parent: Node, node: Node, field: str | None) -> bool:
    """Return whether a node is a part of a module's path, or a name that an import gives another name."""
    if parent.type == "dotted_name":
        return parent.children[0] != node
    is_renamed = field == "name" and parent.child_by_field_name("alias") is not None
    return is_renamed or field in _PATH_FIELDS


def _field_of(parent: Node, node: Node) -> str | None:
    """Return the field of a node's child."""
    for at, child in enumerate(parent.children):
        if child == node:
            return parent.field_name_for_child(at)
    return None
