"""Calls that follow a call to which a hunk added an argument, because their definition got a parameter.

One hunk added a parameter to the definition, and another one added the argument to a call of it. A further
call is linked if it has as many arguments as that call had before. Bounded as `linked_names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node, Point

from completion_engine.next_edit.added_items import (
    Added,
    added_items,
    arguments_after,
    callee_of,
    items_of,
    keyword_of,
)
from completion_engine.next_edit.bindings import bindings_of, identifiers, is_binding
from completion_engine.next_edit.edits import EditDocument, Hunk, LineEdit
from completion_engine.next_edit.linked_imports import import_names, is_imported, module_of
from completion_engine.next_edit.linked_names import (
    OWN_RECEIVERS,
    LinkedEdit,
    import_around,
    receiver_of,
)
from completion_engine.next_edit.parsing import ParsedText, text_of, with_spans
from completion_engine.next_edit.visible_names import free_names, reaches

_OPTIONAL = ("default", "optional", "splat", "rest", "variadic")
_OPEN_ENDED = ("splat", "spread", "variadic")
_MAX_ARGUMENT_CHARS = 120
_MAX_ARGUMENT_NAMES = 4
_MAX_ADDED = 8  # arguments and parameters of one document, the latest ones


@dataclass(frozen=True, slots=True)
class Signature:
    """A definition in the file `module` to which a hunk added one parameter that each call must pass."""

    name: str
    module: str
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
    module = module_of(document.path, document.language)
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
        bindings = [list(bindings_of(parsed, name)) for name in argument.names]
        for name in _names(document, parsed, signature, argument):
            holder = arguments_after(name)
            if holder is not None and _lacks(holder, argument) and _are_bound_at(holder, bindings):
                at, text = _insertion(holder, argument)
                by_line.setdefault(at.row, []).append((at.column, at.column, text))
        num_examples = sum(one.callee == argument.callee for one in changed.arguments)
        for row, insertions in by_line.items():
            old = document.lines[row]
            edit = LineEdit(document.document, row, (old,), (with_spans(old, insertions),))
            yield LinkedEdit(edit, argument.hunk, num_examples)


def _signature(added: Added, module: str, hunk: Hunk) -> Iterator[Signature]:
    definition = added.holder.parent
    name = definition.child_by_field_name("name") if added.is_parameter and definition is not None else None
    has_default = added.node.child_by_field_name("value") is not None
    is_optional = has_default or any(word in added.node.type for word in _OPTIONAL)
    if name is not None and not is_optional:
        yield Signature(text_of(name), module, hunk)


def _argument(added: Added, parsed: ParsedText, hunk: Hunk) -> Iterator[AddedArgument]:
    callee, text = callee_of(added.holder), text_of(added.node)
    if callee is None or "\n" in text or len(text) > _MAX_ARGUMENT_CHARS:
        return
    names = {text_of(leaf) for leaf in free_names(added.node)}
    if len(names) > _MAX_ARGUMENT_NAMES:
        return
    bound = frozenset(name for name in names if any(True for _ in bindings_of(parsed, name)))
    num_before, keyword = len(added.items) - 1, keyword_of(added.node)
    yield AddedArgument(text_of(callee), text, keyword, added.index, num_before, bound, hunk)


def _names(
    document: EditDocument, parsed: ParsedText, signature: Signature, argument: AddedArgument
) -> Iterator[Node]:
    """Yield the identifiers that mean a definition: in its file, or where it is imported."""
    names = list(identifiers(parsed, signature.name))
    bindings = [node for node in names if is_binding(node)]
    is_own = document.document == signature.hunk.document
    if len(bindings) > 1 if is_own else not _is_imported(parsed, bindings, signature):
        return
    for node in names:
        receiver = receiver_of(node)
        is_plain = receiver is None or (is_own and receiver.text in OWN_RECEIVERS)
        is_through_module = receiver is not None and not is_own and text_of(receiver) == signature.module
        is_like_example = is_own and receiver is not None and _callee(node) == argument.callee
        if is_plain or is_through_module or is_like_example:
            yield node


def _is_imported(parsed: ParsedText, bindings: Sequence[Node], signature: Signature) -> bool:
    """Return whether a document imports a definition, or, if nothing binds its name, its module."""
    if not signature.module:
        return False
    if not bindings:
        return is_imported(parsed, signature.module)
    return all(import_names(import_around(node), signature.module, signature.name) for node in bindings)


def _callee(name: Node) -> str:
    holder = arguments_after(name)
    callee = callee_of(holder) if holder is not None else None
    return text_of(callee) if callee is not None else ""


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


def _are_bound_at(holder: Node, bindings: Sequence[Sequence[Node]]) -> bool:
    """Return whether one of the bindings of each name counts at a call."""
    return all(any(reaches(binding, holder) for binding in found) for found in bindings)


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
