"""Random programs of a small language, and the meaning of their names.

A program is a tree of scopes whose lines hold names. `small_texts` writes it in eight languages. Rules of the
languages decide what a name means, without syntax trees; for Python its own symbol table does.
"""

from __future__ import annotations

import symtable
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

POOL = ("alpha", "beta", "gamma")
FRESH = "omega"


@dataclass(frozen=True, slots=True)
class Rules:
    """How a language binds names."""

    has_blocks: bool = True
    is_ordered: bool = True
    is_file_ordered: bool = False
    shadows: bool = False
    has_implicit_members: bool = False
    nests_locals: bool = True
    has_classes: bool = True
    has_short_keys: bool = False
    has_open_classes: bool = False
    names_itself: bool = False  # in the value that it is bound to
    keeps_functions_apart: bool = False


RULES = {
    "python": Rules(has_blocks=False, is_ordered=False),
    "javascript": Rules(is_ordered=False, has_short_keys=True),
    "typescript": Rules(is_ordered=False, has_short_keys=True),
    "go": Rules(has_open_classes=True),
    "rust": Rules(shadows=True, has_short_keys=True, has_open_classes=True),
    "java": Rules(
        has_implicit_members=True, nests_locals=False, names_itself=True, keeps_functions_apart=True
    ),
    "c": Rules(has_classes=False, names_itself=True),
    "lua": Rules(is_file_ordered=True, shadows=True, has_classes=False),
}


