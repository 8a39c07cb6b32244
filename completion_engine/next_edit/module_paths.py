"""The modules that import statements name, and the files that they may be. Bounded as `linked_names`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from tree_sitter import Node

from completion_engine.next_edit.edits import EditDocument
from completion_engine.next_edit.linked_names import import_around
from completion_engine.next_edit.parsing import ParsedText, text_of

_FILES_OF_FOLDERS = ("__init__", "index", "mod", "lib")  # they are imported by their folder's name
_ROOTS = ("src", "lib")  # folders whose names stand in no import
_MAX_IMPORTS = 64  # statements of one document
_MAX_NAMES = 64  # names that one statement imports
_MAX_IMPORT_CHARS = 4_000
SEPARATOR = re.compile(r"[./:]+")
IMPORT = re.compile(rb"\b(?:import|from|use)\b")


@dataclass(frozen=True, slots=True)
class Module:
    """The file at `path`, which other files import by `name`."""

    name: str
    path: str

    @classmethod
    def of(cls, document: EditDocument) -> Module | None:
        """Return what other files import a document as; None if they cannot."""
        file = PurePosixPath(document.path)
        stem = file.name.partition(".")[0]
        is_folder = document.language == "go" or stem in _FILES_OF_FOLDERS
        name = file.parent.name if is_folder else stem
        return cls(name, document.path) if name else None


@dataclass(frozen=True, slots=True)
class ModuleImport:
    """A statement that imports `names` from the module that the text of the node `module` names."""

    module: Node
    names: frozenset[str]

    @property
    def path(self) -> str:
        """The path of the module as it is written, without quotes."""
        return text_of(self.module).strip("\"'")


def imports_of(parsed: ParsedText) -> Iterator[ModuleImport]:
    """Yield the statements of a text that import names from a module, at most 64 of them."""
    seen: set[int] = set()
    for match in islice(IMPORT.finditer(parsed.text), 4 * _MAX_IMPORTS):
        node = parsed.node_at(*match.span())
        statement = import_around(node) if node is not None else None
        if statement is None or statement.id in seen:
            continue
        seen.add(statement.id)
        if (found := module_import(statement)) is not None and len(found.names) <= _MAX_NAMES:
            yield found


def module_import(statement: Node) -> ModuleImport | None:
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


def imports_name(statement: Node | None, at: str, module: Module, name: str) -> bool:
    """Return whether a statement in the file `at` imports a name from a module, and not from several."""
    text = statement.text if statement is not None else None
    if statement is None or text is None or len(text) > _MAX_IMPORT_CHARS:
        return False
    words = re.findall(r"\w+", text.decode("utf-8", "replace"))
    if module.name not in words or words.count(name) != 1 or text.count(b"{") > 1:
        return False
    found = module_import(statement)
    return found is None or may_be(found.path, at, module.path, name)


def is_imported(parsed: ParsedText, at: str, module: Module) -> bool:
    """Return whether a statement of the file `at` imports a module, which may be in a path in quotes."""
    matches = re.finditer(rf"\b{re.escape(module.name)}\b".encode(), parsed.text)
    nodes = (parsed.node_at(*match.span()) for match in islice(matches, _MAX_IMPORTS))
    statements = (import_around(node) for node in nodes if node is not None)
    each_once = {one.id: one for one in statements if one is not None}
    return any(_imports_whole(one, at, module) for one in each_once.values())


def _imports_whole(statement: Node, at: str, module: Module) -> bool:
    if statement.end_byte - statement.start_byte > _MAX_IMPORT_CHARS:
        return False
    found = module_import(statement)
    if found is None:
        return True
    path = f"{found.path}.{module.name}" if module.name in found.names else found.path
    return may_be(path, at, module.path, "")


def may_be(module: str, at: str, path: str, name: str) -> bool:
    """Return whether a module, as the file `at` writes it, may be the file at a path, for an imported name.

    A path from the root may begin with the name of a package or with an alias.
    """
    place = _place(path, name)
    if module.startswith("."):
        return place == _parts(resolved(module, at))
    parts = _parts(re.sub(r"^(?:super|self)\b", "", module))
    for root in _ROOTS:
        place = place[place.index(root) + 1 :] if root in place else place
    alike = list(zip(reversed(parts), reversed(place), strict=False))
    is_from_root = module.startswith(("crate", "super", "self"))
    is_alias = not is_from_root and "." not in module and len(alike) == len(parts)
    return all(one == other for one, other in (alike[:-1] if is_alias else alike))


def leads_to(module: str, at: str, path: str, name: str) -> bool:
    """Return whether a module, as the file `at` writes it, is the file at a path, for an imported name."""
    parts = _parts(resolved(module, at) if is_relative(module) else module)
    return bool(parts) and _place(path, name)[-len(parts) :] == parts


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in SEPARATOR.split(path) if part not in ("", "crate"))


def _place(path: str, name: str) -> tuple[str, ...]:
    *folders, file = PurePosixPath(path).parts or ("",)
    stem = file.partition(".")[0]
    return (*folders, *(() if stem in (*_FILES_OF_FOLDERS, name) else (stem,)))


def is_relative(path: str) -> bool:
    """Return whether an import names its module from its own file."""
    return path.startswith((".", "super", "self"))


def resolved(path: str, at: str) -> str:
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
