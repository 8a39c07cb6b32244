"""Import statements that follow an edit: imports of a definition renamed in another file, with its uses
through the module, and imports from a module whose name a hunk changed.

An import must name the file of a renamed definition. A name that its old module still binds may be meant
where it stands, so its other imports stay. Both statements must import from the module by the same path, or
by paths that lead to the same file. Bounded as `linked_names`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from completion_engine.next_edit.edits import EditDocument, Hunk, LineEdit
from completion_engine.next_edit.linked_names import (
    LinkedEdit,
    Rename,
    edits_at,
    import_around,
    renamed_thing,
    renames_of,
)
from completion_engine.next_edit.module_paths import (
    IMPORT,
    SEPARATOR,
    Module,
    ModuleImport,
    imports_name,
    imports_of,
    is_imported,
    is_relative,
    leads_to,
    resolved,
)
from completion_engine.next_edit.occurrences import definitions_of, occurrences_of
from completion_engine.next_edit.parsing import DocumentParser, ParsedText, text_of, with_spans


@dataclass(frozen=True, slots=True)
class MovedName:
    """A name that a hunk of a document at `path` imports from the module `new` instead of `old`."""

    name: str
    old: str
    new: str
    path: str
    hunk: Hunk

    @property
    def old_file(self) -> str:
        """The name of the old module's file or folder."""
        return SEPARATOR.split(self.old)[-1]


def moved_names(document: EditDocument, parsed: ParsedText, hunks: Sequence[Hunk]) -> Iterator[MovedName]:
    """Yield the names whose module hunks of a document changed, the latest hunk first."""
    imports = list(imports_of(parsed))
    for hunk in reversed(hunks):
        text = "\n".join(hunk.old).encode("utf-8", "replace")
        if hunk.document != document.document or not IMPORT.search(text):
            continue
        before = DocumentParser().parsed(EditDocument("", "", document.language, hunk.old))
        was = {name: it.path for it in imports_of(before) for name in it.names} if before else {}
        for it in imports:
            is_of_hunk = hunk.first_line <= it.module.start_point.row < hunk.end_line
            for name in sorted(it.names & was.keys()) if is_of_hunk else ():
                if was[name] != it.path:
                    yield MovedName(name, was[name], it.path, document.path, hunk)


def moved_import_edits(
    document: EditDocument, parsed: ParsedText, moved: Sequence[MovedName]
) -> Iterator[LinkedEdit]:
    """Yield the edits of statements that still import moved names from their old module."""
    for it in imports_of(parsed):
        found = {
            one.name: one for one in reversed(moved) if _is_same(one.old, one.path, it.path, document.path)
        }
        ways = {_path_from(found[name], document.path) for name in it.names if name in found}
        if it.names and it.names <= found.keys() and len(ways) == 1 and (new := ways.pop()):
            first = found[min(it.names)]
            if not leads_to(first.new, first.path, document.path, first.name):
                yield LinkedEdit(_with_module(document, it, new), first.hunk, 1)


def still_bound(
    document: EditDocument, parsed: ParsedText, moved: Sequence[MovedName]
) -> frozenset[MovedName]:
    """Return the moved names whose old module is a document that binds them still."""
    return frozenset(
        one
        for one in moved
        if leads_to(one.old, one.path, document.path, one.name) and definitions_of(parsed, one.name)
    )


def _is_same(old: str, at: str, other: str, at_other: str) -> bool:
    """Return whether two paths, each written in a file, name the same module."""
    if not (is_relative(old) and is_relative(other)):
        return old == other
    return resolved(old, at) == resolved(other, at_other) != ""


def _path_from(moved: MovedName, at: str) -> str:
    """Return the new module's path as a file at `at` names it."""
    if not is_relative(moved.new):
        return moved.new
    if posixpath.dirname(at) == posixpath.dirname(moved.path):
        return moved.new
    target = resolved(moved.new, moved.path)
    path = posixpath.relpath(target, posixpath.dirname(at) or ".")
    if "/" in moved.new:
        return path if path.startswith(".") else f"./{path}"
    num_up = path.count("../")
    return "." * (num_up + 1) + path[3 * num_up :].replace("/", ".")


def _with_module(document: EditDocument, it: ModuleImport, new: str) -> LineEdit:
    row, start, end = it.module.start_point.row, it.module.start_point.column, it.module.end_point.column
    old, first = document.lines[row], text_of(it.module)[:1]
    quote = first if first in ("'", '"') else ""
    return LineEdit(
        document.document, row, (old,), (with_spans(old, [(start, end, f"{quote}{new}{quote}")]),)
    )


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
