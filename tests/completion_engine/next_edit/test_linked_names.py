"""The remaining uses of a renamed definition are linked where the syntax tree is certain, not elsewhere."""

from __future__ import annotations

import pytest

from completion_engine.next_edit.edits import EditDocument, Hunk
from completion_engine.next_edit.linked_names import linked_edits
from completion_engine.next_edit.parsing import DocumentParser

PYTHON_FUNCTION = "def load(a):\n    return a\n\n\nx = fetch(1)\ny = a.fetch(2)\nz = f(fetch=3)  # fetch\n"
PYTHON_LOCAL = """def f(load):
    self.fetch = fetch
    return [fetch(q, fetch=fetch) for q in fetch]


def g():
    return fetch
"""
PYTHON_METHOD = """class A:
    def load(self):
        return fetch()

    def other(self, b):
        return self.fetch() + b.fetch()
"""
PYTHON_COMPREHENSION = "a = [fetch(1) for load in fetch]\nb = fetch\n"
PYTHON_ATTRIBUTE = """class A:
    def __init__(self, fetch):
        self.load = fetch

    def other(self):
        self.fetch += 1
        return self.fetch
"""
TYPESCRIPT_METHOD = """class A {
  load(a: number) { return this.fetch(fetch); }
  other() { return this.fetch(1); }
}
const b = a.fetch(2);
"""
JAVASCRIPT_LOCAL = """function f(load) {
  const a = { fetch };
  const b = { fetch: fetch };
  return fetch.fetch;
}
const c = fetch;
"""
RUST_LOCAL = (
    'fn f(load: u8) -> u8 {\n    println!("{}", fetch);\n    a.fetch + fetch\n}\nfn g() { fetch(); }\n'
)
GO_TYPE = "package p\n\ntype load struct{}\n\nfunc f(a fetch) *fetch {\n\treturn a.fetch\n}\n"
JAVA_METHOD = "class A {\n  void load() { }\n  void g() { fetch(); this.fetch(); b.fetch(); }\n}\n"

LINKED = [
    pytest.param("python", PYTHON_FUNCTION, {4: "x = load(1)"}, id="a function and its call"),
    pytest.param(
        "python",
        PYTHON_LOCAL,
        {1: "    self.fetch = load", 2: "    return [load(q, fetch=load) for q in load]"},
        id="a parameter, in its function alone",
    ),
    pytest.param(
        "python",
        PYTHON_METHOD,
        {5: "        return self.load() + b.fetch()"},
        id="a method, where the receiver is its own",
    ),
    pytest.param(
        "python",
        PYTHON_ATTRIBUTE,
        {5: "        self.load += 1", 6: "        return self.load"},
        id="an attribute",
    ),
    pytest.param(
        "python",
        PYTHON_COMPREHENSION,
        {0: "a = [load(1) for load in fetch]"},
        id="a comprehension's own name",
    ),
    pytest.param("python", "for load in y:\n    fetch()\n", {1: "    load()"}, id="a loop"),
    pytest.param(
        "typescript",
        TYPESCRIPT_METHOD,
        {1: "  load(a: number) { return this.load(fetch); }", 2: "  other() { return this.load(1); }"},
        id="a method in TypeScript",
    ),
    pytest.param(
        "javascript",
        JAVASCRIPT_LOCAL,
        {1: "  const a = { fetch: load };", 2: "  const b = { fetch: load };", 3: "  return load.fetch;"},
        id="a parameter in JavaScript",
    ),
    pytest.param(
        "rust",
        RUST_LOCAL,
        {1: '    println!("{}", load);', 2: "    a.fetch + load"},
        id="a parameter in Rust, in a macro too",
    ),
    pytest.param("go", GO_TYPE, {4: "func f(a load) *load {"}, id="a type in Go"),
    pytest.param(
        "java",
        JAVA_METHOD,
        {2: "  void g() { load(); this.load(); b.fetch(); }"},
        id="a method in Java, without a receiver too",
    ),
    pytest.param("python", "löad = 1\nü = 'ö', fetch\n", {1: "ü = 'ö', löad"}, id="letters of two bytes"),
]


def edits(language: str, text: str, old: str, new: str, line: int = 0) -> dict[int, str]:
    """The lines that become others once the name in a line was replaced."""
    lines = tuple(text.split("\n"))
    renamed = lines[line]
    at = renamed.index(new)
    before = f"{renamed[:at]}{old}{renamed[at + len(new) :]}"
    document = EditDocument("a", "a", language, lines)
    parsed = DocumentParser().parsed(document)
    if parsed is None:
        return {}
    hunk = Hunk("a", line, (before,), (renamed,))
    found = list(linked_edits(document, parsed, [hunk]))
    assert all(one.repeats is hunk and one.num_examples == 1 for one in found)
    assert all(one.edit.old == (lines[one.edit.first_line],) for one in found)
    return {one.edit.first_line: one.edit.new[0] for one in found}


