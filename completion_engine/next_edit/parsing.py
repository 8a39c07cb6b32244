"""Syntax trees of documents, whether an edit would break code that parses, and the values of name resolution:
a scope, a name with its role in the scopes around it, and tables of roles.

Bounded in time and text. A language without a grammar has no trees and no errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tree_sitter import Node, Parser, Tree

from completion_engine.grammars import new_parser, parse_within
from completion_engine.next_edit.edits import EditDocument, LineEdit, Lines
from completion_engine.next_edit.name_tables import TEXTS

_NUM_LINES_AROUND = 60
_MAX_ERRORS = 50
_MAX_DEPTH = 256
_MAX_CHARS = 300_000
_MAX_PARSE_S = 0.2
PLAIN = "{}"  # the form of a new name that just replaces the old one
BINDING = frozenset({"outer", "def", "var", "let", "decl", "param", "tparam", "assign", "member", "import"})
_HOMES = ("file", "function", "class", "module", "enum")
_MAX_HEAD_BYTES = 400
_SCOPES = ("function", "block", "class", "enum", "module", "signature")
_SETTINGS = ("nested", "outside", "receiver", "literal", "implicit", "ordered", "barrier")


class PathStep(NamedTuple):
    """A node on the way from the root to a leaf, and its field in the node above."""

    node: Node
    field: str | None


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text in UTF-8 and its tree. `found` keeps the occurrences of names that were searched."""

    tree: Tree
    text: bytes
    language: str
    found: dict[str, list[Any] | None] = field(default_factory=dict, compare=False)

    def path_to(self, start: int, end: int) -> list[PathStep] | None:
        """Return the way from the root to the leaf at a span of bytes; None where it is nested too deeply."""
        cursor = self.tree.walk()
        path = [PathStep(self.tree.root_node, None)]
        for _ in range(_MAX_DEPTH):
            at = cursor.goto_first_child_for_byte(start)
            node = cursor.node
            if at is None or node is None or node.start_byte >= end:
                return path
            path.append(PathStep(node, cursor.field_name))
        return None

    def node_at(self, start: int, end: int) -> Node | None:
        """Return the smallest node that holds a span of bytes; None where it is nested too deeply.

        The parser looks for a node's parent from the root, so that a way up takes the square of the depth.
        """
        cursor = self.tree.walk()
        for _ in range(_MAX_DEPTH):
            if cursor.goto_first_child_for_byte(start) is None:
                return self.tree.root_node.descendant_for_byte_range(start, end)
        return None


