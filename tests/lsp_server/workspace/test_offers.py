"""What becomes of a proposed edit: applied, dismissed, or passed over and then never proposed again."""

from __future__ import annotations

from completion_engine.next_edit.edits import EditAnswer, Hunk, LineEdit, ProposedEdit
from lsp_server.workspace.offers import NUM_RECORDS, NUM_REJECTED, Proposals

REPEATED = Hunk("a", 0, ("fetch(1)",), ("load(1)",), 1.0)


def answer(line: int = 2) -> EditAnswer:
    edit = LineEdit("a", line, (f"fetch({line})",), (f"load({line})",))
    return EditAnswer(ProposedEdit(edit, REPEATED, 1, 3.0, 0.9))


def test_an_edit_is_accepted_once_and_is_not_rejected_afterwards() -> None:
    proposals = Proposals()
    record = proposals.remember("a", answer(), 2.0)
    assert [proposals.accept(record.id) for _ in range(2)] == [True, False]
    assert not proposals.reject(record.id)
    assert proposals.rejected == frozenset()


def test_an_edit_that_was_proposed_twice_and_applied_is_not_passed_over() -> None:
    proposals = Proposals()
    first, second = (proposals.remember("a", answer(), 2.0) for _ in range(2))
    assert proposals.accept(second.id)
    assert proposals.pass_over([Hunk("a", 2, ("fetch(2)",), ("load(2)",), 3.0)]) == 0
    assert proposals.record(first.id) is None and proposals.rejected == frozenset()


def test_a_dismissed_edit_is_not_proposed_again() -> None:
    proposals = Proposals()
    record = proposals.remember("a", answer(), 2.0)
    assert proposals.reject(record.id)
    assert proposals.rejected == {("a", ("fetch(2)",), ("load(2)",))}


def test_whoever_goes_on_elsewhere_has_passed_the_edit_over() -> None:
    proposals = Proposals()
    proposals.remember("a", answer(), 2.0)
    still_typing = Hunk("a", 0, REPEATED.old, ("load(1, 2)",), 3.0)
    assert proposals.pass_over([still_typing]) == 0
    assert proposals.pass_over([still_typing, Hunk("a", 9, ("x",), ("y",), 4.0)]) == 1
    assert len(proposals.rejected) == 1


def test_an_answer_without_an_edit_is_neither_accepted_nor_rejected() -> None:
    proposals = Proposals()
    record = proposals.remember("a", EditAnswer(rule="no-recent-edit"), 2.0)
    assert not proposals.accept(record.id) and not proposals.reject(record.id)
    assert proposals.last_of("a") == record


def test_unknown_names_do_nothing() -> None:
    assert not Proposals().accept("edit-1") and not Proposals().reject(7)


def test_records_and_rejections_are_bounded_and_forgotten_with_their_document() -> None:
    proposals = Proposals()
    records = [proposals.remember("a", answer(line), 2.0) for line in range(NUM_RECORDS + 1)]
    assert proposals.record(records[0].id) is None and proposals.record(records[1].id) is not None
    for line in range(NUM_REJECTED + 1):
        proposals.reject(proposals.remember("a", answer(line), 2.0).id)
    assert len(proposals.rejected) == NUM_REJECTED
    proposals.forget("a")
    assert proposals.rejected == frozenset() and proposals.last_of("a") is None
