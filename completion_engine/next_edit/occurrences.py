"""Where a name occurs in a syntax tree, with its role and scopes, and whether an edit left it unbound.

Bounded in the number of occurrences and in depth. A language without a table has no occurrences.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from tree_sitter import Node

from completion_engine.next_edit.edits import Hunk, LineEdit
from completion_engine.next_edit.parsing import TABLES, Occurrence, ParsedText, PathStep
from completion_engine.next_edit.role_reading import SIGILS, read_occurrences
from completion_engine.next_edit.substitutions import exchanged_names

MAX_OCCURRENCES = 1_200  # a file with more is not followed
_LEAVES = ("name", "constant", "hash_key_symbol", "label_name", "implicit_parameter")


def occurrences_of(parsed: ParsedText, name: str) -> list[Occurrence] | None:
    """Return where a name occurs; None without a table, or if it occurs too often or too deep."""
    if name not in parsed.found:
        parsed.found[name] = _found(parsed, name)
    return parsed.found[name]


def definitions_of(parsed: ParsedText, name: str) -> list[Occurrence]:
    """Return where a text binds a name."""
    return [one for one in occurrences_of(parsed, name) or () if one.is_definition]


def _found(parsed: ParsedText, name: str) -> list[Occurrence] | None:
    table, token = TABLES.get(parsed.language), name.encode("utf-8", "replace")
    if table is None or not token:
        return None
    found: list[Occurrence] = []
    for at in _places(parsed.text, token):
        path = parsed.path_to(at, at + len(token))
        if path is None or len(found) >= MAX_OCCURRENCES:
            return None
        if _is_name(parsed, path, at, at + len(token)):
            found += read_occurrences(parsed, table, path, at, at + len(token))
    return found


def _places(text: bytes, token: bytes) -> Iterator[int]:
    """Yield where a token stands as a whole word."""
    at = text.find(token)
    while at >= 0:
        end = at + len(token)
        if not (_is_word(text[max(0, at - 1) : at]) or _is_word(text[end : end + 1])):
            yield at
        at = text.find(token, end)


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte == b"_" or byte >= b"\x80"


def _is_name(parsed: ParsedText, path: list[PathStep], at: int, end: int) -> bool:
    node: Node = path[-1].node
    if node.child_count:
        return False
    if node.type in SIGILS:
        return node.end_byte == end and not parsed.text[node.start_byte : at].strip(b"@$#")
    if node.type == "string_content" and len(path) > 2 and path[-3].node.type == "token_tree":
        # A format string of Rust names variables.
        return parsed.text[at - 1 : at] == b"{" and parsed.text[end : end + 1] in (b"}", b":")
    is_leaf = node.type.endswith("identifier") or node.type in _LEAVES
    return is_leaf and (node.start_byte, node.end_byte) == (at, end)


class OldName(IntEnum):
    """The state of the name that an edit replaces: still bound, not known, or dangling.

    A dangling name has no binding left in its file, and the hunk that the edit repeats binds the new name.
    """

    BOUND = -1
    UNKNOWN = 0
    DANGLING = 1


def state_of_old_name(parsed: ParsedText | None, edit: LineEdit, hunk: Hunk) -> OldName:
    """Return the state of the one name that `edit` exchanges as `hunk` did, in the tree before the edit.

    An edit that renames a definition leaves uses of a name that nothing binds any more. A name that is still
    bound means what it meant before.
    """
    names = exchanged_names(edit)
    if parsed is None or len(names) != 1:
        return OldName.UNKNOWN
    ((old, new),) = names
    if definitions_of(parsed, old):
        return OldName.BOUND
    found = definitions_of(parsed, new) if edit.document == hunk.document else ()
    is_renamed = any(hunk.first_line <= one.position[0] < hunk.end_line for one in found)
    return OldName.DANGLING if is_renamed else OldName.UNKNOWN