class DocumentParser:
    """Parses whole documents, and keeps the tree of the last one. Used on one thread."""

    def __init__(self) -> None:
        self._parsers: dict[str, Parser | None] = {}
        self._last: tuple[tuple[str, Lines], ParsedText | None] | None = None

    def parsed(self, document: EditDocument) -> ParsedText | None:
        """Return a document's tree; None without a grammar, or where it is too long or too slow."""
        key = document.language, document.lines
        if self._last is None or self._last[0] != key:
            self._last = key, self.parse(document)
        return self._last[1]

    def forget(self) -> None:
        """Drop the tree, and with it the text of a document."""
        self._last = None

    def parse(self, document: EditDocument) -> ParsedText | None:
        """Return a document's tree as `parsed` does, without keeping it."""
        if document.language not in self._parsers:
            self._parsers[document.language] = new_parser(document.language)
        parser = self._parsers[document.language]
        if parser is None or sum(map(len, document.lines)) > _MAX_CHARS:
            return None
        text = "\n".join(document.lines).encode("utf-8", "replace")
        tree = parse_within(parser, text, _MAX_PARSE_S)
        return None if tree is None else ParsedText(tree, text, document.language)


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def with_spans(line: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Return a line with some spans replaced by texts; a span is (start, end, text) in bytes, as in trees."""
    text = line.encode("utf-8", "replace")
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new.encode("utf-8", "replace") + text[end:]
    return text.decode("utf-8", "replace")


def adds_errors(old: ParsedText | None, new: ParsedText | None) -> bool:
    """Return whether a text has more errors after an edit than before; False where one has no tree."""
    if old is None or new is None or not new.tree.root_node.has_error:
        return False
    return _num_errors(new.tree) > _num_errors(old.tree)


def with_lines_around(document: EditDocument, edit: LineEdit) -> tuple[EditDocument, LineEdit]:
    """Return the part of a document from 60 lines before an edit to 60 lines after it, and the edit in it."""
    first = max(0, edit.first_line - _NUM_LINES_AROUND)
    lines = document.lines[first : edit.end_line + _NUM_LINES_AROUND]
    return replace(document, lines=lines), replace(edit, first_line=edit.first_line - first)


def edited(document: EditDocument, edit: LineEdit) -> EditDocument:
    """Return a document after an edit."""
    lines = document.lines
    return replace(document, lines=(*lines[: edit.first_line], *edit.new, *lines[edit.end_line :]))


def _num_errors(tree: Tree) -> int:
    """Return the number of errors, up to `_MAX_ERRORS`."""
    waiting: list[Node] = [tree.root_node]
    num_errors = 0
    while waiting and num_errors < _MAX_ERRORS:
        node = waiting.pop()
        if node.has_error:
            num_errors += node.is_error or node.is_missing
            waiting += node.children
    return num_errors


@dataclass(frozen=True, slots=True)
class Scope:
    """A node in which names count. A class has a name; `receiver` is what its own members are used with."""

    kind: str
    node: Node
    class_name: str = ""
    receiver: str = ""

    @property
    def is_class(self) -> bool:
        """Whether names in it are members."""
        return self.class_name != ""

    @property
    def bases(self) -> frozenset[str]:
        """The names in the head of a class, which may be those of classes that it extends."""
        body = self.node.child_by_field_name("body")
        end = self.node.end_byte if body is None else body.start_byte
        head = (self.node.text or b"")[: min(_MAX_HEAD_BYTES, end - self.node.start_byte)]
        return frozenset(re.findall(r"\w+", head.decode("utf-8", "replace"))) - {self.class_name}


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """A name from byte `start` to `end`, with the scopes around it or, for a definition, around its node.

    A definition counts from `visible_from` on. `receiver` is the text before a member, the type of a key's
    literal, or the callee of a named argument. `form` is the text that a new name is put into.
    """

    node: Node
    start: int
    end: int
    role: str
    space: str
    scopes: tuple[Scope, ...]
    visible_from: int = 0
    receiver: str = ""
    is_write: bool = False
    is_also_member: bool = False
    form: str = PLAIN

    @property
    def is_definition(self) -> bool:
        """Whether the name is bound here."""
        return self.role in BINDING or self.role == "label" or self.is_write

    @property
    def position(self) -> tuple[int, int]:
        """The line and the byte in it, counted from 0."""
        row, column = self.node.start_point
        if self.start <= self.node.start_byte:
            return row, column
        before = (self.node.text or b"")[: self.start - self.node.start_byte]
        is_below = b"\n" in before
        return row + before.count(b"\n"), len(before) - before.rfind(b"\n") - 1 + (0 if is_below else column)

    @property
    def home(self) -> Scope:
        """The scope that a definition binds its name in."""
        if self.role == "var":
            return next((it for it in reversed(self.scopes) if it.kind in _HOMES), self.scopes[0])
        if self.role == "member":
            return next((it for it in reversed(self.scopes) if it.is_class), self.scopes[0])
        is_wide = self.role in ("param", "tparam")
        return next((it for it in reversed(self.scopes) if is_wide or it.kind != "signature"), self.scopes[0])

    @property
    def is_free(self) -> bool:
        """Whether something around it must bind the name."""
        return self.role in ("use", "set", "assign", "var")


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The roles of one language by context, each with its condition, and the kinds of its scopes by node.

    A line of a table is a role and the contexts that have it. A context is the field of a node, `node` for
    any child, `outer>node.field` below another node, or `node.+` for all named children but the first.
    `?field` requires a field of the node, `?!field` its absence. A role may end in `/space`: names of
    different spaces never mean the same.

    - `outer` binds in the scope around the node, `def` in the nearest scope, `var` in the nearest function or
      class. `let` binds after the node ends, `decl` after the name ends.
    - `param` binds in a declaration without a body too, `tparam` in a class without becoming a member.
      `assign` binds in the file unless the name is visible.
    - `member` binds in the nearest class. `access` has a receiver, `own` has none, `field` belongs to the
      type of a literal.
    - `import` binds a definition of another file. `global` and `nonlocal` mark a name that is bound outside.
    - `keyword` names an argument, `key` is any other name that belongs to no scope.
    - `up` leaves the choice to the node above. `set` is a use that defines a member of an own receiver.

    Other lines give the kinds of scopes, and settings. Children that are `outside` do not see the names of
    their scope. A `receiver` may belong to a class elsewhere, a `literal` names its type, and local names do
    not cross a `barrier`. With `implicit`, members need no receiver. With `ordered`, files bind names in
    order. With `nested`, a local variable needs another name than those around it.
    """

    roles: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    scopes: dict[str, str] = field(default_factory=dict)
    settings: dict[str, frozenset[str]] = field(default_factory=dict)

    def setting(self, name: str) -> frozenset[str]:
        """Return the contexts of a line that is neither a role nor a kind of scope."""
        return self.settings.get(name, frozenset())


def _table(text: str) -> RoleTable:
    table = RoleTable()
    for line in filter(None, text.split("\n")):
        role, _, contexts = line.partition(": ")
        for context in contexts.split():
            if role in _SCOPES:
                table.scopes[context] = role
            elif role in _SETTINGS:
                table.settings[role] = table.setting(role) | {context}
            else:
                place, _, condition = context.partition("?")
                table.roles.setdefault(place, []).append((condition, role))
    return table


TABLES = {language: _table(text) for language, text in TEXTS.items()}
