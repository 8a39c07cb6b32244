"""The names that the text around a cursor uses, with weights, and the imports of its file.

They come from the syntax tree if the language has a grammar, otherwise from the words of the text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from completion_engine.context.outline import MAX_PARSE_S
from completion_engine.grammars import new_parser, parse_within

_CHARS_BEFORE, _CHARS_AFTER = 3_000, 1_000  # the size of the cursor's surroundings
_HEAD_CHARS = 6_000  # imports are searched in this many first characters of a file
_MAX_NODES = 6_000
_HALF_LINES = 12.0  # distance from the cursor that halves the weight of a name

_CALLED, _READ, _PLAIN, _IMPORTED = 1.0, 0.8, 0.3, 0.5
_WORD = re.compile(r"[^\W\d]\w{2,}")
_IMPORTS = ("import", "use_decl", "preproc_include", "include", "require", "using_directive", "package_")
_CALLS = ("call", "call_expression", "new_expression", "object_creation_expression", "macro_invocation",
          "method_invocation", "decorator")  # fmt: skip
_MEMBERS = ("attribute", "member_expression", "selector_expression", "field_expression", "field_access",
            "scoped_identifier", "qualified_identifier")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Uses:
    """The names used around the cursor with their weights, and the words of the file's imports."""

    names: dict[str, float]
    imports: frozenset[str]


def uses_at(prefix: str, suffix: str, language: str) -> Uses:
    """Return the names used around a cursor between `prefix` and `suffix`."""
    before, after = prefix[-_CHARS_BEFORE:], suffix[:_CHARS_AFTER]
    cursor_line = before.count("\n")
    weights: dict[str, float] = defaultdict(float)
    for name, line, weight in _names(before + after, language):
        weights[name] = max(weights[name], weight / (1.0 + abs(line - cursor_line) / _HALF_LINES))
    imported = frozenset(_imported(prefix[:_HEAD_CHARS], language))
    for name in imported & weights.keys():
        weights[name] += _IMPORTED
    return Uses(dict(weights), imported)


def _names(text: str, language: str) -> Iterator[tuple[str, int, float]]:
    """Yield each name of a text with its line and its weight there."""
    parser = new_parser(language)
    if parser is None:
        for found in _WORD.finditer(text):
            yield found[0], text.count("\n", 0, found.start()), _PLAIN
        return
    source = text.encode("utf-8", "replace")
    tree = parse_within(parser, source, MAX_PARSE_S)
    for node, role in _identifiers(tree.root_node) if tree is not None else ():
        name = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        if len(name) > 2:
            yield name, node.start_point.row, role


def _identifiers(root: Node) -> Iterator[tuple[Node, float]]:
    """Yield the identifiers below a node, each with the weight of its role."""
    waiting = [(root, _PLAIN)]
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        node, role = waiting.pop()
        if node.type.endswith("identifier") and not node.named_child_count:
            yield node, _READ if node.type == "type_identifier" else role
            continue
        for at, child in enumerate(node.named_children):
            if node.type.startswith(_IMPORTS):
                inner = _IMPORTED
            elif node.type in _CALLS and at == 0:
                inner = _CALLED
            elif node.type in _MEMBERS:
                inner = max(role, _READ) if at else _PLAIN
            else:
                inner = _PLAIN
            waiting.append((child, inner))


def _imported(head: str, language: str) -> Iterator[str]:
    """Yield the words of the import statements at the beginning of a file."""
    parser = new_parser(language)
    if parser is None:
        return
    source = head.encode("utf-8", "replace")
    tree = parse_within(parser, source, MAX_PARSE_S)
    waiting = list(tree.root_node.named_children) if tree is not None else []
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        node = waiting.pop()
        text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        if node.type.startswith(_IMPORTS) or (
            "require(" in text[:200] and node.type.endswith("_declaration")
        ):
            yield from _WORD.findall(text)
        elif node.type.startswith("preproc_if"):
            waiting += node.named_children
