"""The values of name resolution: a scope, and a name with its role in the scopes around it.

All are frozen, and belong to one syntax tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

PLAIN = "{}"  # the form of a new name that just replaces the old one
BINDING = frozenset({"outer", "def", "var", "let", "decl", "param", "tparam", "assign", "member", "import"})
_HOMES = ("file", "function", "class", "module", "enum")
_MAX_HEAD_BYTES = 400


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
