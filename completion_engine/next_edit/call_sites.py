"""Calls that follow a call to which a hunk added an argument, because their definition got a parameter.

One hunk added a parameter to the definition, and another one added the argument to a call of it. A further
call is linked if it has as many arguments as that call had before. Bounded as `linked_names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node, Point

from completion_engine.next_edit.edits import EditDocument, Hunk, LineEdit
from completion_engine.next_edit.linked_names import LinkedEdit, import_around
from completion_engine.next_edit.module_paths import Module, imports_name, is_imported
from completion_engine.next_edit.occurrences import definitions_of, occurrences_of
from completion_engine.next_edit.parsing import Occurrence, ParsedText, text_of, with_spans
from completion_engine.next_edit.resolution import Resolver, free_names, reaches
from completion_engine.next_edit.substitutions import (
    Added,
    added_items,
    arguments_after,
    callee_of,
    items_of,
    keyword_of,
)

_OPTIONAL = ("default", "optional", "splat", "rest", "variadic")
_OPEN_ENDED = ("splat", "spread", "variadic")
_MAX_ARGUMENT_CHARS = 120
_MAX_ARGUMENT_NAMES = 4
_MAX_ADDED = 8  # arguments and parameters of one document, the latest ones


@dataclass(frozen=True, slots=True)
class Signature:
    """A definition in a module to which a hunk added one parameter that each call must pass."""

    name: str
    module: Module | None
    hunk: Hunk


@dataclass(frozen=True, slots=True)
class AddedArgument:
    """The argument `text` that a hunk added to a call of `callee`, as item `index` of what were `num_before`.

    `keyword` is the name of a named argument. `names` are those in it that its document binds.
    """

    callee: str
    text: str
    keyword: str
    index: int
    num_before: int
    names: frozenset[str]
    hunk: Hunk


@dataclass(frozen=True, slots=True)
class ChangedCalls:
    """Signatures and arguments of calls that hunks changed."""

    signatures: tuple[Signature, ...] = ()
    arguments: tuple[AddedArgument, ...] = ()

    def __add__(self, other: ChangedCalls) -> ChangedCalls:
        """Return what both hold."""
        return ChangedCalls(self.signatures + other.signatures, self.arguments + other.arguments)

    @property
    def pairs(self) -> list[tuple[Signature, AddedArgument]]:
        """Return each signature with the latest argument that was added to a call of it."""
        pairs: dict[str, tuple[Signature, AddedArgument]] = {}
        for signature in self.signatures:
            for argument in self.arguments:
                if _last_name(argument.callee) == signature.name:
                    pairs.setdefault(signature.name, (signature, argument))
        return list(pairs.values())


def changed_calls(document: EditDocument, parsed: ParsedText, hunks: Sequence[Hunk]) -> ChangedCalls:
    """Return what hunks of a document changed, the latest first."""
    module = Module.of(document)
    own = [
        (added, hunk)
        for hunk in reversed(hunks)
        if hunk.document == document.document and document.lines[hunk.first_line : hunk.end_line] == hunk.new
        for added in added_items(parsed, hunk)
    ][:_MAX_ADDED]
    signatures = [one for added, hunk in own for one in _signature(added, module, hunk)]
    arguments = [one for added, hunk in own for one in _argument(added, parsed, hunk)]
    return ChangedCalls(tuple(signatures), tuple(arguments))


def call_edits(document: EditDocument, parsed: ParsedText, changed: ChangedCalls) -> Iterator[LinkedEdit]:
    """Yield the edits of lines whose calls lack an argument that another call of the definition got."""
    for signature, argument in changed.pairs:
        by_line: dict[int, list[tuple[int, int, str]]] = {}
        bindings = [definitions_of(parsed, name) for name in argument.names]
        for name in _names(document, parsed, signature, argument):
            holder = arguments_after(name.node)
            if holder and _lacks(holder, argument) and _are_bound_at(parsed, holder, bindings):
                at, text = _insertion(holder, argument)
                by_line.setdefault(at.row, []).append((at.column, at.column, text))
        num_examples = sum(one.callee == argument.callee for one in changed.arguments)
        for row, insertions in by_line.items():
            old = document.lines[row]
            edit = LineEdit(document.document, row, (old,), (with_spans(old, insertions),))
            yield LinkedEdit(edit, argument.hunk, num_examples)


def _signature(added: Added, module: Module | None, hunk: Hunk) -> Iterator[Signature]:
    definition = added.holder.parent
    name = definition.child_by_field_name("name") if added.is_parameter and definition is not None else None
    has_default = added.node.child_by_field_name("value") is not None
    is_optional = has_default or any(word in added.node.type for word in _OPTIONAL)
    if name is not None and not is_optional:
        yield Signature(text_of(name), module, hunk)


def _argument(added: Added, parsed: ParsedText, hunk: Hunk) -> Iterator[AddedArgument]:
    text = text_of(added.node)
    if callee_of(added.holder) is None or "\n" in text or len(text) > _MAX_ARGUMENT_CHARS:
        return
    names = set(free_names(parsed, added.node))
    if len(names) > _MAX_ARGUMENT_NAMES:
        return
    bound = frozenset(name for name in names if definitions_of(parsed, name))
    num_before, keyword = len(added.items) - 1, keyword_of(added.node)
    yield AddedArgument(_callee(parsed, added.holder), text, keyword, added.index, num_before, bound, hunk)


def misplaces_argument(
    document: EditDocument, parsed: ParsedText, edit: LineEdit, changed: ChangedCalls
) -> bool:
    """Return whether an edit, which made a text, adds an argument to a call of something else than the
    definition of this name that got a parameter.
    """
    if len(edit.old) != len(edit.new):
        return False
    made = Hunk(edit.document, edit.first_line, edit.old, edit.new)
    holders = [added.holder for added in added_items(parsed, made) if not added.is_parameter]
    for signature, argument in changed.pairs if holders else ():
        meant = {
            holder.id
            for it in _names(document, parsed, signature, argument)
            if (holder := arguments_after(it.node))
        }
        for holder in holders:
            if _last_name(_callee(parsed, holder)) == signature.name and holder.id not in meant:
                return True
    return False


def _names(
    document: EditDocument, parsed: ParsedText, signature: Signature, argument: AddedArgument
) -> Iterator[Occurrence]:
    """Yield the names that mean a definition: in its file, or where it is imported."""
    found = occurrences_of(parsed, signature.name) or []
    if document.document != signature.hunk.document:
        yield from _imported(document.path, parsed, found, signature)
        return
    keys = Resolver(parsed, found).keys(found) if found else []
    hunk = signature.hunk
    meant = [
        key
        for one, key in zip(found, keys, strict=True)
        if one.is_definition and hunk.first_line <= one.position[0] < hunk.end_line
    ]
    defined = [key for one, key in zip(found, keys, strict=True) if one.is_definition and key in meant]
    for one, key in zip(found, keys, strict=True) if len(defined) == 1 else ():
        holder = arguments_after(one.node)
        is_like_example = one.receiver != "" and holder and _callee(parsed, holder) == argument.callee
        if key in meant or (key is None and is_like_example):
            yield one


def _imported(
    at: str, parsed: ParsedText, found: Sequence[Occurrence], signature: Signature
) -> Iterator[Occurrence]:
    """Yield the names that mean a definition which a document imports, or whose module it imports."""
    bindings = [one for one in found if one.is_definition]
    module, name = signature.module, signature.name
    if module is None:
        return
    if bindings:
        is_meant = all(imports_name(import_around(one.node), at, module, name) for one in bindings)
    else:
        is_meant = is_imported(parsed, at, module)
    yield from (one for one in found if is_meant and one.receiver in ("", module.name))


def _callee(parsed: ParsedText, holder: Node) -> str:
    """Return the text of what a list of arguments is passed to, with its receiver."""
    start = holder.parent.start_byte if holder.parent is not None else holder.start_byte
    return parsed.text[start : holder.start_byte].decode("utf-8", "replace").strip()


def _lacks(holder: Node, argument: AddedArgument) -> bool:
    """Return whether a call has the arguments that the changed one had before, and may get one more."""
    items = items_of(holder)
    is_closed = not any(word in node.type for node in items for word in _OPEN_ENDED)
    is_named = any(keyword_of(node) == argument.keyword != "" for node in items)
    rows = [node.end_point.row for node in items[-2:]]
    is_in_line = not rows or rows[-1] in (holder.end_point.row, rows[0])
    at = _position(items, argument)
    is_ordered = argument.keyword != "" or not any(map(keyword_of, items[:at]))
    return is_closed and not is_named and is_in_line and is_ordered and len(items) == argument.num_before


def _position(items: Sequence[Node], argument: AddedArgument) -> int:
    return len(items) if argument.keyword else argument.index


def _are_bound_at(parsed: ParsedText, holder: Node, bindings: Sequence[Sequence[Occurrence]]) -> bool:
    """Return whether one of the bindings of each name counts at a call."""
    return all(any(reaches(parsed, one, holder) for one in found) for found in bindings)


def _insertion(holder: Node, argument: AddedArgument) -> tuple[Point, str]:
    """Return where an argument goes into a call, and its text with a comma."""
    items = items_of(holder)
    at = _position(items, argument)
    if not items:
        return Point(holder.start_point.row, holder.start_point.column + 1), argument.text
    if at == len(items):
        return items[-1].end_point, f", {argument.text}"
    return items[at].start_point, f"{argument.text}, "


def _last_name(callee: str) -> str:
    return re.split(r"\W+", callee)[-1]