@pytest.mark.parametrize(("language", "text", "expected"), LINKED)
def test_uses_in_the_scope_of_a_renamed_definition_are_linked(
    language: str, text: str, expected: dict[int, str]
) -> None:
    lines = text.split("\n")
    new = "löad" if "löad" in text else "load"
    line = next(at for at, content in enumerate(lines) if new in content)
    assert edits(language, text, "fetch", new, line) == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        pytest.param("python", "load(1)\nfetch(2)\n", id="a use was renamed"),
        pytest.param("python", "import load\nfetch.x()\n", id="another module is imported"),
        pytest.param("python", "load = 1\nfetch = 2\nx = fetch\n", id="the old name is bound again"),
        pytest.param("python", "load = 1\nload = 2\nx = fetch\n", id="the new name had a meaning"),
        pytest.param("python", "def f(load):\n    g = lambda fetch: fetch\n", id="it is bound inside"),
        pytest.param("python", "load = 1\nx = 'fetch'  # fetch\n", id="text"),
        pytest.param("python", "load = 1\nx = fetched\n", id="another word"),
        pytest.param("plaintext", "load = 1\nx = fetch\n", id="no grammar"),
        pytest.param("javascript", "const load = 1;\nconst x = { fetch: 1 };\n", id="a key with the name"),
    ],
)
def test_nothing_is_linked_without_certainty(language: str, text: str) -> None:
    assert edits(language, text, "fetch", "load") == {}


@pytest.mark.parametrize(
    ("before", "linked"),
    [
        ("def fetch(a, b):\n    pass", False),
        ("def fetch(a):\n    return 1", False),
        ("def fetch(a):\n    pass", True),
    ],
)
def test_a_definition_that_changed_otherwise_is_another_one(before: str, linked: bool) -> None:
    document = EditDocument("a", "a", "python", ("def load(a):", "    pass", "x = fetch(1)"))
    parsed = DocumentParser().parsed(document)
    assert parsed is not None
    hunk = Hunk("a", 0, tuple(before.split("\n")), ("def load(a):", "    pass"))
    assert bool(list(linked_edits(document, parsed, [hunk]))) is linked


def test_an_import_follows_a_rename_in_another_file() -> None:
    document = EditDocument("a", "a", "python", ("from net import load", "x = fetch(1)"))
    parsed = DocumentParser().parsed(document)
    assert parsed is not None
    own = Hunk("a", 0, ("from net import fetch",), ("from net import load",), 1.0)
    other = Hunk("b", 0, ("def fetch(): pass",), ("def load(): pass",), 0.0)
    assert [one.edit.new for one in linked_edits(document, parsed, [other, own])] == [("x = load(1)",)]
    assert list(linked_edits(document, parsed, [own])) == []


@pytest.mark.parametrize(
    ("text", "linked"),
    [("def f(_fetch):\n    fetch()\n", False), ("def _fetch():\n    pass\nfetch()\n", True)],
)
def test_a_parameter_that_is_marked_as_unused_is_not_renamed(text: str, linked: bool) -> None:
    assert bool(edits("python", text, "fetch", "_fetch")) is linked


def test_a_name_that_is_being_deleted_links_nothing() -> None:
    assert edits("python", "fet = 1\nx = fetch\n", "fetch", "fet") == {}


def test_a_rename_that_was_taken_back_links_nothing() -> None:
    document = EditDocument("a", "a", "python", ("fetch = 1", "x = load", "y = fetch"))
    there = Hunk("a", 0, ("fetch = 1",), ("load = 1",), 1.0)
    back = Hunk("a", 0, ("load = 1",), ("fetch = 1",), 2.0)
    parsed = DocumentParser().parsed(document)
    assert parsed is not None
    old_names = [one.edit.new for one in linked_edits(document, parsed, [there, back])]
    assert old_names == [("x = fetch",)]


def test_each_hunk_that_made_the_rename_counts() -> None:
    document = EditDocument("a", "a", "python", ("load = 1", "x = load", "y = fetch"))
    hunks = [
        Hunk("a", 0, ("fetch = 1",), ("load = 1",), 1.0),
        Hunk("a", 1, ("x = fetch",), ("x = load",), 2.0),
        Hunk("b", 0, ("fetch = 1",), ("load = 1",), 3.0),
    ]
    parsed = DocumentParser().parsed(document)
    assert parsed is not None
    (found,) = linked_edits(document, parsed, hunks)
    assert (found.repeats, found.num_examples) == (hunks[1], 3)
