"""Import statements that follow an import whose module a hunk changed: the same names, from the same module.

A name that its old module still binds may be meant where it stands, so its other imports stay. Both
statements must import from the module by the same path, or by paths that lead to the same file. Bounded as
`linked_names`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from tree_sitter import Node

from completion_engine.next_edit.edits import EditDocument, Hunk, LineEdit
from completion_engine.next_edit.linked_imports import FILES_OF_FOLDERS
from completion_engine.next_edit.linked_names import LinkedEdit, import_around
from completion_engine.next_edit.occurrences import definitions_of
from completion_engine.next_edit.parsing import DocumentParser, ParsedText, text_of, with_spans

_MAX_IMPORTS = 64  # statements of one document
_MAX_NAMES = 64  # names that one statement imports
_SEPARATOR = re.compile(r"[./:]+")
_IMPORT = re.compile(rb"\b(?:import|from|use)\b")


@dataclass(frozen=True, slots=True)
class ModuleImport:
    """A statement that imports `names` from the module that the text of the node `module` names."""

    module: Node
    names: frozenset[str]

    @property
    def path(self) -> str:
        """The path of the module as it is written, without quotes."""
        return text_of(self.module).strip("\"'")


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
        return _SEPARATOR.split(self.old)[-1]


def moved_names(document: EditDocument, parsed: ParsedText, hunks: Sequence[Hunk]) -> Iterator[MovedName]:
    """Yield the names whose module hunks of a document changed, the latest hunk first."""
    imports = list(imports_of(parsed))
    for hunk in reversed(hunks):
        text = "\n".join(hunk.old).encode("utf-8", "replace")
        if hunk.document != document.document or not _IMPORT.search(text):
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
            if not leads_to(first.new, first, document.path):
                yield LinkedEdit(_with_module(document, it, new), first.hunk, 1)


def still_bound(
    document: EditDocument, parsed: ParsedText, moved: Sequence[MovedName]
) -> frozenset[MovedName]:
    """Return the moved names whose old module is a document that binds them still."""
    return frozenset(
        one for one in moved if leads_to(one.old, one, document.path) and definitions_of(parsed, one.name)
    )


def leads_to(module: str, moved: MovedName, path: str) -> bool:
    """Return whether a module, as the document of a moved name writes it, is the file at a path."""
    target = _resolved(module, moved.path) if _is_relative(module) else module
    parts = tuple(part for part in _SEPARATOR.split(target) if part not in ("", "crate"))
    *folders, file = PurePosixPath(path).parts or ("",)
    stem = file.partition(".")[0]
    place = (*folders, *(() if stem in (*FILES_OF_FOLDERS, moved.name) else (stem,)))
    return bool(parts) and place[-len(parts) :] == parts


def imports_of(parsed: ParsedText) -> Iterator[ModuleImport]:
    """Yield the statements of a text that import names from a module, at most 64 of them."""
    seen: set[int] = set()
    for match in islice(_IMPORT.finditer(parsed.text), 4 * _MAX_IMPORTS):
        node = parsed.node_at(*match.span())
        statement = import_around(node) if node is not None else None
        if statement is None or statement.id in seen:
            continue
        seen.add(statement.id)
        if (found := _module_import(statement)) is not None and len(found.names) <= _MAX_NAMES:
            yield found


def _module_import(statement: Node) -> ModuleImport | None:
    """Return the module and the names of a statement; None for another kind of import."""
    module = statement.child_by_field_name("module_name") or statement.child_by_field_name("source")
    if module is None:
        return _path_import(statement)
    rest = [node for node in statement.named_children if node != module]
    return ModuleImport(module, frozenset(text_of(leaf) for node in rest for leaf in _names(node)))


def _path_import(statement: Node) -> ModuleImport | None:
    """Return an import of one path whose last part is the name, or of a list after a path."""
    whole = statement.child_by_field_name("argument")
    if whole is None:
        whole = next((it for it in statement.named_children if it.type == "scoped_identifier"), None)
    if whole is None:
        return None
    module = whole.child_by_field_name("path") or whole.child_by_field_name("scope")
    names = whole.child_by_field_name("name") or whole.child_by_field_name("list")
    if module is None or names is None or any(it.named_child_count for it in names.named_children):
        return None
    return ModuleImport(module, frozenset(map(text_of, names.named_children or [names])))


def _names(node: Node) -> Iterator[Node]:
    """Yield the imported names below a node, without their aliases."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        name = node.child_by_field_name("name")
        if name is not None:
            waiting.append(name)
        elif node.child_count == 0 and node.type.endswith("identifier"):
            yield node
        else:
            waiting += node.named_children


def _is_relative(path: str) -> bool:
    return path.startswith((".", "super", "self"))


def _is_same(old: str, at: str, other: str, at_other: str) -> bool:
    """Return whether two paths, each written in a file, name the same module."""
    if not (_is_relative(old) and _is_relative(other)):
        return old == other
    return _resolved(old, at) == _resolved(other, at_other) != ""


def _path_from(moved: MovedName, at: str) -> str:
    """Return the new module's path as a file at `at` names it."""
    if not _is_relative(moved.new):
        return moved.new
    if posixpath.dirname(at) == posixpath.dirname(moved.path):
        return moved.new
    target = _resolved(moved.new, moved.path)
    path = posixpath.relpath(target, posixpath.dirname(at) or ".")
    if "/" in moved.new:
        return path if path.startswith(".") else f"./{path}"
    num_up = path.count("../")
    return "." * (num_up + 1) + path[3 * num_up :].replace("/", ".")


def _resolved(path: str, at: str) -> str:
    """Return the path of a module from the repository's root; empty where a path has another form."""
    folder = posixpath.dirname(at)
    if path.startswith(("./", "../")):
        return posixpath.normpath(posixpath.join(folder, path))
    if not path.startswith("."):
        return path if folder == "" else f"{folder}:{path}"
    rest = path.lstrip(".")
    for _ in range(len(path) - len(rest) - 1):
        folder = posixpath.dirname(folder)
    return posixpath.join(folder, rest.replace(".", "/"))


def _with_module(document: EditDocument, it: ModuleImport, new: str) -> LineEdit:
    row, start, end = it.module.start_point.row, it.module.start_point.column, it.module.end_point.column
    old, first = document.lines[row], text_of(it.module)[:1]
    quote = first if first in ("'", '"') else ""
    return LineEdit(
        document.document, row, (old,), (with_spans(old, [(start, end, f"{quote}{new}{quote}")]),)
    )
