"""Imports of a definition that was renamed in another file, and uses of it through its module.

The import must name the file of the definition. Bounded as `linked_names`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from completion_engine.next_edit.edits import EditDocument, Hunk
from completion_engine.next_edit.linked_names import (
    LinkedEdit,
    Rename,
    edits_at,
    import_around,
    renamed_thing,
    renames_of,
)
from completion_engine.next_edit.module_paths import Module, imports_name, is_imported
from completion_engine.next_edit.occurrences import occurrences_of
from completion_engine.next_edit.parsing import ParsedText


@dataclass(frozen=True, slots=True)
class RenamedExport:
    """A definition outside of classes and functions of the file `module`, which hunks renamed."""

    module: Module
    rename: Rename


def renamed_exports(
    document: EditDocument, parsed: ParsedText, hunks: Sequence[Hunk], *, is_invoked: bool = False
) -> Iterator[RenamedExport]:
    """Yield the definitions of a document that other files may import, and that recent hunks renamed."""
    if (module := Module.of(document)) is None:
        return
    for rename in renames_of(document, hunks, is_invoked=is_invoked):
        if renamed_thing(document, parsed, rename).is_export:
            yield RenamedExport(module, rename)


def import_edits(document: EditDocument, parsed: ParsedText, export: RenamedExport) -> Iterator[LinkedEdit]:
    """Yield the edits of lines that import the old name from its module, or use it through the module."""
    old, name = occurrences_of(parsed, export.rename.old) or [], export.rename.old
    at, module = document.path, export.module
    imports = [one for one in old if imports_name(import_around(one.node), at, module, name)]
    if not imports and is_imported(parsed, at, module):
        imports = [one for one in old if one.receiver == module.name]
    yield from edits_at(document, imports, export.rename)
