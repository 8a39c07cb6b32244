"""Edits that need no model: the nearest use in the file, then imports in other documents and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from completion_engine.next_edit import certain_edits as certain_edits_module
from completion_engine.next_edit.certain_edits import certain_edit
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk

LINES = ("def load(a):", "    return a", "", "x = fetch(1)", "", "y = fetch(2)")
DOCUMENT = EditDocument("a", "pkg/net.py", "python", LINES)
HUNK = Hunk("a", 0, ("def fetch(a):",), ("def load(a):",))
REQUEST = EditRequest([DOCUMENT], [HUNK])
DONE = replace(DOCUMENT, lines=("def load(a):", "    return a"))


def proposed(request: EditRequest, *files: EditDocument) -> tuple[str, int, str] | None:
    """The document, line and text of the edit."""
    answer = certain_edit(request, lambda _names, _modules: files)
    if answer is None or answer.proposal is None:
        return None
    edit = answer.proposal.edit
    return edit.document, edit.first_line, "\n".join(edit.new)


@pytest.mark.parametrize(("line", "found"), [(0, (3, "x = load(1)")), (5, (5, "y = load(2)"))])
def test_the_nearest_use_comes_first(line: int, found: tuple[int, str]) -> None:
    assert proposed(replace(REQUEST, line=line)) == ("a", *found)


def test_the_answer_tells_what_it_repeats_and_that_nothing_was_scored() -> None:
    answer = certain_edit(REQUEST)
    assert answer is not None and answer.proposal is not None
    assert (answer.proposal.repeats, answer.proposal.log_odds) == (HUNK, None)
    assert (answer.num_candidates, answer.num_scored) == (2, 0)


def test_a_rejected_edit_is_not_proposed_again() -> None:
    rejected = frozenset({("a", ("x = fetch(1)",), ("x = load(1)",))})
    assert proposed(replace(REQUEST, rejected=rejected)) == ("a", 5, "y = load(2)")


def test_nothing_is_certain_without_a_rename() -> None:
    assert proposed(replace(REQUEST, hunks=[])) is None
    assert proposed(replace(REQUEST, hunks=[Hunk("a", 0, ("def load(b):",), ("def load(a):",))])) is None


IMPORTS = [
    pytest.param("b.py", "python", "from pkg.net import fetch", "from pkg.net import load", id="Python"),
    pytest.param(
        "pkg/b.py", "python", "from .net import a, fetch as f", "from .net import a, load as f", id="alias"
    ),
    pytest.param(
        "b.py", "python", "import pkg.net as net\nnet.fetch()", "net.load()", id="through the module"
    ),
]


@pytest.mark.parametrize(("path", "language", "text", "found"), IMPORTS)
@pytest.mark.parametrize("is_open", [True, False])
def test_imports_of_a_renamed_definition_follow(
    path: str, language: str, text: str, found: str, is_open: bool
) -> None:
    other = EditDocument("b", path, language, tuple(text.split("\n")))
    request = replace(REQUEST, documents=[DONE, other] if is_open else [DONE])
    line = text.count("\n")
    assert proposed(request, *([] if is_open else [other])) == ("b", line, found)


@pytest.mark.parametrize(
    ("exporting", "language", "definition", "text", "found"),
    [
        ("src/net.ts", "typescript", "export function {}(a) {{}}", "import {{ {} }} from './net';", True),
        ("src/net.ts", "typescript", "export function {}(a) {{}}", "import {{ {} }} from './other';", False),
        ("src/net/index.js", "javascript", "export const {} = 1;", "import {{ a, {} }} from '../net';", True),
        ("src/net.ts", "typescript", "export function {}(a) {{}}", "import {{ {} }} from '@app/net';", True),
        ("a/net.ts", "typescript", "export function {}(a) {{}}", "import {{ {} }} from '../b/net';", False),
        ("a/net.ts", "typescript", "export function {}(a) {{}}", "import {{ {} }} from '@/b/net';", False),
        ("a/net.py", "python", "def {}(): pass", "from a.net import {}", True),
        ("a/net.py", "python", "def {}(): pass", "from .net import {}", True),
        ("a/net.py", "python", "def {}(): pass", "from b.net import {}", False),
        ("a/net.py", "python", "def {}(): pass", "from ..b.net import {}", False),
        ("a/net.py", "python", "def {}(): pass", "from b import net\nnet.{}()", False),
        ("src/b/net.rs", "rust", "pub fn {}() {{}}", "use crate::a::net::{};", False),
        ("src/net.rs", "rust", "pub fn {}() {{}}", "use shop::net::{};", True),
        ("src/net.rs", "rust", "pub fn {}() {{}}", "use crate::net::{{a, {}}};", True),
        ("src/net.rs", "rust", "pub fn {}() {{}}", "use crate::{{net::a, b::{{{}}}}};", False),
        (
            "net/a.go",
            "go",
            "package net\n\nfunc {}() {{}}",
            'package b\n\nimport "x/net"\n\nvar y = net.{}()',
            True,
        ),
    ],
)
def test_the_import_must_name_the_file(
    exporting: str, language: str, definition: str, text: str, found: bool
) -> None:
    new, old = definition.format("Load").split("\n"), definition.format("Fetch").split("\n")
    hunk = Hunk("a", len(new) - 1, tuple(old[-1:]), tuple(new[-1:]))
    first = EditDocument("a", exporting, language, tuple(new))
    beside = str(PurePosixPath(exporting).with_name("b"))
    other = EditDocument("b", beside, language, tuple(text.format("Fetch").split("\n")))
    expected = ("b", len(other.lines) - 1, text.format("Load").split("\n")[-1])
    assert proposed(EditRequest([first], [hunk]), other) == (expected if found else None)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("from pkg.other import fetch", id="of another file"),
        pytest.param("fetch = 1", id="no import"),
        pytest.param("import other\nother.fetch()", id="through another module"),
    ],
)
def test_another_thing_of_the_same_name_stays(text: str) -> None:
    other = EditDocument("b", "b.py", "python", tuple(text.split("\n")))
    assert proposed(replace(REQUEST, documents=[DONE]), other) is None


@pytest.mark.parametrize(
    "definition",
    ["def f(load): pass", "class A:\n    def load(self): pass", "from other import load"],
)
def test_what_other_files_cannot_import_does_not_concern_them(definition: str) -> None:
    new = definition.split("\n")
    old = definition.replace("load", "fetch").split("\n")
    document = replace(DOCUMENT, lines=tuple(new))
    hunk = Hunk("a", len(new) - 1, tuple(old[-1:]), tuple(new[-1:]))
    other = EditDocument("b", "b.py", "python", ("from pkg.net import fetch",))
    assert proposed(EditRequest([document], [hunk]), other) is None


def test_files_are_read_one_by_one_and_only_where_a_definition_was_renamed() -> None:
    asked: list[Sequence[str]] = []
    read: list[str] = []

    def files(names: Sequence[str], _modules: Sequence[str]) -> Iterator[EditDocument]:
        asked.append(names)
        for name in "bcd":
            read.append(name)
            yield EditDocument(name, f"{name}.py", "python", ("from pkg.net import fetch",))

    use = Hunk("a", 3, ("x = fetch(1)",), ("x = load(1)",))
    assert certain_edit(replace(REQUEST, hunks=[use]), files) is None
    assert certain_edit(replace(REQUEST, documents=[DONE]), files) is not None
    assert (asked, read) == ([["fetch"]], ["b"])


def test_no_document_is_parsed_once_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certain_edits_module, "MAX_S", -1.0)
    assert proposed(REQUEST) is None


MODELS = EditDocument("m", "app/models.py", "python", ("class Order:", "    pass"))
IMPORTING = EditDocument("b", "app/b.py", "python", ("from app.models import User",))
MOVED = EditRequest(
    [EditDocument("a", "app/a.py", "python", ("from app.schema import User",))],
    [Hunk("a", 0, ("from app.models import User",), ("from app.schema import User",))],
)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("is_bound", [True, False])
def test_imports_follow_unless_the_old_module_still_has_the_name(is_open: bool, is_bound: bool) -> None:
    old = replace(MODELS, lines=("class User:", *MODELS.lines)) if is_bound else MODELS
    request = replace(MOVED, documents=[*MOVED.documents, IMPORTING, old]) if is_open else MOVED
    found = proposed(request, *([] if is_open else [old, IMPORTING]))
    assert found == (None if is_bound else ("b", 0, "from app.schema import User"))


def test_a_file_that_may_not_be_changed_is_evidence_alone() -> None:
    old = replace(MODELS, lines=("class User: pass",))
    request = replace(MOVED, documents=[*MOVED.documents, IMPORTING])
    for files, is_proposed in (([old], False), ([MODELS], True), ([IMPORTING], True)):
        answer = certain_edit(request, lambda _names, _modules, it=files: it, changes_files=False)
        assert (answer is not None) is is_proposed
    assert certain_edit(MOVED, lambda _names, _modules: [IMPORTING], changes_files=False) is None


def test_the_module_that_a_name_moves_into_does_not_import_it() -> None:
    schema = replace(IMPORTING, path="app/schema.py")
    assert proposed(MOVED, schema) is None


def test_a_document_without_a_path_has_no_module() -> None:
    unnamed = replace(MOVED.documents[0], path="", lines=(*MOVED.documents[0].lines, *IMPORTING.lines))
    assert proposed(replace(MOVED, documents=[unnamed])) == ("a", 1, "from app.schema import User")
