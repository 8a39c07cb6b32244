"""Names in backquotes in docstrings and comments exist: files, modules, and their members."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("completion_engine", "lsp_server", "ngram_cache")
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
QUOTED = re.compile(r"`([\w./-]+)(?:\(\))?`")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
SOURCE = re.compile(r"[\w-]+(?:/[\w-]+)*\.(?:py|md|toml)")


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def texts(file: Path) -> Iterator[str]:
    """Docstrings and comments of a file."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@cache
def names_in(tree: ast.AST) -> set[str]:
    """All that is named anywhere in some code: variables, arguments, attributes, functions, classes."""
    found: set[str] = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                found.add(name.partition(".")[0])
    return found


@cache
def strings() -> frozenset[str]:
    """All strings of the code: names of commands and of data files are among them."""
    nodes = (node for file in FILES for node in ast.walk(tree_of(file)))
    return frozenset(
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@cache
def members() -> dict[str, set[str]]:
    """The members of each module, package and class of the tree, by its bare name."""
    found: dict[str, set[str]] = {}
    for file in FILES:
        place = file.parent if file.stem == "__init__" else file
        found.setdefault(place.stem, set()).update(names_in(tree_of(file)))
        found.setdefault(place.parent.name, set()).add(place.stem)
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(names_in(node))
    return found


@cache
def sources() -> tuple[str, ...]:
    places = (*PACKAGES, "docs", "editors")
    below = (path for place in places for path in (ROOT / place).rglob("*") if SOURCE.fullmatch(path.name))
    return tuple(f"/{path.relative_to(ROOT).as_posix()}" for path in (*below, *ROOT.glob("*.*")))


def leads_somewhere(name: str, file: Path) -> bool:
    """Whether a name that `file` has in backquotes exists; names that are not files or dotted always do."""
    known = members()
    if SOURCE.fullmatch(name):
        return any(path.endswith(f"/{name}") for path in sources())
    if not DOTTED.fullmatch(name) or name in strings():
        return True
    parts = name.split(".")
    if parts[0] in known:
        return all(part in known[above] for above, part in pairwise(parts) if above in known)
    return parts[0] in names_in(tree_of(file)) or find_spec(parts[0]) is not None


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_what_docstrings_and_comments_refer_to_is_there(file: Path) -> None:
    named = {name for text in texts(file) for name in QUOTED.findall(text)}
    assert {name for name in named if not leads_somewhere(name, file)} == set()


@pytest.mark.parametrize(
    ("name", "is_there"),
    [
        ("kv_cache.KVCache", True),
        ("KVCache.rewind", True),
        ("completion_engine.drafting.tree", True),
        ("target_model/kv_cache.py", True),
        ("os.environ", True),
        ("any_word", True),
        ("kv_cache.Lane", False),
        ("KVCache.no_such_method", False),
        ("completion_engine.lanes", False),
        ("no_such_module.KVCache", False),
        ("target_model/lanes.py", False),
    ],
)
def test_a_name_is_looked_for_in_the_tree(name: str, is_there: bool) -> None:
    assert leads_somewhere(name, FILES[0]) == is_there
