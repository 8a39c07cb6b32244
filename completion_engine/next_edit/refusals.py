"""Refuses edits that would break code, by syntax trees: errors, misplaced names, the rename of another thing
or to a name that is taken or unfinished, and an argument for the method of another object.

Owns the trees of one request. Bounded as `linked_names`. Does not depend on models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from completion_engine.next_edit.call_sites import ChangedCalls, changed_calls, misplaces_argument
from completion_engine.next_edit.edits import EditDocument, EditRequest, LineEdit
from completion_engine.next_edit.linked_names import Outcome, Rename, RenamedThing, renamed_thing, renames_of
from completion_engine.next_edit.occurrences import occurrences_of
from completion_engine.next_edit.parsing import (
    DocumentParser,
    ParsedText,
    adds_errors,
    edited,
    with_lines_around,
)
from completion_engine.next_edit.resolution import Resolver
from completion_engine.next_edit.scoped_names import PLAIN, Occurrence
from completion_engine.next_edit.substitutions import exchanged_at
from completion_engine.next_edit.visible_names import misplaces_names

_MAX_CHANGED = 4  # documents whose hunks are read


class Refusals:
    """Decides which edits of one request would break code."""

    def __init__(self, request: EditRequest, trees: DocumentParser) -> None:
        self._trees = trees
        self._things: dict[tuple[str, str], list[tuple[str, RenamedThing]]] = {}
        self._calls = ChangedCalls()
        changed = {hunk.document for hunk in request.hunks}
        for document in [it for it in request.documents if it.document in changed][:_MAX_CHANGED]:
            if (parsed := trees.parsed(document)) is not None:
                self._read(request, document, parsed)

    def _read(self, request: EditRequest, document: EditDocument, parsed: ParsedText) -> None:
        self._calls += changed_calls(document, parsed, request.hunks)
        rename: Rename
        for rename in renames_of(document, request.hunks, is_invoked=request.is_invoked):
            thing = renamed_thing(document, parsed, rename)
            if thing.outcome is not Outcome.UNKNOWN:
                self._things.setdefault((rename.old, rename.new), []).append((document.document, thing))

    def refuses(self, document: EditDocument, edit: LineEdit) -> bool:
        """Return whether an edit adds errors, names that mean nothing at its place, or what is refused above.

        Where a document is too large or too slow to parse, the lines around the edit are parsed.
        """
        old = self._trees.parsed(document)
        new = self._trees.parse(edited(document, edit)) if old is not None else None
        if old is None or new is None:
            part, moved = with_lines_around(document, edit)
            return adds_errors(self._trees.parse(part), self._trees.parse(edited(part, moved)))
        return (
            adds_errors(old, new)
            or misplaces_names(new, edit)
            or self._renames_another_thing(document, old, edit)
            or self._fills_another_property(document, old, edit)
            or misplaces_argument(document, new, edit, self._calls)
        )

    def _renames_another_thing(self, document: EditDocument, parsed: ParsedText, edit: LineEdit) -> bool:
        offset = sum(len(line.encode("utf-8", "replace")) + 1 for line in document.lines[: edit.first_line])
        for names, start, _ in exchanged_at(edit):
            for where, thing in self._things.get(names, ()):
                is_own = where == document.document
                refused = _others(document, parsed, names[0], where, thing)
                if any(one.start == offset + start for one in refused):
                    return True
                here = (one for one in thing.uses if is_own and one.start == offset + start)
                if any(one.form != PLAIN for one in here):
                    return True
        return False

    def _fills_another_property(self, document: EditDocument, parsed: ParsedText, edit: LineEdit) -> bool:
        """Return whether an edit writes the new name into a short property that means another thing."""
        for (old, new), things in self._things.items():
            for where, thing in things:
                for one in _others(document, parsed, old, where, thing):
                    row, written = one.position[0] - edit.first_line, one.form.format(new)
                    is_here = one.form != PLAIN and 0 <= row < min(len(edit.old), len(edit.new))
                    if is_here and edit.new[row].count(written) > edit.old[row].count(written):
                        return True
        return False


def _others(
    document: EditDocument, parsed: ParsedText, name: str, where: str, thing: RenamedThing
) -> Iterable[Occurrence]:
    """Return the occurrences in a document that do not mean the thing which was renamed in `where`."""
    return thing.others if where == document.document else _own_names(parsed, name, thing)


def _own_names(parsed: ParsedText, name: str, thing: RenamedThing) -> Iterator[Occurrence]:
    """Yield the occurrences that their own document binds, so that they mean no thing of another one."""
    found = occurrences_of(parsed, name) or []
    keys = Resolver(parsed, found).keys(found) if found else []
    bound = {key for one, key in zip(found, keys, strict=True) if one.is_definition and one.role != "import"}
    is_member = thing.is_member
    for one, key in zip(found, keys, strict=True):
        is_alike = is_member and key is not None and key[0] == "member"
        if thing.outcome is Outcome.REFUSED or (key in bound and not is_alike):
            yield one
