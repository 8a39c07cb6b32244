"""The remaining uses of a renamed definition, which the syntax tree finds.

A name is linked if a recent hunk renamed a definition, no definition of the old name is left in its scope or
around it, and the use stands in that scope. Such an edit needs no model. Bounded in time and text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from completion_engine.next_edit.added_items import is_keyword
from completion_engine.next_edit.bindings import bindings_of, identifiers
from completion_engine.next_edit.edits import EditDocument, Hunk, LineEdit
from completion_engine.next_edit.parsing import ParsedText, with_spans
from completion_engine.next_edit.substitutions import changed_cores, is_name

_MAX_RENAMES = 4  # the latest ones
_SCOPES = ("function", "method", "lambda", "closure", "comprehension", "generator", "func_literal", "class",
           "constructor", "impl_item", "trait_item", "interface")  # fmt: skip
_NO_SCOPES = ("call", "type", "parameter", "signature_item", "body", "heritage", "modifier")
_SIGNATURES = ("function_type", "constructor_type", "call_signature", "construct_signature")
_MEMBER_LEAVES = ("property_identifier", "field_identifier", "shorthand", "statement_identifier")
_MEMBERS = ("attribute", "member_expression", "field_expression", "selector_expression", "field_access",
            "method_invocation", "member_access_expression", "scoped_identifier", "qualified_identifier",
            "scoped_type_identifier", "call")  # fmt: skip
OWN_RECEIVERS = frozenset({b"self", b"this", b"cls", b"Self"})


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
    """Hunks of one document that replaced the name `old` with `new`, the latest first; `num_hunks` counts
    those of all documents.
    """

    old: str
    new: str
    hunks: tuple[Hunk, ...]
    num_hunks: int

    def holds(self, node: Node) -> bool:
        """Return whether a node stands in one of the hunks, which changed nothing but the name."""
        row = node.start_point.row
        return any(hunk.first_line <= row < hunk.end_line and self._is_all_of(hunk) for hunk in self.hunks)

    def _is_all_of(self, hunk: Hunk) -> bool:
        name = re.compile(rf"\b{re.escape(self.new)}\b")
        return tuple(name.sub(self.old, line) for line in hunk.new) == hunk.old


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a name, at `node`: `scope` is where it counts. A member is used with a receiver."""

    scope: Node
    node: Node
    is_member: bool
    takes_plain_uses: bool

    def may_hide(self, other: Definition, node: Node) -> bool:
        """Return whether a use of this definition may mean `other`, whose name stands at `node`."""
        is_alike = self.is_member == other.is_member or (self.takes_plain_uses and other.takes_plain_uses)
        return is_alike and (is_within(node, self.scope) or is_within(self.scope, other.scope))


def linked_edits(document: EditDocument, parsed: ParsedText, hunks: Sequence[Hunk]) -> Iterator[LinkedEdit]:
    """Yield the edits of lines whose uses are linked to a definition that recent hunks renamed."""
    for rename in renames_of(document, hunks):
        yield from edits_at(document, _uses(parsed, rename, document.language), rename)


def edits_at(document: EditDocument, nodes: Iterable[Node], rename: Rename) -> Iterator[LinkedEdit]:
    """Yield edits that replace the old name at some nodes, all of a line together."""
    by_line: dict[int, list[Node]] = {}
    for node in nodes:
        by_line.setdefault(node.start_point.row, []).append(node)
    for line, here in by_line.items():
        old = document.lines[line]
        spans = ((node.start_point.column, node.end_point.column, rename.new) for node in here)
        edit = LineEdit(document.document, line, (old,), (with_spans(old, spans),))
        yield LinkedEdit(edit, rename.hunks[0], rename.num_hunks)


