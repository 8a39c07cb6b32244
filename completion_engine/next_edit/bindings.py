"""The state of a name that an edit exchanges: whether its file still binds it.

An edit that renames a definition leaves uses of a name that nothing binds any more. A name that is still
bound means what it meant before. Bounded in time and text. Does not depend on models.
"""

from __future__ import annotations

from enum import IntEnum

from completion_engine.next_edit.edits import Hunk, LineEdit
from completion_engine.next_edit.occurrences import definitions_of
from completion_engine.next_edit.parsing import ParsedText
from completion_engine.next_edit.substitutions import exchanged_names


class OldName(IntEnum):
    """The state of the name that an edit replaces: still bound, not known, or dangling.

    A dangling name has no binding left in its file, and the hunk that the edit repeats binds the new name.
    """

    BOUND = -1
    UNKNOWN = 0
    DANGLING = 1


def state_of_old_name(parsed: ParsedText | None, edit: LineEdit, hunk: Hunk) -> OldName:
    """Return the state of the one name that `edit` exchanges as `hunk` did, in the tree before the edit."""
    names = exchanged_names(edit)
    if parsed is None or len(names) != 1:
        return OldName.UNKNOWN
    ((old, new),) = names
    if definitions_of(parsed, old):
        return OldName.BOUND
    found = definitions_of(parsed, new) if edit.document == hunk.document else ()
    is_renamed = any(hunk.first_line <= one.position[0] < hunk.end_line for one in found)
    return OldName.DANGLING if is_renamed else OldName.UNKNOWN
