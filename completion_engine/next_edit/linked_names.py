"""The remaining uses of a renamed definition, which the syntax tree finds.

A rename is a rename of one thing: the occurrences that meant it before take the new name, if after that all
names mean what they meant. Such an edit needs no model. Bounded in time and text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from tree_sitter import Node

from completion_engine.next_edit.edits import EditDocument, Hunk, LineEdit
from completion_engine.next_edit.occurrences import definitions_of, occurrences_of
from completion_engine.next_edit.parsing import TABLES, Occurrence, ParsedText, text_of, with_spans
from completion_engine.next_edit.resolution import Key, Resolver
from completion_engine.next_edit.substitutions import (
    changed_cores,
    exchanged_at,
    exchanged_names,
    is_name,
    is_unfinished,
    written_spans,
)

_MAX_RENAMES = 4  # the latest ones
_LOCALS = ("def", "decl")
_CONSTRUCTORS = ("__init__", "__construct")


@dataclass(frozen=True, slots=True)
class LinkedEdit:
    """An edit of the uses in one line, the hunk that renamed their definition, and the number of hunks that
    exchanged the same names.
    """

    edit: LineEdit
    repeats: Hunk
    num_examples: int


@dataclass(frozen=True, slots=True)
class Rename:
    """Hunks of one document that replaced the name `old` with `new`, the latest first.

    `num_hunks` counts those of all documents, `recent` are all hunks of the document. An unfinished name is
    probably still being typed or deleted, and a name that is given back was there before.
    """

    old: str
    new: str
    hunks: tuple[Hunk, ...]
    num_hunks: int
    recent: tuple[Hunk, ...]
    is_unfinished: bool = False
    gives_back: bool = False

    def places(self, document: EditDocument) -> frozenset[int]:
        """Return the bytes where hunks that exchanged nothing but names put the new name."""
        starts = _line_starts(document)
        return frozenset(
            starts[hunk.first_line] + at
            for hunk in self.hunks
            if (self.old, self.new) in exchanged_names(hunk)
            for names, _, at in exchanged_at(hunk)
            if names == (self.old, self.new)
        )

    def written(self, document: EditDocument) -> list[tuple[int, int]]:
        """Return the spans that the user just wrote, in bytes of the document."""
        starts = _line_starts(document)
        found = [(starts[hunk.first_line], span) for hunk in self.recent for span in written_spans(hunk)]
        return [(at + first, at + end) for at, (first, end) in found]


class Outcome(Enum):
    """What is known of a rename: nothing, that its uses follow, may follow, or must not."""

    UNKNOWN = 0
    FOLLOWED = 1
    OPEN = 2
    REFUSED = 3


@dataclass(frozen=True, slots=True)
class RenamedThing:
    """A renamed definition, its uses that still have the old name, and names of other things."""

    outcome: Outcome = Outcome.UNKNOWN
    definition: Occurrence | None = None
    uses: tuple[Occurrence, ...] = ()
    others: tuple[Occurrence, ...] = ()
    is_member: bool = False

    @property
    def is_export(self) -> bool:
        """Whether other files may import the definition."""
        one = self.definition
        is_outside = (
            one is not None and len(one.scopes) == 1 and one.role not in ("import", "access", "label")
        )
        return self.outcome is Outcome.FOLLOWED and is_outside


def linked_edits(
    document: EditDocument, parsed: ParsedText, hunks: Sequence[Hunk], *, is_invoked: bool = False
) -> Iterator[LinkedEdit]:
    """Yield the edits of lines whose uses are linked to a definition that recent hunks renamed."""
    for rename in renames_of(document, hunks, is_invoked=is_invoked):
        thing = renamed_thing(document, parsed, rename)
        if thing.outcome is Outcome.FOLLOWED:
            yield from edits_at(document, thing.uses, rename)


def edits_at(document: EditDocument, found: Iterable[Occurrence], rename: Rename) -> Iterator[LinkedEdit]:
    """Yield edits that replace the old name at some occurrences, all of a line together."""
    by_line: dict[int, list[tuple[int, int, str]]] = {}
    for one in found:
        row, column = one.position
        by_line.setdefault(row, []).append(
            (column, column + one.end - one.start, one.form.format(rename.new))
        )
    for row, spans in by_line.items():
        old = document.lines[row]
        edit = LineEdit(document.document, row, (old,), (with_spans(old, spans),))
        yield LinkedEdit(edit, rename.hunks[0], rename.num_hunks)


def renames_of(document: EditDocument, hunks: Sequence[Hunk], *, is_invoked: bool = False) -> list[Rename]:
    """Return the names that hunks of a document replaced, the latest first, without those taken back."""
    exchanges: dict[tuple[str, str], dict[Hunk, None]] = {}
    given_back: set[tuple[str, str]] = set()
    for hunk in reversed(hunks):
        for old, new in sorted(exchanged_names(hunk)) or changed_cores(hunk):
            if (new, old) in exchanges:
                given_back.add((new, old))
            elif is_name(old) and is_name(new):
                exchanges.setdefault((old, new), {})[hunk] = None
    renames: list[Rename] = []
    recent = tuple(hunk for hunk in hunks if hunk.document == document.document)
    for (old, new), found in exchanges.items():
        own = tuple(hunk for hunk in found if hunk.document == document.document)
        # A beginning of the old name is probably a name that is being deleted.
        is_partial = old.startswith(new) or is_unfinished(old, new)
        is_open = is_partial and not is_invoked and len(found) == 1
        if own:
            is_back = (old, new) in given_back
            renames.append(Rename(old, new, own, len(found), recent, is_open, is_back))
    return renames[:_MAX_RENAMES]


def renamed_thing(document: EditDocument, parsed: ParsedText, rename: Rename) -> RenamedThing:
    """Return what hunks renamed, its uses, and whether they follow."""
    old, new = occurrences_of(parsed, rename.old), occurrences_of(parsed, rename.new)
    if old is None or new is None:
        return RenamedThing()
    places = rename.places(document)
    renamed = [one for one in new if one.start in places]
    before = [*renamed, *old]
    resolver = Resolver(parsed, before)
    keys = resolver.keys(before)
    things = {key for one, key in zip(renamed, keys, strict=False) if key is not None and one.is_definition}
    definition = next((one for one in renamed if one.is_definition), None)
    if definition is None or not things:
        return RenamedThing()
    of_old = list(zip(old, keys[len(renamed) :], strict=True))
    uses = [one for one, key in of_old if key in things]
    uses += _named_arguments(parsed, definition, old)
    others = [one for one, key in of_old if one not in uses and _is_other(one, key, things)]
    moved = [(one, key) for one, key in zip(before, keys, strict=True) if key in things and key is not None]
    if rename.is_unfinished or _is_taken(
        document, parsed, rename, moved, [one for one in new if one not in renamed]
    ):
        return RenamedThing(Outcome.REFUSED, definition, (), tuple(old))
    if len(things) > 1:
        others = []  # the user renames several things alike
    is_open = _is_open(rename, definition, uses) or any(map(resolver.overrides, things))
    outcome = Outcome.OPEN if is_open else Outcome.FOLLOWED
    is_member = any(key[0] == "member" for key in things)
    return RenamedThing(outcome, definition, tuple(uses), tuple(others), is_member)


def _is_other(one: Occurrence, key: Key | None, things: set[Key]) -> bool:
    """Return whether a name means another thing.

    After an unknown receiver it may be any member, and in a call of the class a member that is set.
    """
    classes = [it[1] for it in things if it[0] == "member"]
    is_possible = one.role == "access" or (one.role == "keyword" and one.receiver in classes)
    return key is not None or not (classes and is_possible)


def _named_arguments(
    parsed: ParsedText, definition: Occurrence, old: Iterable[Occurrence]
) -> list[Occurrence]:
    """Return the names of arguments that name a renamed parameter, where its function alone has its name."""
    function = definition.scopes[-1]
    named = function.node.child_by_field_name("name") if function.kind == "function" else None
    if definition.role != "def" or named is None:
        return []
    name = text_of(named)
    if name in _CONSTRUCTORS:
        name = next((it.class_name for it in reversed(definition.scopes) if it.is_class), name)
    found = [one for one in old if one.role == "keyword" and one.receiver == name]
    return found if found and len(definitions_of(parsed, name)) == 1 else []


def _is_open(rename: Rename, definition: Occurrence, uses: Sequence[Occurrence]) -> bool:
    """Return whether the user may not want all uses to follow."""
    if definition.role == "import" and rename.num_hunks == 1:
        return True  # another thing may be imported in its place
    is_local = definition.home.kind in ("function", "block") and definition.role != "access"
    if rename.new == f"_{rename.old}" and is_local:
        return True  # it may be marked as unused
    others = [one for one in uses if one.is_definition and one.role != "access"]
    return bool(others) and not (len(others) == 1 and _declares(definition, others[0]))


def _declares(one: Occurrence, other: Occurrence) -> bool:
    """Return whether one of two definitions in C or C++ only declares what the other one defines."""
    is_outside = one.role == other.role == "member" and (one.receiver == "") != (other.receiver == "")
    return is_outside or {one.role, other.role} == {"decl", "outer"}


def _line_starts(document: EditDocument) -> list[int]:
    return [0, *accumulate(len(line.encode("utf-8", "replace")) + 1 for line in document.lines)]


def _is_taken(
    document: EditDocument,
    parsed: ParsedText,
    rename: Rename,
    moved: Sequence[tuple[Occurrence, Key]],
    there: Sequence[Occurrence],
) -> bool:
    """Return whether some name would mean another thing once the things of the keys have the new name.

    `moved` are all names of these things, `there` are those that have the new name besides.
    """
    were = Resolver(parsed, there).keys(there)
    resolver = Resolver(parsed, [*there, *(one for one, _ in moved)])
    now_moved = resolver.keys([one for one, _ in moved])
    groups = {key: now for (_, key), now in zip(moved, now_moved, strict=True)}
    is_split = any(groups[key] != now for (_, key), now in zip(moved, now_moved, strict=True))
    if is_split or len(set(groups.values())) < len(groups):
        return True
    if TABLES[parsed.language].setting("nested") and _nests(there, [one for one, _ in moved]):
        return True
    taken = set(now_moved)
    written = rename.written(document)
    for one, was, now in zip(there, were, resolver.keys(there), strict=True):
        # A use may be there because of the rename.
        is_known = rename.gives_back or any(first <= one.start < end for first, end in written)
        if now in taken and (one.is_definition or not is_known):
            return True
        if now not in taken and was != now:
            return True
    return False


def _nests(there: Sequence[Occurrence], moved: Sequence[Occurrence]) -> bool:
    """Return whether a local variable is declared where another one is visible, which is an error."""
    for one in (it for it in there if it.role in _LOCALS):
        for other in (it for it in moved if it.role in _LOCALS):
            first, second = sorted((one, other), key=lambda it: it.start)
            between = second.scopes[second.scopes.index(first.home) :] if first.home in second.scopes else ()
            if between and first.home.kind != "file" and not any(it.is_class for it in between):
                return True
    return False


def import_around(node: Node) -> Node | None:
    """Return the import statement around a node; None outside of one."""
    found: Node | None = None
    above = node.parent
    while above is not None:
        if "import" in above.type or above.type == "use_declaration":
            found = above
        above = above.parent
    return found
