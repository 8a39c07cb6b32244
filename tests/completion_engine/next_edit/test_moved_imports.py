"""Imports that follow one whose module changed: the same names from the same module."""

from __future__ import annotations

import pytest

from completion_engine.next_edit.edits import EditDocument, Hunk
from completion_engine.next_edit.import_edits import moved_import_edits, moved_names
from completion_engine.next_edit.parsing import DocumentParser


def followed(language: str, path: str, old: str, new: str, other_path: str, other: str) -> list[str]:
    """The edited lines of another file, as they read then, once `old` became `new` in a first file."""
    parser = DocumentParser()
    lines, old_lines = (tuple(text.split("\n")) for text in (new, old))
    first = EditDocument("a", path, language, lines)
    second = EditDocument("b", other_path, language, tuple(other.split("\n")))
    parsed = parser.parsed(first)
    assert parsed is not None
    moved = list(moved_names(first, parsed, [Hunk("a", 0, old_lines, lines)]))
    parsed = parser.parsed(second)
    assert parsed is not None
    return [edit.edit.new[0] for edit in moved_import_edits(second, parsed, moved)]


USER, MOVED = "from app.models import User", "from app.schema import User"


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param("from app.models import User", ["from app.schema import User"], id="alike"),
        pytest.param(
            "from app.models import User as U", ["from app.schema import User as U"], id="with an alias"
        ),
        pytest.param("def f():\n    from app.models import User", ["    " + MOVED], id="within a function"),
        pytest.param(
            "from app.models import (\n    User,\n)", ["from app.schema import ("], id="of some lines"
        ),
        pytest.param("from app.models import Order", [], id="another name"),
        pytest.param("from app.models import User, Order", [], id="another name beside it"),
        pytest.param("from other.models import User", [], id="another module"),
        pytest.param("import app.models", [], id="the module as a whole"),
        pytest.param("# from app.models import User", [], id="a comment"),
    ],
)
def test_the_same_names_from_the_same_module_follow(other: str, expected: list[str]) -> None:
    assert followed("python", "app/a.py", USER, MOVED, "app/b.py", other) == expected


def test_each_name_goes_where_the_changed_import_has_it() -> None:
    old = "from app.models import User, Order"
    new = "from app.models import Order\nfrom app.schema import User"
    other = "from app.models import User\nfrom app.models import Order"
    assert followed("python", "a.py", old, new, "b.py", other) == [MOVED]


def test_another_name_from_another_module_moves_nothing() -> None:
    assert followed("python", "a.py", USER, "from app.schema import Person", "b.py", USER) == []


@pytest.mark.parametrize(
    ("language", "old", "new", "other", "expected"),
    [
        (
            "typescript",
            "import { A, B } from './net';",
            "import { A, B } from './http';",
            "import { A } from '../net';",
            ["import { A } from '../http';"],
        ),
        ("typescript", "import A from './net';", "import A from './x/http';", "import A from './net';", []),
        (
            "rust",
            "use crate::net::Fetch;",
            "use crate::http::Fetch;",
            "use crate::net::Fetch;\nuse crate::net::{Fetch, Other};",
            ["use crate::http::Fetch;"],
        ),
        (
            "java",
            "import a.net.Fetch;",
            "import a.http.Fetch;",
            "import a.net.Fetch;",
            ["import a.http.Fetch;"],
        ),
        (
            "python",
            "from .net import A",
            "from .http import A",
            "from ..net import A",
            ["from ..http import A"],
        ),
        ("python", "from .net import A", "from .http import A", "from .net import A", []),
        (
            "python",
            "from .net import A",
            "from app.net import A",
            "from ..net import A",
            ["from app.net import A"],
        ),
    ],
)
def test_a_relative_path_is_read_and_written_from_its_file(
    language: str, old: str, new: str, other: str, expected: list[str]
) -> None:
    assert followed(language, "app/a", old, new, "app/sub/b", other) == expected
