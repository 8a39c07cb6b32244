"""Resolves the occurrences of a name: those with an equal key mean the same thing.

A key of None means something that is not known here, or no name in a scope. Also finds misplaced names: an
edit writes them where no binding reaches them, or where another definition has them. Bounded in time and
text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from tree_sitter import Node

from completion_engine.next_edit.edits import LineEdit
from completion_engine.next_edit.occurrences import definitions_of, occurrences_of
from completion_engine.next_edit.parsing import TABLES, Occurrence, ParsedText, Scope
from completion_engine.next_edit.substitutions import is_name, tokens_of

Key = tuple[Hashable, ...]
OWN_RECEIVERS = frozenset({"self", "this", "cls", "Self", "$this", "static"})
_MAX_BASES = 16
_SHADOWING = ("rust", "lua")
_MAX_NAMES = 8  # new names of an edit
_ASSIGNMENTS = ("assignment", "declarator", "let_", "var_", "for_")
_MAX_LEVELS = 4  # from a name to the assignment that binds it


class Resolver:
    """Resolves occurrences of one name, or of several that are to become one, in a text."""

    def __init__(self, parsed: ParsedText, occurrences: Sequence[Occurrence]) -> None:
        self._parsed, self._table = parsed, TABLES[parsed.language]
        self._implicit = bool(self._table.setting("implicit"))
        self._members: set[tuple[str, str]] = set()  # class and space
        self._bound: dict[tuple[int, str], list[tuple[int, bool, Key]]] = {}
        self._outside: dict[int, str] = {  # functions that bind the name outside
            _home(one.scopes).node.id: one.role for one in occurrences if one.role in ("global", "nonlocal")
        }
        self._same: dict[Key, Key] = {}
        for one in occurrences:
            self._define(one)

    def keys(self, occurrences: Sequence[Occurrence]) -> list[Key | None]:
        """Return the key of each occurrence."""
        found = (self._key(one) for one in occurrences)
        return [None if key is None else self._same.get(key, key) for key in found]

    def overrides(self, key: Key) -> bool:
        """Return whether a class that extends this member's class, or the other way round, defines it too."""
        if key[0] != "member":
            return False
        others = [name for name, space in self._members if space == key[2] and name != key[1]]
        own = str(key[1])
        return any(own in self._lineage(it) or it in self._lineage(own) for it in others)

    def _define(self, one: Occurrence) -> None:
        if one.role in ("own", "access") and one.is_write:
            name = self._own_class(one) if one.role == "own" or self._is_own(one) else ""
            if name:
                self._members.add((name, one.space))
            return
        if not one.is_definition or one.role in ("label", "assign"):
            return
        home = self._home_of(one)
        if home.is_class and one.role != "tparam":
            self._members.add((home.class_name, one.space))
            return
        key = self._key_in(home, one)
        bound = (self._from(home, one), _is_variable(one), key)
        self._bound.setdefault((home.node.id, one.space), []).append(bound)
        if one.is_also_member and (around := self._class_around(one)):
            self._members.add((around, ""))
            self._same[key] = ("member", around, "")

    def _from(self, home: Scope, one: Occurrence) -> int:
        is_ordered = home.kind != "file" or bool(self._table.setting("ordered"))
        return one.visible_from if is_ordered else 0

    def _key_in(self, home: Scope, one: Occurrence) -> Key:
        is_new = one.visible_from > 0 and self._parsed.language in _SHADOWING
        return ("bound", home.node.id, one.space, one.start if is_new else 0)

    def _home_of(self, one: Occurrence) -> Scope:
        """Return the scope that a definition binds its name in; `global` and `nonlocal` move it."""
        outside = self._outside.get(one.home.node.id) if one.role == "var" else None
        if outside is None:
            return one.home
        return one.scopes[0] if outside == "global" else _home(one.scopes[: one.scopes.index(one.home)])

    def _key(self, one: Occurrence) -> Key | None:
        if one.role in ("label", "goto"):
            return ("label", _home(one.scopes).node.id)
        if one.role == "own" or (one.role == "access" and self._is_own(one)):
            name = self._own_class(one)
            return ("member", self._defining(name, one.space) or name, one.space) if name else None
        if one.role in ("access", "field", "key", "keyword"):
            name = self._defining(one.receiver, one.space) if one.role in ("access", "field") else ""
            return ("member", name, one.space) if name else None
        if not one.is_definition or one.role == "assign":
            return self._looked_up(one)
        home = self._home_of(one)
        if home.is_class and one.role != "tparam":
            return ("member", home.class_name, one.space)
        return self._key_in(home, one)

    def _looked_up(self, one: Occurrence) -> Key:
        """Return what a plain name means: the innermost definition that reaches it."""
        is_outside = False
        passed_function = False
        for scope in reversed(one.scopes):
            if scope.kind == "function":
                outside = self._outside.get(scope.node.id)
                if outside == "global":
                    return self._bound_at(one.scopes[0], one) or ("free", one.space)
                is_outside = outside == "nonlocal"
            found = None if is_outside else self._bound_at(scope, one)
            found = found or self._member_at(scope, one, passed_function=passed_function)
            if found is not None:
                return found
            is_outside = False
            passed_function = passed_function or scope.kind in ("function", "block")
            is_local = one.space == ("" if self._parsed.language == "ruby" else "$")
            if scope.kind == "module" or (is_local and scope.node.type in self._table.setting("barrier")):
                return self._as_method(one) or ("free", scope.node.id, one.space)
        return self._as_method(one) or ("free", one.space)

    def _as_method(self, one: Occurrence) -> Key | None:
        """Return the method that a name alone calls in Ruby."""
        if self._parsed.language != "ruby" or one.space != "" or one.role != "use":
            return None
        for scope in reversed(one.scopes):
            name = self._defining(scope.class_name, "method") if scope.is_class else ""
            if name:
                return ("member", name, "method")
        found = self._bound.get((one.scopes[0].node.id, "method"))
        return found[0][-1] if found else None

    def _bound_at(self, scope: Scope, one: Occurrence) -> Key | None:
        bound = self._bound.get((scope.node.id, one.space), ())
        is_type = one.node.type == "type_identifier"
        visible = [
            (at, key) for at, is_variable, key in bound if at <= one.start and not (is_type and is_variable)
        ]
        return max(visible, key=lambda it: it[0])[1] if visible else None

    def _member_at(self, scope: Scope, one: Occurrence, *, passed_function: bool) -> Key | None:
        """Return the member that a name without a receiver means in a class."""
        if not scope.is_class:
            return None
        is_body = self._parsed.language == "python" and not passed_function
        if not (self._implicit or is_body or scope.kind == "enum"):
            return None
        name = self._defining(scope.class_name, one.space)
        return ("member", name, one.space) if name else None

    def _is_own(self, one: Occurrence) -> bool:
        return one.receiver in OWN_RECEIVERS or any(it.receiver == one.receiver != "" for it in one.scopes)

    def _own_class(self, one: Occurrence) -> str:
        """Return the class whose object a name's own receiver is."""
        inner = ""
        for scope in reversed(one.scopes):
            is_passed = scope.node.type == "object" and inner in ("", "arrow_function")
            if scope.is_class and not is_passed:
                return scope.class_name
            inner = scope.node.type if scope.kind == "function" else inner
        return ""

    def _class_around(self, one: Occurrence) -> str:
        return next((it.class_name for it in reversed(one.scopes) if it.is_class), "")

    def _defining(self, name: str, space: str) -> str:
        """Return the class, or the one that it extends, that defines the name; empty if none does here."""
        return next((it for it in self._lineage(name) if (it, space) in self._members), "")

    def _lineage(self, name: str) -> Iterator[str]:
        """Yield a class and the classes in the text that it extends, the nearest first."""
        waiting, seen = [name] if name else [], set[str]()
        while waiting and len(seen) < _MAX_BASES:
            name = waiting.pop(0)
            if name not in seen:
                seen.add(name)
                yield name
                waiting += sorted(_bases(self._parsed, name))


