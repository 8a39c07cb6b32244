"""Imports of a definition that was renamed in another file, and uses of it through its module.

The import must name the file of the definition. Bounded as `linked_names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from tree_sitter import Node

from completion_engine.next_edit.edits import EditDocument, Hunk
from completion_engine.next_edit.linked_names import (
    LinkedEdit,
    Rename,
    edits_at,
    import_around,
    renamed_thing,
    renames_of,
)
from completion_engine.next_edit.occurrences import occurrences_of
from completion_engine.next_edit.parsing import ParsedText

FILES_OF_FOLDERS = ("__init__", "index", "mod", "lib")  # they are imported by their folder's name
_MAX_IMPORT_CHARS = 4_000
_MAX_MATCHES = 64


@dataclass(frozen=True, slots=True)
class RenamedExport:
    """A definition outside of classes and functions of the file `module`, which hunks renamed."""

    module: str
    rename: Rename


def renamed_exports(
    document: EditDocument, parsed: ParsedText, hunks: Sequence[Hunk], *, is_invoked: bool = False
) -> Iterator[RenamedExport]:
    """Yield the definitions of a document that other files may import, and that recent hunks renamed."""
    module = module_of(document.path, document.language)
    for rename in renames_of(document, hunks, is_invoked=is_invoked) if module else ():
        if renamed_thing(document, parsed, rename).is_export:
            yield RenamedExport(module, rename)


def module_of(path: str, language: str) -> str:
    """Return the name by which other files import the file at a path; empty if there is none."""
    file = PurePosixPath(path)
    stem = file.name.partition(".")[0]
    return file.parent.name if language == "go" or stem in FILES_OF_FOLDERS else stem


def import_edits(document: EditDocument, parsed: ParsedText, export: RenamedExport) -> Iterator[LinkedEdit]:
    """Yield the edits of lines that import the old name from its module, or use it through the module."""
    old, name = occurrences_of(parsed, export.rename.old) or [], export.rename.old
    imports = [one for one in old if import_names(import_around(one.node), export.module, name)]
    if not imports and is_imported(parsed, export.module):
        imports = [one for one in old if one.receiver == export.module]
    yield from edits_at(document, imports, export.rename)


def is_imported(parsed: ParsedText, module: str) -> bool:
    """Return whether an import statement names a module, which may be a part of a path in quotes."""
    matches = re.finditer(rf"\b{re.escape(module)}\b".encode(), parsed.text)
    nodes = (parsed.node_at(*match.span()) for match in islice(matches, _MAX_MATCHES))
    return any(node is not None and import_around(node) is not None for node in nodes)


def import_names(statement: Node | None, module: str, name: str) -> bool:
    """Return whether an import statement imports a name from a module, and not from several at once."""
    text = statement.text if statement is not None else None
    if text is None or len(text) > _MAX_IMPORT_CHARS:
        return False
    words = re.findall(r"\w+", text.decode("utf-8", "replace"))
    return module in words and words.count(name) == 1 and text.count(b"{") <= 1
