"""Arguments and parameters that a hunk added: the nodes of the new tree whose text the hunk inserted.

Pure functions of trees and text, bounded by the length of a hunk. Does not depend on models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from completion_engine.next_edit.edits import Hunk
from completion_engine.next_edit.parsing import ParsedText, text_of
from completion_engine.next_edit.substitutions import written_spans

_ARGUMENT_LISTS = ("arguments", "argument_list")
_PARAMETER_LISTS = ("parameters", "formal_parameters", "parameter_list")
_CALLEE_FIELDS = ("function", "name", "constructor", "method")
_NAMED_ARGUMENTS = ("keyword_argument", "named_argument")
_SEPARATORS = b", \t\n"
_MAX_LEVELS = 6  # from a leaf to the argument that it begins
_MAX_CALLEE_LEVELS = 3  # from the name of a callee to its call
_MAX_ITEMS = 16


@dataclass(frozen=True, slots=True)
class Added:
    """A node that a hunk inserted as item `index` of `items`, the arguments or parameters in `holder`."""

    node: Node
    holder: Node
    items: tuple[Node, ...]
    index: int

    @property
    def is_parameter(self) -> bool:
        """Whether it belongs to a definition, not to a call."""
        return self.holder.type in _PARAMETER_LISTS


def added_items(parsed: ParsedText, hunk: Hunk) -> Iterator[Added]:
    """Yield the arguments and parameters that a hunk inserted whole into lists that were there before."""
    start = sum(len(line) + 1 for line in parsed.text.split(b"\n")[: hunk.first_line])
    for first, end in written_spans(hunk, is_inserted=True)[:_MAX_ITEMS]:
        text = parsed.text[start + first : start + end]
        core = text.strip(_SEPARATORS)
        at = start + first + len(text) - len(text.lstrip(_SEPARATORS))
        added = _item(parsed, at, at + len(core)) if core else None
        if added is not None:
            yield added


def items_of(holder: Node) -> tuple[Node, ...]:
    """Return the arguments or parameters of a list."""
    return tuple(node for node in holder.named_children if "comment" not in node.type)


def keyword_of(argument: Node) -> str:
    """Return the name of a named argument; empty for another one."""
    name = argument.child_by_field_name("name") if argument.type in _NAMED_ARGUMENTS else None
    return text_of(name) if name is not None else ""


def callee_of(holder: Node) -> Node | None:
    """Return what a list of arguments is passed to."""
    call = holder.parent
    if call is None or holder.type not in _ARGUMENT_LISTS:
        return None
    fields = (call.child_by_field_name(name) for name in _CALLEE_FIELDS)
    return next((node for node in fields if node is not None and node != holder), None)


def arguments_after(name: Node) -> Node | None:
    """Return the list of arguments of the call whose callee is, or ends with, an identifier."""
    node = name
    for _ in range(_MAX_CALLEE_LEVELS):
        parent = node.parent
        if parent is None:
            return None
        holder = parent.child_by_field_name("arguments")
        callee = callee_of(holder) if holder is not None else None
        if callee is not None:
            return holder if callee.end_byte == name.end_byte else None
        node = parent
    return None


def _item(parsed: ParsedText, first: int, end: int) -> Added | None:
    """Return the argument or parameter that a span of the text is."""
    node = parsed.node_at(first, end)
    for _ in range(_MAX_LEVELS):
        holder = node.parent if node is not None else None
        if node is None or holder is None or (node.start_byte, node.end_byte) != (first, end):
            return None
        if holder.type in (*_ARGUMENT_LISTS, *_PARAMETER_LISTS):
            items = items_of(holder)
            return Added(node, holder, items, items.index(node)) if node in items else None
        node = holder
    return None
