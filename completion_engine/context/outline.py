"""The definitions in a source file, from its syntax tree: names, signatures and members.

Works for every language with a grammar. The time is linear in the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node, Parser

from completion_engine.grammars import new_parser, parse_within

MAX_BYTES = 96 << 10  # the rest of a text is not read
MAX_PARSE_S = 0.2  # a file of `MAX_BYTES` normally takes a tenth of this
_MAX_NODES = 4_000
_MAX_DEPTH = 8
_MAX_SIGNATURE_BYTES = 240
_MAX_WHOLE_BYTES = 400  # a type of up to this size is shown with its body
_MAX_MEMBERS = 16

_SUFFIXES = ("_definition", "_declaration", "_item", "_specifier", "_spec", "_signature", "_def")
_OTHERS = frozenset(
    {"declaration", "variable_declarator", "assignment", "class", "module", "method", "internal_module"}
)
_NEVER = ("import", "use_", "package_", "parameter", "comment", "attribute_item", "extern_crate")
_WRAPPERS = frozenset(
    [
        "export_statement",
        "expression_statement",
        "preproc_ifdef",
        "preproc_if",
        "preproc_else",
        "preproc_elif",
        "linkage_specification",
        "declaration_list",
        "ambient_declaration",
        "var_spec_list",
        "const_spec_list",
        "enum_body_declarations",
    ]
)
_CALLABLE = ("function", "method", "constructor", "getter", "setter")


_IMPORTS = (
    "import ", "from ", "use ", "pub use ", "#include", "using ", "package ", "export * ", "export {"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Definition:
    """A name that a file defines, at a line counted from 0.

    `signature` is the part that callers need, its first line indented as in the file. `owner` is the index,
    among the file's definitions, of the type that this is a member of; -1 without one. The signature of a
    short type is all of it. A long type `lacks_members`: its members are definitions of their own.
    """

    name: str
    line: int
    signature: str
    owner: int = -1
    lacks_members: bool = False


@dataclass(frozen=True)
class SourceFile:
    """The text of one file, and its language by LSP id."""

    path: str
    language: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file, without line ends."""
        return self.text.split("\n")

    @cached_property
    def definitions(self) -> list[Definition]:
        """The definitions in the file; empty for a language without a grammar."""
        parser = new_parser(self.language)
        return outline(parser, self.text) if parser is not None else []


def brings_names_in(line: str) -> bool:
    """Return whether a line looks like an import."""
    return line.startswith(_IMPORTS)


def outline(parser: Parser, text: str) -> list[Definition]:
    """Return the definitions of a text in their order, members after their types.

    Empty if parsing takes longer than `MAX_PARSE_S`.
    """
    source = text.encode("utf-8", "replace")[:MAX_BYTES]
    reading = _Reading(source)
    tree = parse_within(parser, source, MAX_PARSE_S)
    if tree is not None:
        reading.walk(tree.root_node, -1, 0)
    return reading.found


def described(definitions: list[Definition], at: int) -> str:
    """Return the signature of a definition; for a long type, with the signatures of its members."""
    found = definitions[at]
    if not found.lacks_members:
        return found.signature
    members = [it.signature for it in definitions[at + 1 :] if it.owner == at]
    return "\n".join([found.signature, *members[:_MAX_MEMBERS]])


class _Reading:
    """One walk through a syntax tree, over a bounded number of nodes."""

    def __init__(self, source: bytes) -> None:
        self.found: list[Definition] = []
        self._source = source
        self._num_nodes = 0

    def walk(self, node: Node, owner: int, depth: int) -> None:
        """Find the definitions below `node`."""
        for child in node.named_children:
            self._num_nodes += 1
            if self._num_nodes > _MAX_NODES or depth > _MAX_DEPTH:
                return
            if child.type.startswith(_NEVER):
                continue
            is_definition = child.type.endswith(_SUFFIXES) or child.type in _OTHERS
            name = self._name(child) if is_definition else ""
            if name:
                self._add(child, name, owner, depth)
            elif is_definition or child.type in _WRAPPERS:
                self.walk(child.child_by_field_name("body") or child, owner, depth + 1)

    def _add(self, node: Node, name: str, owner: int, depth: int) -> None:
        value = node.child_by_field_name("value")
        is_callable = any(word in node.type for word in _CALLABLE) or (
            value is not None and any(word in value.type for word in _CALLABLE)
        )
        body = node.child_by_field_name("body") or (value.child_by_field_name("body") if value else None)
        is_type = body is not None and not is_callable
        is_short = is_type and node.end_byte - node.start_byte <= _MAX_WHOLE_BYTES
        end = body.start_byte if body is not None and not is_short else node.end_byte
        signature = self._signature(node, end)
        self.found.append(Definition(name, node.start_point.row, signature, owner, is_type and not is_short))
        if is_type and body is not None:
            self.walk(body, len(self.found) - 1, depth + 1)

    def _name(self, node: Node) -> str:
        found = node.child_by_field_name("name") or node.child_by_field_name("left")
        inner: Node | None = node
        while found is None and inner is not None:
            inner = inner.child_by_field_name("declarator")
            if inner is not None:
                found = inner if inner.type.endswith("identifier") else inner.child_by_field_name("name")
        if found is None or not found.type.endswith("identifier"):
            return ""
        return self._source[found.start_byte : found.end_byte].decode("utf-8", "replace")

    def _signature(self, node: Node, end: int) -> str:
        start = self._source.rfind(b"\n", 0, node.start_byte) + 1
        limit = start + max(_MAX_SIGNATURE_BYTES, _MAX_WHOLE_BYTES if end == node.end_byte else 0)
        if end > limit:  # the whole lines that fit
            end = max(self._source.rfind(b"\n", start, limit), self._source.find(b"\n", start, limit))
            end = limit if end < 0 else end
        return self._source[start:end].decode("utf-8", "replace").rstrip()