def _bases(parsed: ParsedText, name: str) -> frozenset[str]:
    """Return the names in the heads of the classes of a name."""
    key = f" {name}"
    if key not in parsed.found:
        scopes = TABLES[parsed.language].scopes
        parents = [one.node.parent for one in occurrences_of(parsed, name) or ()]
        classes = [it for it in parents if it is not None and scopes.get(it.type) == "class"]
        parsed.found[key] = [frozenset().union(*(Scope("class", it, name).bases for it in classes))]
    (bases,) = parsed.found[key] or (frozenset(),)
    return frozenset(bases)


def _is_variable(one: Occurrence) -> bool:
    """Return whether a definition binds a variable, which the name of a type never means."""
    return one.node.type != "type_identifier" and one.role in ("def", "let", "decl", "param", "var")


def _home(scopes: Sequence[Scope]) -> Scope:
    """Return the innermost function, or the file."""
    return next((it for it in reversed(scopes) if it.kind == "function"), scopes[0])


def misplaces_names(parsed: ParsedText, edit: LineEdit) -> bool:
    """Return whether an edit, which made a text, uses a name that the text binds elsewhere alone, or defines
    one twice.
    """
    old, new = (Counter(tokens_of("\n".join(side))) for side in (edit.old, edit.new))
    names = sorted(filter(is_name, new - old))[:_MAX_NAMES]
    here = range(edit.first_line, edit.first_line + len(edit.new))
    return any(_is_misplaced(parsed, name, here) for name in names)


def _reaches(parsed: ParsedText, binding: Occurrence, at: Node) -> bool:
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
            is_bound = one.is_definition or any(_reaches(parsed, it, one.node) for it in bindings)
            if bindings and not is_bound and one.is_free:
                return True
            if one.role in ("outer", "member") and defined[key] > 1:
                return True
    return False
