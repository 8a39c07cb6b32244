"""Reads the scopes around a node from the way down to it, by the table of its language."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from completion_engine.next_edit.name_roles import RoleTable
from completion_engine.next_edit.parsing import PathStep, text_of
from completion_engine.next_edit.scoped_names import Scope

_MAX_HEAD_CHARS = 400
_QUALIFIED = re.compile(r"(\w+)\s*(?:<[^()]*>)?\s*::\s*~?\w+\s*$")
_INDEXED = re.compile(r"(.+)[.:]\w+")

Path = Sequence[PathStep]


def scopes_around(table: RoleTable, path: Path, last: int) -> list[Scope]:
    """Return the scopes on the way down to the node at the place `last`, the outermost first."""
    scopes = [Scope("file", path[0].node)]
    for at in range(1, last + 1):
        node, field = path[at]
        parent = path[at - 1].node
        if _is_outside(table, parent, node, field) and len(scopes) > 1:
            scopes.pop()
        if node.type in table.setting("receiver") and (found := _receiver_class(node)):
            scopes.append(Scope("class", node, *found))
        kind = table.scopes.get(node.type)
        is_same = (
            kind == "block" and field == "body" and scopes[-1].node == parent and scopes[-1].kind != "class"
        )
        if kind is not None and not is_same:
            name = _class_name(node) if kind in ("class", "enum") else ""
            scopes.append(Scope(kind, node, name))
    if last + 1 < len(path) and _is_outside(table, path[last].node, *path[last + 1]) and len(scopes) > 1:
        scopes.pop()
    return scopes


def _is_outside(table: RoleTable, parent: Node, node: Node, field: str | None) -> bool:
    outside = table.setting("outside")
    if f"{parent.type}.{field}" not in outside and f"{parent.type}>{node.type}" not in outside:
        return False
    if parent.type != "for_in_clause":
        return True
    around = parent.parent  # the first clause of a comprehension is read outside
    clauses = [it for it in around.children if it.type == "for_in_clause"] if around is not None else []
    return clauses[:1] == [parent]


def _class_name(node: Node) -> str:
    named = node.child_by_field_name("name")
    if named is None:
        named = node.child_by_field_name("type") if node.type == "impl_item" else None
    found = re.findall(r"\w+", text_of(named).partition("<")[0]) if named is not None else []
    return found[-1] if found else f"#{node.id}"


def _receiver_class(node: Node) -> tuple[str, str] | None:
    """Return the class that a function outside of it belongs to, and the name of its own object."""
    receiver = node.child_by_field_name("receiver")
    if receiver is not None:
        words = re.findall(r"\w+", text_of(receiver).partition("[")[0])
        return (words[-1], words[0] if len(words) > 1 else "") if words else None
    name = node.child_by_field_name("name")
    if name is not None:
        indexed = _INDEXED.fullmatch(text_of(name))
        return (indexed[1], "self") if indexed else None
    declarator = node.child_by_field_name("declarator")
    text = text_of(declarator)[:_MAX_HEAD_CHARS].partition("(")[0] if declarator is not None else ""
    qualified = _QUALIFIED.search(text)
    return (qualified[1], "this") if qualified else None
