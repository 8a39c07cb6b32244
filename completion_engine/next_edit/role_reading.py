"""Reads the role of a name, and the scopes around it, from the path down to it, by the table of its language.

Owns what a table cannot say. Bounded by the length of the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tree_sitter import Node

from completion_engine.next_edit.parsing import (
    BINDING,
    Occurrence,
    ParsedText,
    PathStep,
    RoleTable,
    Scope,
    text_of,
)

SIGILS = ("instance_variable", "class_variable", "global_variable", "private_property_identifier")
_PROMOTIONS = ("accessibility_modifier", "readonly", "override_modifier", "visibility_modifier")
_COLLECTIONS = ("map_type", "array_type", "slice_type", "implicit_length_array_type")
_RUST_PATTERNS = ("match_pattern", "let_condition", "let_declaration", "for_expression")
_MAX_HEAD_CHARS = 400
_QUALIFIED = re.compile(r"(\w+)\s*(?:<[^()]*>)?\s*::\s*~?\w+\s*$")
_INDEXED = re.compile(r"(.+)[.:]\w+")
Path = Sequence[PathStep]


def read_occurrences(
    parsed: ParsedText, table: RoleTable, path: Path, start: int, end: int
) -> Iterator[Occurrence]:
    """Yield a name as an occurrence; twice if it is a variable and a member at once."""
    leaf, parent = path[-1].node, path[-2].node if len(path) > 1 else path[-1].node
    is_short = leaf.type == "shorthand_field_identifier"
    role, space, at = _climbed(table, path, len(path) - (2 if is_short else 1))
    receiver, is_write = "", False
    if role == "access":
        receiver = _receiver(parent, leaf)
        role, at, is_write = _accessed(table, path, at)
    elif role == "field":
        role, receiver = _of_literal(table, path)
    elif role == "keyword":
        receiver = _callee(path)
    role, space, is_write = _with_sigil(path, role, space, is_write=is_write)
    role = _in_language(parsed, path, at, role, start)
    scopes = scopes_around(table, path, at if role in BINDING else len(path) - 2)
    if role == "outer" and scopes and scopes[-1].node == path[at].node:
        scopes = scopes[:-1]
    if role == "member" and receiver:
        scopes.append(Scope("class", parent, receiver))
    is_of_class = role in ("outer", "decl", "member") and scopes and scopes[-1].class_name == text_of(leaf)
    if is_of_class and parsed.language == "cpp":
        role, scopes = "use", scopes[:-1]  # a constructor
    visible_from = {"let": path[at].node.end_byte, "decl": end}.get(role, 0)
    if role == "outer" and table.setting("ordered"):
        visible_from = start
    is_promoted = role == "def" and any(
        it.type in _PROMOTIONS for step in path[-3:-1] for it in step.node.children[:3]
    )
    one = Occurrence(
        leaf, start, end, role, space, tuple(scopes), visible_from, receiver, is_write, is_promoted
    )
    yield from _shorthands(parsed, table, path, one)


def _climbed(table: RoleTable, path: Path, at: int) -> tuple[str, str, int]:
    """Return the role and the space of the node at a place of the way, and the place of what decides them."""
    while at > 0:
        found = _role_of(table, path, at)
        at -= 1
        role, _, space = found.partition("/")
        if role != "up":
            return role, space, at
    return "use", "", 0


def _role_of(table: RoleTable, path: Path, at: int) -> str:
    node, field = path[at]
    parent = path[at - 1].node
    contexts = [f"{parent.type}.{field}"] if field else []
    if f"{parent.type}.+" in table.roles and parent.named_child(0) != node:
        contexts.append(f"{parent.type}.+")
    contexts.append(parent.type)
    if at > 1:
        grand = path[at - 2].node.type
        contexts = [*(f"{grand}>{it}" for it in contexts), *contexts]
    for context in contexts:
        for condition, role in table.roles.get(context, ()):
            if not condition or _holds(condition, parent):
                return role
    return "use"


def _holds(condition: str, node: Node) -> bool:
    is_absent = condition.startswith("!")
    return (node.child_by_field_name(condition.removeprefix("!")) is None) is is_absent


def _accessed(table: RoleTable, path: Path, at: int) -> tuple[str, int, bool]:
    """Return the role of a name after a dot, where it is decided, and whether the member is written."""
    above, _, higher = _climbed(table, path, at)
    if above in ("import", "key"):
        return above, higher, False
    is_defined = above in ("outer", "decl") or path[higher].node.type == "function_declaration"
    if is_defined and above != "use":
        return "member", higher, False
    return "access", at, above in BINDING or above == "set"


def _receiver(parent: Node, leaf: Node) -> str:
    first = parent.children[0]
    return text_of(first) if first != leaf else ""


def _of_literal(table: RoleTable, path: Path) -> tuple[str, str]:
    """Return the role and the type of a literal's key."""
    for step in reversed(path[:-1]):
        for context in table.setting("literal"):
            node, _, field = context.partition(".")
            kind = step.node.child_by_field_name(field) if step.node.type == node else None
            if kind is not None:
                if kind.type in _COLLECTIONS:
                    return "use", ""
                return "field", text_of(kind) if kind.child_count == 0 else ""
    return "key", ""