@dataclass(eq=False, slots=True)
class Scope:
    """A file, a function, a block, a class or a closure."""

    kind: str
    parent: Scope | None = None
    line: int = 0
    lines: list[Line | Scope] = field(default_factory=list)
    head: list[Name] = field(default_factory=list)
    owner: Name | None = None

    @property
    def chain(self) -> Iterator[Scope]:
        """The scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    @property
    def class_around(self) -> Scope | None:
        """The class whose method this is in."""
        return next((it for it in self.chain if it.kind == "class"), None)


@dataclass(eq=False, slots=True)
class Name:
    """A name: it declares, uses, or belongs to an own or another object, to a key or to a short property."""

    text: str
    role: str
    scope: Scope
    order: int = 0
    old: str = ""
    space: str = ""


@dataclass(eq=False, slots=True)
class Line:
    """A statement of some kind, and the names in it."""

    kind: str
    names: list[Name]


class Generator:
    """Makes a program that is valid in a language."""

    def __init__(self, random: Random, language: str) -> None:
        self._random, self.rules, self._language = random, RULES[language], language
        self._order = 0
        self.names: list[Name] = []

    def program(self) -> Scope:
        """Return a file."""
        file = Scope("file")
        for _ in range(self._random.randint(0, 2)):
            self._declare_line(file, "global")
        kinds = ["function", "function", "class"] if self.rules.has_classes else ["function"]
        for _ in range(self._random.randint(1, 3)):
            self._add_function(file, self._random.choice(kinds))
        return file

    def _add_function(self, around: Scope, kind: str) -> None:
        space = "function" if self.rules.keeps_functions_apart and kind == "function" else ""
        name = self._declared(around, "member" if around.kind == "class" else "declare", space)
        if name is None:
            return
        scope = Scope(kind, around, head=[name])
        if around.kind == "class" and self.rules.has_open_classes and around.parent is not None:
            scope.owner = self._name(around.parent, "use", around.head[0].text)
        around.lines.append(scope)
        if kind == "class":
            for _ in range(self._random.randint(0, 2)):
                if (member := self._declared(scope, "member")) is not None:
                    scope.lines.append(Line("field", [member]))
            self._add_function(scope, "function")
            self._add_function(scope, "function")
            return
        for _ in range(self._random.randint(0, 2)):
            taken = [it.text for it in scope.head[1:]]
            if (parameter := self._declared(scope, "declare", taken=taken)) is not None:
                scope.head.append(parameter)
        self._fill(scope, 2)

    def _fill(self, scope: Scope, depth: int) -> None:
        for _ in range(self._random.randint(1, 4)):
            kind = self._random.choice(
                ["local", "local", "use", "use", "key", "assign", "block", "closure", "short"]
            )
            if kind == "local":
                self._declare_line(scope, "local")
            elif kind == "block" and depth:
                inner = Scope("block", scope, head=[self._name(scope, "use")])
                scope.lines.append(inner)
                self._fill(inner, depth - 1)
            elif kind == "closure" and self._language != "c":
                inner = Scope("closure", scope)
                parameter = self._declared(inner, "declare")
                if parameter is not None:
                    inner.head = [parameter, self._term(inner)]
                    scope.lines.append(inner)
            elif kind == "short" and self.rules.has_short_keys:
                scope.lines.append(Line("short", [self._name(scope, "short")]))
            elif kind == "key":
                scope.lines.append(Line("key", [self._name(scope, "key"), self._term(scope)]))
            elif kind == "assign" and self._language != "python":
                scope.lines.append(Line("assign", [self._name(scope, "use"), self._term(scope)]))
            else:
                scope.lines.append(Line("use", [self._term(scope), self._term(scope)]))

    def _declare_line(self, scope: Scope, kind: str) -> None:
        if self.rules.names_itself and (name := self._declared(scope, "declare")) is not None:
            scope.lines.append(Line(kind, [name, self._term(scope)]))
            return
        term = self._term(scope)
        name = self._declared(scope, "declare")
        if name is None:
            self.names.remove(term)
        else:
            scope.lines.append(Line(kind, [name, term]))

    def _declared(self, scope: Scope, role: str, space: str = "", taken: Sequence[str] = ()) -> Name | None:
        """Return a new name in a scope; None where all of the pool are taken."""
        may = (text for text in POOL if may_declare(self.rules, scope, text, space, self.names))
        free = [text for text in may if text not in taken]
        return self._name(scope, role, self._random.choice(free), space) if free else None

    def _term(self, scope: Scope) -> Name:
        roles = ["use", "use", "call", "other"]
        if scope.class_around is not None:
            roles.append("own")
        role = self._random.choice(roles)
        is_apart = role == "call" and self.rules.keeps_functions_apart
        return self._name(scope, role, space="function" if is_apart else "")

    def _name(self, scope: Scope, role: str, text: str = "", space: str = "") -> Name:
        self._order += 1
        name = Name(text or self._random.choice(POOL), role, scope, self._order, space=space)
        self.names.append(name)
        return name


def home(rules: Rules, scope: Scope) -> Scope:
    """Return the scope in which a declaration binds."""
    return next(it for it in scope.chain if rules.has_blocks or it.kind != "block")


def may_declare(rules: Rules, scope: Scope, text: str, space: str, names: Sequence[Name]) -> bool:
    """Return whether a name can be declared in a scope, beside those that are there."""
    around = [scope]
    if not rules.nests_locals:
        for it in scope.chain:
            if it.kind in ("class", "file"):
                break
            around.append(it)
    taken = (it for it in names if it.role in ("declare", "member") and (it.text, it.space) == (text, space))
    is_taken = any(home(rules, it.scope) in [home(rules, one) for one in around] for it in taken)
    is_local = scope.kind in ("function", "block") or rules.is_file_ordered
    return not is_taken or (rules.shadows and is_local)


def is_valid(language: str, names: Sequence[Name]) -> bool:
    """Return whether no scope declares a name twice, and no function two parameters of a name."""
    rules = RULES[language]
    declared = [it for it in names if it.role in ("declare", "member")]
    for it in declared:
        parameters = [one.text for one in it.scope.head[1:]]
        if it.scope.kind == "function" and len(set(parameters)) < len(parameters):
            return False
        here = home(rules, it.scope)
        others = [one for one in declared if home(rules, one.scope) is here or one.order < it.order]
        if not may_declare(rules, it.scope, it.text, it.space, [one for one in others if one is not it]):
            return False
    return True


def meanings(language: str, names: Sequence[Name], text: str) -> list[Hashable]:
    """Return what each name means: names that mean the same have equal values."""
    rules = RULES[language]
    tables = _tables(text) if language == "python" else {}
    return [_meaning(rules, names, name, tables) for name in names]


def _meaning(
    rules: Rules, names: Sequence[Name], name: Name, tables: dict[tuple[int, str], symtable.SymbolTable]
) -> Hashable:
    if name.role in ("key", "other"):
        return id(name)
    if name.role in ("member", "own"):
        around = name.scope.class_around
        return ("member", id(around), name.text, name.space)
    if tables:
        return _in_table(name, tables)
    if name.role == "declare":
        return _declaration(rules, name)
    for scope in name.scope.chain:
        found = [it for it in names if _is_visible(rules, it, scope, name)]
        if found:
            last = max(found, key=lambda it: it.order)
            is_member = last.role == "member"
            return ("member", id(scope), name.text, name.space) if is_member else _declaration(rules, last)
    return ("free", name.text, name.space)


def _declaration(rules: Rules, name: Name) -> Hashable:
    where = home(rules, name.scope)
    is_new = rules.shadows and (where.kind != "file" or rules.is_file_ordered)
    return (id(where), name.text, name.space, name.order if is_new else 0)


def _is_visible(rules: Rules, one: Name, scope: Scope, use: Name) -> bool:
    if (one.text, one.space) != (use.text, use.space) or one.scope is not scope:
        return False
    if one.role == "member":
        return rules.has_implicit_members
    is_ordered = rules.is_file_ordered if scope.kind == "file" else rules.is_ordered
    return one.role == "declare" and (one.order < use.order or not is_ordered)


def _tables(text: str) -> dict[tuple[int, str], symtable.SymbolTable]:
    """Return the symbol tables of a text in Python by line and kind."""
    waiting, found = [symtable.symtable(text, "a.py", "exec")], dict[tuple[int, str], symtable.SymbolTable]()
    while waiting:
        table = waiting.pop()
        found[(table.get_lineno(), table.get_name() if table.get_name() == "lambda" else "")] = table
        waiting += table.get_children()
    return found


def _in_table(name: Name, tables: dict[tuple[int, str], symtable.SymbolTable]) -> Hashable:
    """Return the scope in which Python binds a name."""
    chain = [it for it in name.scope.chain if it.kind != "block"]
    is_first = True
    for scope in chain:
        table = tables[(scope.line, "lambda" if scope.kind == "closure" else "")]
        if scope.kind == "file":
            is_bound = name.text in table.get_identifiers() and table.lookup(name.text).is_assigned()
            return (
                (id(scope), name.text) if is_bound or _is_defined(table, name.text) else ("free", name.text)
            )
        symbol = table.lookup(name.text) if is_first or name.text in table.get_identifiers() else None
        is_first = False
        if symbol is not None and symbol.is_local() and scope.kind != "class":
            return (id(scope), name.text)
        if symbol is not None and symbol.is_global():
            is_bound = _is_defined(tables[(0, "")], name.text)
            return (id(chain[-1]), name.text) if is_bound else ("free", name.text)
    return ("free", name.text)


def _is_defined(table: symtable.SymbolTable, name: str) -> bool:
    return name in table.get_identifiers() and (
        table.lookup(name).is_assigned() or table.lookup(name).is_namespace()
    )
