"""The state of a name that an edit replaces: bound, dangling after its definition was renamed, or unknown."""

from __future__ import annotations

import pytest

from completion_engine.next_edit import parsing as parsing_module
from completion_engine.next_edit.edits import EditDocument, Hunk, LineEdit
from completion_engine.next_edit.occurrences import OldName, state_of_old_name
from completion_engine.next_edit.parsing import DocumentParser


def state(language: str, renamed: str, use: str) -> OldName:
    """The state of `fetch`, which the first line of a document bound before it was renamed to `load`."""
    lines = (renamed, use)
    hunk = Hunk("a", 0, (renamed.replace("load", "fetch"),), (renamed,))
    edit = LineEdit("a", 1, (use,), (use.replace("fetch", "load"),))
    parsed = DocumentParser().parsed(EditDocument("a", "a", language, lines))
    return state_of_old_name(parsed, edit, hunk)


BINDINGS = [
    ("python", "def load(a): pass", "x = fetch(1)"),
    ("python", "class load: pass", "x = fetch(1)"),
    ("python", "from m import load", "x = fetch(1)"),
    ("python", "load = 3", "x = fetch + 1"),
    ("python", "for load in y: pass", "x = fetch + 1"),
    ("python", "f = lambda load: 3", "x = fetch + 1"),
    ("python", "def f(load, b): pass", "x = fetch + 1"),
    ("python", "def f(load: int = 3): pass", "x = fetch + 1"),
    ("python", "self.load = 3", "x = self.fetch + 1"),
    ("javascript", "function load(a) {}", "x = fetch(1);"),
    ("javascript", "const load = 3;", "x = fetch + 1;"),
    ("javascript", "import { load } from 'm';", "x = fetch + 1;"),
    ("typescript", "function f(load: number) {}", "x = fetch + 1;"),
    ("typescript", "interface A { load: number }", "x = a.fetch + 1;"),
    ("rust", "fn load(a: i32) {}", "fn f() { fetch(1); }"),
    ("rust", "use m::load;", "fn f() { fetch(1); }"),
    ("rust", "struct A { load: i32 }", "fn f() { a.fetch + 1; }"),
    ("rust", "fn f(load: i32) {}", "fn g() { fetch + 1; }"),
    ("go", "func load(a int) {}", "func f() { fetch(1) }"),
    ("go", "type load struct {}", "var x fetch"),
    ("go", "func f(load int) {}", "func g() { fetch(1) }"),
    ("java", "class A { void load(int a) {} }", "class B { void f() { fetch(1); } }"),
    ("python", "with x as load: pass", "x = fetch + 1"),
    ("python", "f((load := 3))", "x = fetch + 1"),
    ("python", "import m as load", "x = fetch + 1"),
    ("typescript", "const {a: load} = b;", "x = fetch + 1;"),
    ("typescript", "try {} catch (load) {}", "x = fetch + 1;"),
    ("typescript", "const f = load => 3;", "x = fetch + 1;"),
    ("rust", "fn f(a: A) { match a { B(load) => 1, _ => 2 }; }", "fn g() { fetch + 1; }"),
    ("rust", "fn f(a: A) { match a { B { c: load } => 1, _ => 2 }; }", "fn g() { fetch + 1; }"),
    ("rust", "use m::a as load;", "fn f() { fetch(1); }"),
    ("go", "func f() { switch load := x.(type) {} }", "func g() { h(fetch) }"),
    ("java", "class A { void f() { if (a instanceof B load) {} } }", "class B { int f() { return fetch; } }"),
    ("lua", "local load = 3", "x = fetch + 1"),
    ("c", "#define load 3", "int f(void) { return fetch; }"),
    ("c", "int load(int a) { return a; }", "int f(void) { return fetch(1); }"),
]


@pytest.mark.parametrize(("language", "renamed", "use"), BINDINGS)
def test_a_use_dangles_after_its_binding_was_renamed(language: str, renamed: str, use: str) -> None:
    assert state(language, renamed, use) is OldName.DANGLING


@pytest.mark.parametrize(("language", "renamed", "use"), BINDINGS)
def test_a_name_that_is_still_bound_is_seen(language: str, renamed: str, use: str) -> None:
    both = f"{renamed.replace('load', 'fetch')}\n{use}"
    edit = LineEdit("a", 1, (use,), (use.replace("fetch", "load"),))
    document = EditDocument("a", "a", language, tuple(both.split("\n")))
    parsed = DocumentParser().parsed(document)
    assert state_of_old_name(parsed, edit, Hunk("b", 0, (), ())) is OldName.BOUND


@pytest.mark.parametrize(
    ("language", "renamed", "use"),
    [
        pytest.param("python", "x = load(1)", "x = fetch(2)", id="a use was renamed"),
        pytest.param("python", "a.load(1)", "a.fetch(2)", id="a method was"),
        pytest.param("python", "x = f(load=1)", "x = f(fetch=2)", id="a keyword was"),
        pytest.param("python", "load += 1", "fetch += 1", id="a changed value was"),
        pytest.param("python", "def f(x: Set[load]): pass", "y: fetch", id="a type was"),
        pytest.param(
            "python", "from a import load as b", "x = fetch(1)", id="an imported name with another one was"
        ),
        pytest.param("python", "from load.a import b", "x = fetch(1)", id="a path was"),
        pytest.param("rust", "use load::a;", "fn f() { fetch(1); }", id="a path in Rust was"),
        pytest.param("typescript", "import {load as b} from 'm';", "fetch(1);", id="an import was"),
        pytest.param("typescript", "const {load: b} = a;", "fetch(1);", id="a property was"),
        pytest.param("plaintext", "def load(a): pass", "x = fetch(1)", id="no grammar"),
    ],
)
def test_nothing_is_known_where_no_binding_changed(language: str, renamed: str, use: str) -> None:
    assert state(language, renamed, use) is OldName.UNKNOWN


def test_nothing_is_known_of_an_edit_that_changes_more_than_one_name() -> None:
    edit = LineEdit("a", 1, ("fetch(job)",), ("load(task)",))
    document = EditDocument("a", "a", "python", ("def load(a): pass", "fetch(job)"))
    hunk = Hunk("a", 0, ("def fetch(a): pass",), ("def load(a): pass",))
    assert state_of_old_name(DocumentParser().parsed(document), edit, hunk) is OldName.UNKNOWN


def test_a_document_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing_module, "_MAX_CHARS", 20)
    assert state("python", "def load(a): pass", "x = fetch(1)") is OldName.UNKNOWN


def test_a_document_is_read_anew_once_it_changed() -> None:
    parser = DocumentParser()
    use = LineEdit("a", 1, ("fetch(1)",), ("load(1)",))
    hunk = Hunk("a", 0, ("def fetch(a): pass",), ("def load(a): pass",))
    before = EditDocument("a", "a", "python", ("def fetch(a): pass", "fetch(1)"))
    after = EditDocument("a", "a", "python", ("def load(a): pass", "fetch(1)"))
    found = [state_of_old_name(parser.parsed(document), use, hunk) for document in (before, after)]
    assert found == [OldName.BOUND, OldName.DANGLING]
