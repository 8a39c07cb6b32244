"""All edits that need no model, in all documents and files."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from completion_engine.next_edit.certain_edits import MAX_EDITS, all_certain_edits
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk

LINES = ("def load(a):", "    return a", "", "x = fetch(1)", "", "y = fetch(2)")
HUNK = Hunk("a", 0, ("def fetch(a):",), ("def load(a):",))
USE = ("from pkg.net import fetch", "", "print(fetch(3))", "z = fetch", "other.fetch()")


def places(lines: Sequence[str], *files: EditDocument, hunk: Hunk = HUNK) -> list[tuple[str, int, str]]:
    """The document, line and text of all edits, the first one first."""
    document = EditDocument("a", "pkg/net.py", "python", tuple(lines))
    answer = all_certain_edits(EditRequest([document], [hunk]), lambda _names, _modules: files)
    if answer is None or answer.proposal is None:
        return []
    edits = [answer.proposal.edit, *answer.others]
    return [(it.document, it.first_line, "\n".join(it.new)) for it in edits]


def test_uses_after_an_import_in_a_file_that_is_not_open_are_among_them() -> None:
    use = EditDocument("b", "pkg/use.py", "python", USE)
    assert places(LINES, use) == [
        ("a", 3, "x = load(1)"),
        ("a", 5, "y = load(2)"),
        ("b", 0, "from pkg.net import load"),
        ("b", 2, "print(load(3))"),
        ("b", 3, "z = load"),
    ]


@pytest.mark.parametrize("num_uses", [40, 1000])
def test_a_long_file_has_all_of_them_up_to_the_limit(num_uses: int) -> None:
    found = places([*LINES[:2], *["fetch(1)"] * num_uses])
    assert len(found) == min(num_uses, MAX_EDITS)
    assert len({line for _, line, _ in found}) == len(found)


def test_without_a_change_there_are_none() -> None:
    assert places(LINES, hunk=Hunk("a", 1, ("    return b",), ("    return a",))) == []
