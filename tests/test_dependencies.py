"""Every library that is imported is declared, and by the part that imports it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
OWN = {"completion_engine", "lsp_server", "ngram_cache", "scripts", "tests"}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
BY_HAND = ["atheris"]  # for guided fuzzing alone: it has wheels for few platforms, so no lock can hold it
IF_INSTALLED = ["llama-cpp-python", "llama_cpp"]  # `tests.benchmarks.peers` times it where it is there
OPTIONAL = [requirement for extra in ("bench", "kernels") for requirement in EXTRAS[extra]]


def names(requirements: list[str]) -> set[str]:
    """Distributions as the index spells them, without versions."""
    found = (re.match(r"[\w.-]+", requirement) for requirement in requirements)
    return {re.sub(r"[-_.]+", "-", match.group()).lower() for match in found if match}


def imported(file: Path) -> Iterator[str]:
    """The modules, without what is below them, that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize(
    ("folder", "declared"),
    [
        ("completion_engine", PROJECT["dependencies"] + OPTIONAL),
        ("lsp_server", PROJECT["dependencies"] + OPTIONAL + IF_INSTALLED),
        ("ngram_cache", PROJECT["dependencies"]),
        ("scripts", PROJECT["dependencies"] + OPTIONAL + EXTRAS["test"]),
        ("tests", PROJECT["dependencies"] + OPTIONAL + EXTRAS["test"] + BY_HAND),
    ],
)
def test_what_is_imported_is_declared(folder: str, declared: list[str]) -> None:
    distributions, allowed = packages_distributions(), names(declared)
    undeclared = {
        f"{file.relative_to(ROOT)}: {module}"
        for file in (ROOT / folder).rglob("*.py")
        for module in imported(file)
        if module not in sys.stdlib_module_names and module not in OWN
        if not names(distributions.get(module, [module])) & allowed
    }
    assert undeclared == set()
