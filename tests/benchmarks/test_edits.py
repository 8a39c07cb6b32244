"""The counts of the next edit's benchmark: repetitions, right proposals, and the curve of a few questions."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from completion_engine.next_edit.decision import SHIPPED, Evidence, probability
from completion_engine.next_edit.edits import Hunk, LineEdit
from completion_engine.next_edit.occurrences import OldName
from tests.benchmarks.edits.changes import Change, changed_files, is_right, num_examples
from tests.benchmarks.edits.curves import area_under_curve, by_log_odds, point
from tests.benchmarks.edits.fitting import by_package, fit, held_out, with_chosen_thresholds
from tests.benchmarks.edits.questions import Question, Recording, Scored, read
from tests.benchmarks.edits.release_pairs import PAIRS
from tests.benchmarks.edits.renames import renames_in

CHANGE = Change(4, 6, ("x = fetch(1)", "y"), ("x = load(1)", "z"))


def scored(hunk: int, log_odds: float) -> Scored:
    evidence = Evidence(log_odds, 1, is_name_change=True)
    return Scored(f"{hunk} {log_odds}", hunk, 3, evidence, restores=False, ms=1.0)


def question(
    done: int, *candidates: Scored, package: str = "p", is_last: bool = False, **repeats: int
) -> Question:
    examples = {int(name[1:]): number for name, number in repeats.items()}
    return Question(package, "python", "a.py", done, is_last, candidates, examples)


@pytest.mark.parametrize(
    ("edit", "is_one"),
    [
        (LineEdit("a", 4, ("x = fetch(1)",), ("x = load(1)",)), True),
        (LineEdit("a", 4, ("x = fetch(1)",), ("x = load(2)",)), False),
        (LineEdit("a", 4, ("x = fetch(1)", "y"), ("x = load(1)", "y")), True),
        (LineEdit("a", 3, ("w",), ("x",)), False),
        (LineEdit("a", 5, ("y", "w"), ("z", "w")), False),
    ],
)
def test_a_part_of_a_change_is_right_where_its_lines_end_up_so(edit: LineEdit, is_one: bool) -> None:
    assert is_right(edit, CHANGE, 4) is is_one


def test_a_change_repeats_hunks_that_made_all_of_it() -> None:
    change = Change(0, 1, ("fetch(2)",), ("load(2)",))
    other = Hunk("a", 0, ("fetch(1)", "a"), ("load(1)", "b"))
    assert num_examples(change, [other, Hunk("a", 9, ("x",), ("y",))]) == 1
    assert num_examples(Change(0, 1, ("fetch(q)",), ("load(r)",)), [other]) == 0
    assert num_examples(Change(0, 0, (), ("load(2)",)), [other]) == 0


def test_files_of_two_releases_are_compared_line_by_line(tmp_path: Path) -> None:
    before, after = tmp_path / "1", tmp_path / "2"
    for folder, text in ((before, "a\nb\nc\n"), (after, "a\nB\nc\nd\n")):
        folder.mkdir()
        (folder / "m.py").write_text(text)
        (folder / "same.py").write_text("x\n")
    (changed,) = changed_files(before, after, "python")
    assert changed.name == "m.py"
    assert changed.changes == (Change(1, 2, ("b",), ("B",)), Change(3, 3, (), ("d",)))


def test_right_proposals_are_applied_and_wrong_ones_are_rejected() -> None:
    wrong = scored(-1, 9.0)
    questions = [
        question(0, wrong, scored(1, 5.0), h1=1, h2=1),
        question(1, wrong, scored(1, 5.0), scored(2, 1.0), h2=1),
        question(2, wrong, scored(2, 1.0), is_last=True),
    ]
    low, high = (point(questions, by_log_odds, threshold) for threshold in (0.0, 4.0))
    assert (low.one.num_right, low.one.num_wrong, low.one.num_found, low.one.num_hunks) == (2, 1, 2, 2)
    assert (high.one.num_right, high.one.num_wrong, high.one.num_found, high.one.num_hunks) == (1, 1, 1, 2)
    assert (low.num_last, low.num_last_proposed) == (1, 0)


def test_a_false_proposal_after_the_last_hunk_is_counted() -> None:
    found = point([question(0, scored(-1, 9.0), is_last=True)], by_log_odds, 0.0)
    assert (found.num_last, found.num_last_proposed) == (1, 1)


def test_weights_learn_what_tells_right_from_wrong() -> None:
    questions = [question(n, scored(n, 6.0 + n), scored(-1, -6.0 - n)) for n in range(20)]
    weights = fit(questions)
    assert min(weights.one.log_odds, weights.more.log_odds) > 0.5
    swapped = [
        replace(each, candidates=tuple(scored(it.hunk, -it.evidence.log_odds) for it in each.candidates))
        for each in questions
    ]
    assert fit(swapped).more.log_odds < -0.5


def test_each_package_is_judged_by_weights_of_the_others() -> None:
    right, wrong = (
        [question(n, scored(hunk, 3.0), package=name) for n in range(9)]
        for hunk, name in ((0, "a"), (-1, "b"))
    )
    found = held_out(by_package([*right, *wrong]), fit)
    assert found == [(right, fit(wrong)), (wrong, fit(right))]


def test_points_of_packages_are_added() -> None:
    one = point([question(0, scored(1, 5.0), h1=1)], by_log_odds, 0.0)
    other = point([question(0, scored(-1, 9.0), package="q", is_last=True)], by_log_odds, 0.0)
    found = (one + other).as_row("both")
    assert (found["precision_1"], found["recall_1"], found["proposals_1"], found["false_questions"]) == (
        0.5,
        1.0,
        2,
        1.0,
    )


def test_a_question_is_read_as_it_was_written() -> None:
    candidate = scored(2, 1.5)
    bound = replace(candidate, evidence=replace(candidate.evidence, old_name=OldName.BOUND, part=0.5))
    written = question(0, candidate, bound, h2=1)
    found = read(json.dumps(asdict(written)))
    assert found == written
    assert found.candidates[1].evidence.old_name is OldName.BOUND


def test_names_that_a_few_near_lines_use_are_renamed() -> None:
    lines = ["count = 0", "for it in many:", "    count += it", "    show(count)", "return count", "count"]
    text = "\n".join([*lines, *["rare = 1"] * 2, *["twice, twice"] * 5])
    (rename,) = renames_in(text, 9, random.Random(0))  # noqa: S311 - a choice of names
    assert (rename.old, rename.new, rename.places) == ("count", "current_count", ((0, 0), (2, 4)))


def test_a_threshold_is_the_lowest_that_is_precise_enough_in_other_packages() -> None:
    likely, unlikely = scored(1, 20.0), scored(-1, 8.0)
    assert 0.4 < probability(unlikely.evidence) < 0.5 < probability(likely.evidence)
    questions = [
        replace(question(0, candidate, package=package, h1=1), file=f"{candidate.hunk}.py")
        for package in "abc"
        for candidate in (likely, unlikely)
    ]
    found = with_chosen_thresholds(by_package(questions), lambda _: SHIPPED)
    assert (found.one.num_right, found.one.num_wrong) == (3, 0)
    assert point(questions, lambda it: probability(it.evidence), 0.4).one.num_wrong == 3


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order() -> None:
    places = [scored(0, 4.0), scored(1, 2.0), scored(-1, 3.0), scored(-1, 2.0)]
    assert area_under_curve([question(0, *places)], by_log_odds) == (1 + 1 + 0 + 0.5) / 4


def test_a_recording_is_read_up_to_a_number_of_questions_with_places(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    questions = [
        question(0),
        question(1, scored(1, 1.0)),
        question(2),
        question(3, scored(2, 1.0)),
        question(4),
    ]
    file.write_text("".join(f"{json.dumps(asdict(each))}\n" for each in questions))
    assert Recording(PAIRS[0], file, 1).questions == questions[:2]
    recording = Recording(PAIRS[0], file, 2)
    assert (recording.questions, recording.num_scored) == (questions[:4], 2)
    assert Recording(PAIRS[0], tmp_path / "none.jsonl", 2).questions == []
