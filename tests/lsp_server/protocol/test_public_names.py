"""The server uses public names of its libraries only: a new version of one may change all others."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pygls.lsp.server
import pygls.protocol
import pytest

import lsp_server

FILES = sorted(Path(lsp_server.__file__).parent.rglob("*.py"))
BASES = (pygls.protocol.LanguageServerProtocol, pygls.lsp.server.LanguageServer)


def names_in(source: str) -> set[str]:
    """Attributes that a module reads or sets, and methods that it defines."""
    found = list(ast.walk(ast.parse(source)))
    defined = {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return {node.attr for node in found if isinstance(node, ast.Attribute)} | defined


def private_names() -> set[str]:
    """Private names in pygls' classes and their instances."""
    modules = {inspect.getmodule(kind) for base in BASES for kind in base.__mro__[:-1]}
    names = set().union(*(names_in(inspect.getsource(module)) for module in modules if module))
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def test_the_private_names_are_found() -> None:
    assert {"_request_futures", "_shutdown", "_send_data", "_result_types"} <= private_names()


@pytest.mark.parametrize("name", ["adapter.py", "server.py"])
def test_a_class_that_extends_pygls_uses_none_of_its_private_names(name: str) -> None:
    source = (Path(lsp_server.__file__).parent / "protocol" / name).read_text("utf-8")
    assert not names_in(source) & private_names()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_private_name_of_another_package_is_imported(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] != "lsp_server":
            assert not [alias.name for alias in node.names if alias.name.startswith("_")]
