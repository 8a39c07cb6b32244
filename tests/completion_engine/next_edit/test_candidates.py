"""Where a recent edit may be repeated, and what is never proposed."""

from __future__ import annotations

import pytest

from completion_engine.next_edit.candidates import MAX_CANDIDATES, Candidate, find_candidates
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk, LineEdit


def document(text: str, name: str = "a") -> EditDocument:
    return EditDocument(name, f"{name}.py", "python", tuple(text.split("\n")))


def hunk(line: int, old: str, new: str, name: str = "a") -> Hunk:
    return Hunk(name, line, tuple(old.split("\n")), tuple(new.split("\n")))


def found(documents: list[EditDocument], hunks: list[Hunk], line: int = 0) -> list[tuple[str, int, str]]:
    candidates = find_candidates(EditRequest(documents, hunks, line))
    return [(it.edit.document, it.edit.first_line, "\n".join(it.edit.new)) for it in candidates]


def test_the_nearest_place_comes_first_and_other_documents_last() -> None:
    text = "fetch(1)\nload(2)\n\nfetch(3)\nfetch(4)"
    documents = [document(text), document("fetch(5)", "b")]
    places = found(documents, [hunk(1, "fetch(2)", "load(2)")], line=3)
    assert places == [("a", 3, "load(3)"), ("a", 4, "load(4)"), ("a", 0, "load(1)"), ("b", 0, "load(5)")]


def test_words_match_as_wholes_and_all_of_a_line_change_together() -> None:
    text = "load(1)\nprefetch(fetcher)\nfetch(fetch)"
    assert found([document(text)], [hunk(0, "fetch(1)", "load(1)")]) == [("a", 2, "load(load)")]


def test_text_that_reads_as_the_new_side_is_done() -> None:
    text = "self.name = 1\nself.name = 2\nname = 3"
    hunks = [hunk(0, "name = 1", "self.name = 1")]
    assert found([document(text)], hunks) == [("a", 2, "self.name = 3")]


def test_a_change_that_was_taken_back_is_not_repeated() -> None:
    text = "fetch(1)\nfetch(2)\nload(3)"
    there_and_back = [hunk(0, "fetch(1)", "load(1)"), hunk(1, "load(2)", "fetch(2)")]
    assert found([document(text)], there_and_back) == [("a", 2, "fetch(3)")]


def test_text_that_was_just_replaced_never_comes_back() -> None:
    text = "total = fetch(2)"
    hunks = [hunk(0, "total = load(2)", "total = fetch(2)"), hunk(9, "fetch(8)", "load(8)", "b")]
    assert found([document(text)], hunks) == []


def test_an_edit_that_was_rejected_is_not_found_at_any_line() -> None:
    edit = LineEdit("a", 7, ("fetch(2)",), ("load(2)",))
    request = EditRequest(
        [document("load(1)\nfetch(2)\nfetch(3)")],
        [hunk(0, "fetch(1)", "load(1)")],
        rejected=frozenset({edit.identity}),
    )
    assert [it.edit.first_line for it in find_candidates(request)] == [2]


def test_an_edit_that_was_rejected_stays_away_when_its_line_has_grown() -> None:
    edit = LineEdit("a", 1, ("fetch(2)",), ("load(2)",))
    request = EditRequest(
        [document("load(1)\nfetch(2)  # twice")],
        [hunk(0, "fetch(1)", "load(1)")],
        rejected=frozenset({edit.identity}),
    )
    assert find_candidates(request) == []


def test_examples_are_counted_over_the_recent_hunks() -> None:
    hunks = [hunk(0, "fetch(1)", "load(1)"), hunk(1, "x = fetch(2)", "x = load(2)")]
    (candidate,) = find_candidates(EditRequest([document("load(1)\nx = load(2)\nfetch(3)")], hunks))
    assert candidate.num_examples == 2
    assert candidate.repeats == hunks[1]


def test_a_document_full_of_matches_gives_a_bounded_number() -> None:
    text = "\n".join(f"fetch({number})" for number in range(10_000))
    candidates: list[Candidate] = find_candidates(
        EditRequest([document(text)], [hunk(0, "fetch(x)", "load(x)")], 5)
    )
    assert len(candidates) == MAX_CANDIDATES
    assert candidates[0].edit.first_line == 5


@pytest.mark.parametrize(
    ("text", "hunks", "following"),
    [
        ("log(1)\nx\nlog(2)\nprint(3)\nprint(4)", [(0, "1"), (2, "2")], [3]),
        ("print(1)\nx\nlog(2)\nx\nlog(3)\nprint(4)", [(2, "2"), (4, "3")], [0, 5]),
        ("log(1)\nprint(2)\nlog(3)\nprint(4)", [(0, "1"), (2, "3")], []),
        ("log(1)\nx = print(2)\nlog(3)\nprint(4)", [(0, "1"), (2, "3")], [3]),
        ("log(1)\nprint(2)", [(0, "1")], []),
    ],
    ids=["below", "above and below", "one was passed over", "one that begins otherwise", "one example"],
)
def test_who_goes_from_one_occurrence_to_the_next_comes_to_the_next(
    text: str, hunks: list[tuple[int, str]], following: list[int]
) -> None:
    made = [hunk(line, f"print({number})", f"log({number})") for line, number in hunks]
    candidates = find_candidates(EditRequest([document(text)], made))
    assert sorted(it.edit.first_line for it in candidates if it.is_next) == following


def test_an_insertion_or_another_change_between_is_not_going_on() -> None:
    text = "log(store)\nlog(store)\nlog(store)"
    inserted = [hunk(line, "log(store)", "log(&store)") for line in (0, 1)]
    print_to_log = [hunk(line, "print(1)", "log(1)") for line in (0, 2)]
    between = [print_to_log[0], hunk(5, "a", "b"), print_to_log[1]]
    for document_text, hunks in ((text, inserted), ("log(1)\nx\nlog(1)\nprint(1)\nx\nb", between)):
        candidates = find_candidates(EditRequest([document(document_text)], hunks))
        assert candidates and not any(it.is_next for it in candidates)
