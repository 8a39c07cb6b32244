"""The texts for people in the product's Python code, read from its syntax trees.

A text is a string of at least two words. Docstrings, log messages, thread names, values of a Literal and
errors that no person sees are left out, and so are modules whose strings are data.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("lsp_server", "completion_engine", "ngram_cache")
# Their strings are patterns, machine code, prompts, tables, or listed in a section of their own.
DATA = (
    "lsp_server/workspace/settings",
    "lsp_server/protocol/",
    "lsp_server/sharing/watchdog.py",
    "completion_engine/suggestions/",
    "completion_engine/languages/",
    "completion_engine/context/",
    "completion_engine/cpu/kernels/",
    "completion_engine/gpu/kernels/",
    "ngram_cache/redaction/",
    "ngram_cache/file_names.py",
)
NEVERTHELESS = (
    "lsp_server/workspace/settings_",
    "lsp_server/protocol/server.py",
    "completion_engine/cpu/kernels/kernel_cache.py",
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_CODE = re.compile(r"^(?:def|import|from|class|CREATE|DELETE|INSERT|PRAGMA|SELECT) |\n|\$\d|%\(|^\w+ \| \w+$")
_SILENT_OWNERS = {"logger", "logging", "re", "warnings"}
_SILENT_KEYWORDS = {"name", "metavar", "rich_help_panel"}


def text_of(node: ast.AST) -> str:
    """A string as people read it, with an ellipsis in place of each value; empty for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


def is_text(text: str) -> bool:
    """Whether a string has at least two words beside its values."""
    return " " in text and len(_WORD.findall(text)) > 1


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module of the product, by its path from the root."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def own_errors() -> frozenset[str]:
    """The names of the errors with a message and advice for people."""
    known = {"SlipstreamError"}
    classes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(3):
        known |= {each.name for each in classes if any(_name(base) in known for base in each.bases)}
    return frozenset(known)


def errors() -> list[str]:
    """Each message of an error with its advice, where both are written out."""
    found = []
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in own_errors():
                advice = [text_of(each.value) for each in node.keywords if each.arg == "advice"]
                message = [text for each in node.args if " " in (text := text_of(each))]
                text = " ".join(part for part in (*message, *advice) if part)
                if is_text(text):
                    found.append(text)
    return found


def others(prefixes: Sequence[str]) -> list[str]:
    """All further texts of the modules whose paths begin with one of `prefixes`."""
    found = []
    for path, tree in trees().items():
        is_data = path.startswith(DATA) and not path.startswith(NEVERTHELESS)
        if path.startswith(tuple(prefixes)) and not is_data:
            silent = _silent(tree)
            texts = (text_of(node).strip() for node in ast.walk(tree) if id(node) not in silent)
            found += [text for text in texts if is_text(text) and not _CODE.search(text)]
    return found


@cache
def _literals() -> frozenset[str]:
    """The values of every Literal type."""
    nodes = (node for tree in trees().values() for node in ast.walk(tree))
    return frozenset(text_of(each) for node in nodes for each in _literal_values(node))


def _silent(tree: ast.Module) -> set[int]:
    """The nodes whose texts no person reads, or that are read as a part of another one."""
    silent = {id(node) for node in ast.walk(tree) if text_of(node) in _literals() | {""}}
    for node in ast.walk(tree):
        for dropped in _dropped(node):
            silent |= {id(each) for each in ast.walk(dropped)}
    return silent


def _literal_values(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Subscript) and _name(node.value) == "Literal":
        yield from ast.walk(node.slice)


def _dropped(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from node.values
    elif isinstance(node, ast.Assert) and node.msg is not None:
        yield node.msg
    elif isinstance(node, ast.keyword) and node.arg in _SILENT_KEYWORDS:
        yield node.value
    elif isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_silent = _name(node.func).endswith(("Error", "Exception"))
        if is_silent or (isinstance(owner, ast.Name) and owner.id in _SILENT_OWNERS):
            yield from [*node.args, *node.keywords]


def _name(node: ast.AST) -> str:
    """The last part of a dotted name."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
