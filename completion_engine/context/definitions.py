"""The names that are used around a cursor, with weights, and snippets with their definitions.

Names come from the syntax tree if the language has a grammar, otherwise from the words of the text.
Definitions come from other files, and from outside of the document's text window.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from completion_engine.context.outline import MAX_PARSE_S, Definition, SourceFile, brings_names_in, described
from completion_engine.grammars import new_parser, parse_within
from completion_engine.request import Snippet

_MIN_WEIGHT = 0.25  # definitions of names with less are left out
_IMPORTED = 1.5  # factor for a definition in a file that the document imports
_MAX_DEFINITION_CHARS = 700
_MAX_HEAD_LINES = 30
_CHARS_BEFORE, _CHARS_AFTER = 3_000, 1_000  # the size of the cursor's surroundings
_HEAD_CHARS = 6_000  # imports are searched in this many first characters of a file
_MAX_NODES = 6_000
_HALF_LINES = 12.0  # distance from the cursor that halves the weight of a name
_CALLED, _READ, _PLAIN, _OF_IMPORT = 1.0, 0.8, 0.3, 0.5
_WORD = re.compile(r"[^\W\d]\w{2,}")
_IMPORTS = ("import", "use_decl", "preproc_include", "include", "require", "using_directive", "package_")
_CALLS = ("call", "call_expression", "new_expression", "object_creation_expression", "macro_invocation",
          "method_invocation", "decorator")  # fmt: skip
_MEMBERS = ("attribute", "member_expression", "selector_expression", "field_expression", "field_access",
            "scoped_identifier", "qualified_identifier")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names to define with their weights, and the words of the document's imports.

    Names `known` in the document and definitions that are `visible` are left out.
    """

    names: Mapping[str, float]
    imports: Collection[str]
    known: Collection[str]
    visible: str


def definition_snippets(sources: Sequence[SourceFile], wanted: Wanted, max_chars: int) -> list[Snippet]:
    """Return definitions from `sources`, those of the highest weights, one snippet per file."""
    chosen: dict[int, set[int]] = defaultdict(set)
    left = max_chars
    for at, ranked in _ranked(sources, wanted):
        definitions = sources[at].definitions
        index = _whole(definitions, ranked)
        definition = definitions[index]
        text = described(definitions, index)[:_MAX_DEFINITION_CHARS]
        cost = len(text) + 1 + (0 if at in chosen else len(sources[at].path))
        is_shown = definition.signature.strip() in wanted.visible or definition.owner in chosen[at]
        if cost <= left and not is_shown and index not in chosen[at]:
            chosen[at].add(index)
            left -= cost
    return [_snippet(sources[at], sorted(indices)) for at, indices in sorted(chosen.items()) if indices]


def _ranked(sources: Sequence[SourceFile], wanted: Wanted) -> list[tuple[int, int]]:
    """Return the wanted definitions as (source index, definition index), the highest weights first.

    A name that many files define has a lower weight, because any of its definitions may be the right one.
    """
    num_definitions: Counter[str] = Counter()
    found: list[tuple[float, str, int, int]] = []
    for at, source in enumerate(sources):
        is_imported = any(part in wanted.imports for part in source.path.replace(".", "/").split("/"))
        for index, definition in enumerate(source.definitions):
            weight = wanted.names.get(definition.name, 0.0) * (_IMPORTED if is_imported else 1.0)
            if weight >= _MIN_WEIGHT and definition.name not in wanted.known:
                num_definitions[definition.name] += 1
                found.append((weight, definition.name, at, index))
    found.sort(key=lambda it: (-it[0] / num_definitions[it[1]], it[2], it[3]))
    return [(at, index) for _, _, at, index in found]


def _whole(definitions: Sequence[Definition], index: int) -> int:
    """Return the index of the definition to show: a short type for its member, else the definition itself."""
    owner = definitions[index].owner
    return index if owner < 0 or definitions[owner].lacks_members else owner


def _snippet(source: SourceFile, indices: Sequence[int]) -> Snippet:
    """Return definitions of a file in their order, each member after the head of its type."""
    texts: list[str] = []
    shown: set[int] = set()
    for index in indices:
        owner = source.definitions[index].owner
        if owner >= 0 and owner not in shown:
            texts.append(source.definitions[owner].signature)
        shown |= {owner, index}
        texts.append(described(source.definitions, index)[:_MAX_DEFINITION_CHARS])
    return Snippet(source.path, "\n".join(texts))


class OwnFile:
    """The part of the document outside of the text window: its imports and definitions."""

    def __init__(self, whole: SourceFile, num_lines_before: int, num_lines_visible: int) -> None:
        """`whole` is the document; the target sees `num_lines_visible` lines after the first
        `num_lines_before`.
        """
        self._whole = whole
        self._first, self._last = num_lines_before, num_lines_before + num_lines_visible

    @property
    def defined(self) -> frozenset[str]:
        """The names that the document defines, in the text window or outside."""
        return frozenset(definition.name for definition in self._whole.definitions)

    def snippets(self, names: Mapping[str, float], max_chars: int) -> list[Snippet]:
        """Return imports and signatures outside of the text window, in their order; `names` are preferred."""
        head = _head(self._whole.lines[: self._first], max_chars // 2)
        left = max_chars - len(head)
        known = self._whole.definitions
        ranked = sorted(
            (-names.get(definition.name, 0.0), definition.line, definition.signature)
            for definition in known
            if not self._first <= definition.line <= self._last
            and (definition.owner < 0 or known[definition.owner].lacks_members)
        )
        chosen: list[tuple[int, str]] = []
        for _, line, signature in ranked:
            if len(signature) + 1 <= left and signature not in head:
                chosen.append((line, signature))
                left -= len(signature) + 1
        lines = [head] if head else []
        lines += [signature for _, signature in sorted(chosen)]
        return [Snippet(self._whole.path, "\n".join(lines))] if lines else []


def _head(lines: Sequence[str], max_chars: int) -> str:
    """Return the imports among the first of `lines`."""
    found = [line for line in lines[:_MAX_HEAD_LINES] if brings_names_in(line)]
    while found and sum(map(len, found)) + len(found) > max_chars:
        found.pop()
    return "\n".join(found)


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
        weights[name] += _OF_IMPORT
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
                inner = _OF_IMPORT
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
