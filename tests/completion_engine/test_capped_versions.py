"""A library whose private names are used is capped below the first release that they were not tried with."""

from __future__ import annotations

import ast
import importlib.metadata
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import completion_engine

PROJECT = Path(completion_engine.__file__).parents[1] / "pyproject.toml"
SOURCES = {path: path.read_text("utf-8") for path in Path(completion_engine.__file__).parent.rglob("*.py")}

# By what the code says where it uses one.
PRIVATE = {"torch": "torch.ops.mkldnn._linear_pointwise", "numba": "compiled._cache = "}


def requirement(name: str) -> Requirement:
    declared = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]
    (found,) = (one for one in map(Requirement, declared) if one.name == name)
    return found


@pytest.mark.parametrize("name", PRIVATE)
def test_it_is_capped_below_the_next_release_and_no_lower(name: str) -> None:
    installed = Version(importlib.metadata.version(name))
    specifier = requirement(name).specifier
    assert specifier.contains(Version(installed.base_version))
    assert not specifier.contains(Version(f"{installed.major}.{installed.minor + 1}"))
    assert not specifier.contains(Version(f"{installed.major + 1}.0"))


@pytest.mark.parametrize("name", PRIVATE)
def test_the_cap_goes_when_the_private_name_does(name: str) -> None:
    assert any(PRIVATE[name] in source for source in SOURCES.values())


def test_two_modules_alone_use_private_names_of_torch() -> None:
    found = set()
    for path, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch."):
                found |= {path.name for part in ast.unparse(node).split(".") if part[:1] == "_" != part[1:2]}
    assert found == {"linear.py", "transformers_decoder.py"}
