"""What one hunk teaches: the changed text, with as much of its line as makes it specific."""

from __future__ import annotations

import pytest

from completion_engine.next_edit.edits import Hunk, LineEdit
from completion_engine.next_edit.substitutions import (
    MAX_HUNK_TOKENS,
    changed_cores,
    exchanged_names,
    substitutions_of,
)
from tests.growth import growth


def taught(old: str, new: str) -> list[tuple[str, str]]:
    hunk = Hunk("a", 0, tuple(old.split("\n")), tuple(new.split("\n")))
    return [(one.old, one.new) for one in substitutions_of(hunk)]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        pytest.param("x = fetch(a)", "x = load(a)", [("fetch", "load")], id="a name"),
        pytest.param("run(job)", "run(job, 5)", [("job)", "job, 5)")], id="an argument"),
        pytest.param("return value + 1", "return value - 1", [("value + ", "value - ")], id="a mark"),
        pytest.param("await read()", "read()", [("await ", "")], id="taken away"),
        pytest.param(
            "a.get(b)",
            "a.put(c)",
            [("get(b", "put(c"), ("get", "put"), ("get(b)", "get(c)")],
            id="two near changes",
        ),
        pytest.param("    run()", "        run()", [], id="indentation alone"),
        pytest.param("", "new_line()", [], id="a line added"),
    ],
)
def test_the_change_is_found_again_by_what_names_it(
    old: str, new: str, wanted: list[tuple[str, str]]
) -> None:
    assert taught(old, new) == wanted


def test_a_hunk_that_would_take_long_to_compare_teaches_nothing() -> None:
    old = " ".join(f"name{number}" for number in range(MAX_HUNK_TOKENS))
    assert taught(old, f"{old} more") == []


def renamed(num_names: int) -> Hunk:
    """A hunk in which every name changed, and every blank between them stayed."""
    old, new = (" ".join(f"{head}{number}" for number in range(num_names)) for head in ("a", "b"))
    return Hunk("a", 0, (old,), (new,))


def test_a_hunk_of_many_equal_tokens_takes_no_longer_than_a_short_one() -> None:
    """Each blank pairs with each other one, which costs the comparison the third power of their number."""
    assert growth(lambda num_names: substitutions_of(renamed(num_names)), 60, 299, below=10) < 10


def test_the_changed_parts_have_no_context() -> None:
    hunk = Hunk("a", 0, ("run(job)", "y = fetch()"), ("run(job, 5)", "y = load()"))
    assert changed_cores(hunk) == [("", ", 5"), ("fetch", "load")]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("a.get(b)", "a.put(c)", {("get", "put"), ("b", "c")}),
        ("a.get(b)", "a.put()", set()),
        ("x + 1", "x - 1", set()),
    ],
)
def test_names_are_exchanged_where_nothing_else_changes(
    old: str, new: str, names: set[tuple[str, str]]
) -> None:
    assert exchanged_names(LineEdit("a", 0, (old,), (new,))) == names
