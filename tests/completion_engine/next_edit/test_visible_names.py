"""Names that an edit writes where no binding reaches them, or that it defines a second time."""

from __future__ import annotations

import pytest

from completion_engine.next_edit.edits import EditDocument, LineEdit
from completion_engine.next_edit.parsing import DocumentParser, edited
from completion_engine.next_edit.resolution import misplaces_names

PYTHON = "def first(job):\n    show(job)\n\ndef second(work):\n    show(work.size)\n    show(work)\n"
RUST = "use a::job::Job;\n\nfn f(job: i32) {\n    go(job);\n}\n\nfn g(work: i32) {\n    go(work);\n}\n"
TYPES = "interface A {\n  f: (lost: string) => void;\n}\nfunction g(used) {\n  return used;\n}\n"
SCRIPT = "function f(lost) {\n  return {lost};\n}\nfunction g(used) {\n  return {used};\n}\n"


@pytest.mark.parametrize(
    ("language", "text", "line", "new", "is_one"),
    [
        pytest.param("python", PYTHON, 4, "    show(job)", True, id="bound in another function"),
        pytest.param("python", PYTHON, 4, "    show(work)", False, id="bound here"),
        pytest.param("python", PYTHON, 4, "    show(work.task)", False, id="a member"),
        pytest.param("python", PYTHON, 4, "    show(work, job=1)", False, id="the name of an argument"),
        pytest.param("python", PYTHON, 4, "    show(elsewhere)", False, id="bound nowhere in the file"),
        pytest.param("python", PYTHON, 4, "    job = work.job", False, id="binds it"),
        pytest.param("python", PYTHON, 3, "def first(work):", True, id="a second definition"),
        pytest.param("python", PYTHON, 3, "def third(work):", False, id="a new definition"),
        pytest.param("python", f"job = 1\n{PYTHON}", 5, "    show(job)", False, id="bound in the module"),
        pytest.param("python", f"{PYTHON}job = 1\n", 4, "    show(job)", False, id="bound below"),
        pytest.param("typescript", SCRIPT, 4, "  return {lost};", True, id="a short property"),
        pytest.param("typescript", SCRIPT, 4, "  return {lost: used};", False, id="a property"),
        pytest.param("python", "job = first\n", 0, "job = job(1)", True, id="bound to its own value"),
        pytest.param("python", "job = [first]\n", 0, "job = [a for a in job]", True, id="in a comprehension"),
        pytest.param(
            "python", "job = first\n", 0, "job = lambda: job", False, id="a function that uses itself"
        ),
        pytest.param("rust", RUST, 7, "    go(job);", True, id="in the path of an import"),
        pytest.param("typescript", TYPES, 4, "  return lost;", True, id="the parameter of a type"),
    ],
)
def test_a_name_is_misplaced_where_no_binding_reaches_it(
    language: str, text: str, line: int, new: str, is_one: bool
) -> None:
    lines = tuple(text.split("\n"))
    edit = LineEdit("a", line, (lines[line],), (new,))
    parsed = DocumentParser().parsed(edited(EditDocument("a", "a", language, lines), edit))
    assert parsed is not None and misplaces_names(parsed, edit) is is_one