def renames_of(document: EditDocument, hunks: Sequence[Hunk]) -> list[Rename]:
    """Return the names that hunks of a document replaced, the latest first, without those taken back."""
    exchanges: dict[tuple[str, str], dict[Hunk, None]] = {}
    for hunk in reversed(hunks):
        for old, new in changed_cores(hunk):
            # A beginning of the old name is probably a name that is being deleted.
            is_rename = is_name(old) and is_name(new) and not old.startswith(new)
            if is_rename and (new, old) not in exchanges:
                exchanges.setdefault((old, new), {})[hunk] = None
    renames: list[Rename] = []
    for (old, new), found in exchanges.items():
        own = tuple(hunk for hunk in found if hunk.document == document.document)
        if own:
            renames.append(Rename(old, new, own, len(found)))
    return renames[:_MAX_RENAMES]


def definition_of(parsed: ParsedText, rename: Rename, language: str) -> Definition | None:
    """Return the renamed definition; None unless a use of the old name in its scope can only mean it."""
    new_bindings = list(bindings_of(parsed, rename.new))
    renamed = [node for node in new_bindings if rename.holds(node)]
    if not renamed:
        return None
    if rename.num_hunks == 1 and import_around(renamed[0]) is not None:
        return None  # another thing may be imported in its place
    found = _definition(renamed[0], language)
    if rename.new == f"_{rename.old}" and not found.is_member and found.scope.parent is not None:
        return None  # it may be marked as unused
    if any(is_within(node, found.scope) and not rename.holds(node) for node in new_bindings):
        return None  # the new name had a meaning here before
    old_bindings = bindings_of(parsed, rename.old)
    return None if any(found.may_hide(_definition(node, language), node) for node in old_bindings) else found


def _uses(parsed: ParsedText, rename: Rename, language: str) -> Iterator[Node]:
    """Yield the identifiers that meant the renamed definition; none unless all is certain."""
    found = definition_of(parsed, rename, language)
    for node in identifiers(parsed, rename.old) if found else ():
        if found and is_within(node, found.scope) and _is_use(node, found):
            yield node


def _definition(node: Node, language: str) -> Definition:
    """Return where the definition of a binding identifier counts."""
    is_leaf_member = node.type.startswith(_MEMBER_LEAVES) or receiver_of(node) is not None
    scope = scope_of(node)
    if not is_leaf_member and not _is_class(scope):
        return Definition(scope, node, is_member=False, takes_plain_uses=True)
    while scope.parent is not None and not _is_class(scope):
        scope = scope_of(scope)
    takes_plain = not is_leaf_member and language != "python"
    return Definition(scope, node, is_member=True, takes_plain_uses=takes_plain)


def import_around(node: Node) -> Node | None:
    """Return the import statement around a node; None outside of one."""
    found: Node | None = None
    above = node.parent
    while above is not None:
        if "import" in above.type or above.type == "use_declaration":
            found = above
        above = above.parent
    return found


def scope_of(node: Node) -> Node:
    """Return the smallest scope around a node; a scope's own name belongs to the one around it."""
    child, parent = node, node.parent
    while parent is not None:
        is_own_name = parent.child_by_field_name("name") == child
        if _is_scope(parent) and not is_own_name:
            return parent
        child, parent = parent, parent.parent
    return child


def _is_scope(node: Node) -> bool:
    kind = node.type
    is_code = any(word in kind for word in _SCOPES) and not any(word in kind for word in _NO_SCOPES)
    return is_code or kind in _SIGNATURES


def _is_class(node: Node) -> bool:
    return any(word in node.type for word in ("class", "impl_item", "trait_item", "interface"))


def _is_use(node: Node, definition: Definition) -> bool:
    """Return whether an identifier of the old name is a use of the definition, as far as its kind tells."""
    receiver = receiver_of(node)
    if receiver is not None:
        return definition.is_member and receiver.text in OWN_RECEIVERS
    if not definition.takes_plain_uses or any(word in node.type for word in _MEMBER_LEAVES):
        return False
    return not is_keyword(node)


def receiver_of(node: Node) -> Node | None:
    """Return what stands before the dot of a member; None for any other name."""
    parent = node.parent
    if parent is None or parent.type not in _MEMBERS:
        return None
    first = parent.children[0]
    return first if first != node else None


def is_within(node: Node, scope: Node) -> bool:
    """Return whether a node stands in another one."""
    return scope.start_byte <= node.start_byte and node.end_byte <= scope.end_byte