def _callee(path: Path) -> str:
    """Return the last name of what a named argument is passed to."""
    for step in reversed(path[:-1]):
        callee = next(
            (
                it
                for it in map(step.node.child_by_field_name, ("function", "method", "name"))
                if it is not None
            ),
            None,
        )
        if callee is not None and step.node.child_by_field_name("arguments") is not None:
            return re.split(r"\W+", text_of(callee))[-1]
    return ""


def _with_sigil(path: Path, role: str, space: str, *, is_write: bool) -> tuple[str, str, bool]:
    """Return the role and the space of a name that may have a mark, and whether it is written."""
    kind = path[-1].node.type
    if kind in ("instance_variable", "class_variable"):
        return "own", "@", role == "var"
    if kind == "global_variable":
        return "assign" if role == "var" else "use", "$", False
    if kind == "constant" and role != "access":
        return role, "const", is_write
    if len(path) > 1 and path[-2].node.type == "variable_name" and role not in ("member", "access"):
        return role, "$", is_write
    return role, space, is_write


def _in_language(parsed: ParsedText, path: Path, at: int, role: str, start: int) -> str:
    """Return a role as it is where a table of contexts does not suffice."""
    language, leaf, node = parsed.language, path[-1].node, path[at].node
    parent = path[-2].node if len(path) > 1 else leaf
    if role == "var" and node.type == "case_pattern" and parent.child_count > 1:
        return "use"  # a dotted name in a pattern of Python
    if language == "rust":
        return _in_rust(parsed, path, node, role, start)
    if language == "lua" and role == "key" and parsed.text[:start].rstrip().endswith(b"["):
        return "use"
    if language == "lua" and role == "assign" and node.children[0].type == "local":
        return "outer"
    if language == "csharp" and parent.type == "anonymous_object_creation_expression":
        is_key = parsed.text[leaf.end_byte : leaf.end_byte + 40].lstrip().startswith(b"=")
        return "key" if is_key else "use"
    return role


def _in_rust(parsed: ParsedText, path: Path, node: Node, role: str, start: int) -> str:
    leaf, parent = path[-1].node, path[-2].node
    if role in ("def", "let"):
        is_constant = parsed.text[start : start + 1].isupper() and node.type in _RUST_PATTERNS
        return "use" if is_constant else role
    if leaf.type == "string_content":
        name = re.match(rb"\w*", parsed.text[start:])
        is_argument = name and re.search(rb",\s*" + name[0] + rb"\s*=[^=]", path[-3].node.text or b"")
        return "key" if is_argument else "use"
    if role == "use" and parent.type == "token_tree":
        before, after = (
            parsed.text[max(0, start - 40) : start].rstrip(),
            parsed.text[leaf.end_byte :][:40].lstrip(),
        )
        is_named = before.endswith(b",") and re.match(rb"=[^=]", after) is not None
        is_key = re.match(rb":[^:]", after)
        return "key" if before.endswith((b".", b"::")) or is_key or is_named else "use"
    return role


def _shorthands(parsed: ParsedText, table: RoleTable, path: Path, one: Occurrence) -> Iterator[Occurrence]:
    """Yield an occurrence, with the form that keeps the key of a short property."""
    leaf, parent, name = one.node, path[-2].node if len(path) > 1 else one.node, text_of(one.node)
    if leaf.type.startswith("shorthand_"):
        one = replace(one, form=f"{name}: {{}}")
    if parent.type == "shorthand_field_initializer" or leaf.type == "shorthand_field_identifier":
        role, kind = _of_literal(table, path)
        one = replace(one, role="use" if one.role == "shorthand" else one.role, form=f"{name}: {{}}")
        yield replace(
            one,
            role=role,
            receiver=kind,
            form=f"{{}}: {name}",
            scopes=tuple(scopes_around(table, path, len(path) - 2)),
        )
    elif one.role == "shorthand":
        one = replace(one, role="use", start=parent.start_byte, end=parent.end_byte, form=f"{name}: {{}}")
    elif parent.type == "anonymous_object_creation_expression" and one.role == "use":
        is_value = parsed.text[: leaf.start_byte].rstrip().endswith(b"=")
        one = one if is_value else replace(one, form=f"{name} = {{}}")
    yield one


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
