"""One proposal or none: bounded work, the nearest likely place, nothing that breaks code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from completion_engine.next_edit import parsing as parsing_module
from completion_engine.next_edit import proposer as proposer_module
from completion_engine.next_edit.candidates import Candidate
from completion_engine.next_edit.decision import Evidence, most_promising_first, probability, threshold_of
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk, LineEdit
from completion_engine.next_edit.log_odds import (
    NUM_LINES_AFTER,
    NUM_LINES_BEFORE,
    PlacePrompts,
    lines_left_out,
    text_around,
)
from completion_engine.next_edit.occurrences import OldName
from completion_engine.next_edit.parsing import DocumentParser, adds_errors, edited, with_lines_around
from completion_engine.next_edit.proposer import MAX_SCORED, EditProposer
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, CancelledError
from completion_engine.target_model.kv_cache import num_common
from completion_engine.target_model.language_model import LanguageModel

LINES = ("x = load(1)", *(f"x = fetch({number})" for number in range(9)), "")
DOCUMENT = EditDocument("a", "a.py", "python", LINES)
HUNK = Hunk("a", 0, ("x = fetch(1)",), ("x = load(1)",))
REQUEST = EditRequest([DOCUMENT], [HUNK])


@pytest.fixture
def anything_is_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposer_module, "threshold_of", lambda *_, **__: 0.0)


@pytest.mark.usefixtures("anything_is_likely")
def test_the_nearest_place_is_proposed_where_anything_is_likely(
    target: LanguageModel, tokenizer: Tokenizer
) -> None:
    answer = EditProposer(target, tokenizer).propose(REQUEST)
    assert answer.proposal is not None
    assert answer.proposal.edit == LineEdit("a", 1, ("x = fetch(0)",), ("x = load(0)",))
    assert answer.proposal.repeats == HUNK
    assert (answer.num_candidates, answer.num_scored) == (9, 1)


def test_few_places_are_scored_where_none_is_likely_enough(
    target: LanguageModel, tokenizer: Tokenizer, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposer_module, "threshold_of", lambda *_, **__: 1.1)
    proposer = EditProposer(target, tokenizer)
    answer = proposer.propose(REQUEST)
    assert (answer.proposal, answer.rule, answer.num_scored) == (None, "edit-unlikely", MAX_SCORED)
    num_passes = len(passes)
    assert num_passes >= MAX_SCORED
    again = proposer.propose(REQUEST)
    assert (again.num_scored, len(passes)) == (MAX_SCORED, num_passes)
    proposer.forget()
    proposer.propose(REQUEST)
    assert len(passes) == 2 * num_passes


@pytest.mark.usefixtures("anything_is_likely")
@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        pytest.param(replace(REQUEST, hunks=[]), "no-recent-edit", id="nothing was edited"),
        pytest.param(
            EditRequest([EditDocument("a", "a.py", "python", ("x",))], [HUNK]),
            "no-similar-place",
            id="nothing is alike",
        ),
    ],
)
def test_without_a_place_no_pass_runs(
    target: LanguageModel, tokenizer: Tokenizer, passes: list[int], request_: EditRequest, rule: str
) -> None:
    answer = EditProposer(target, tokenizer).propose(request_)
    assert (answer.proposal, answer.rule, passes) == (None, rule, [])


def test_a_cancelled_request_ends(target: LanguageModel, tokenizer: Tokenizer) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(CancelledError):
        EditProposer(target, tokenizer).propose(replace(REQUEST, cancellation=cancellation))


@pytest.mark.usefixtures("anything_is_likely")
def test_no_place_is_scored_once_the_time_is_over(
    target: LanguageModel, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposer_module, "MAX_MS", -1.0)
    assert EditProposer(target, tokenizer).propose(REQUEST).num_scored == 0


def breaks(document: EditDocument, edit: LineEdit) -> bool:
    parser = DocumentParser()
    return adds_errors(parser.parsed(document), parser.parse(edited(document, edit)))


@pytest.mark.parametrize(
    ("language", "is_one"), [("python", True), ("plaintext", False)], ids=["a grammar", "none"]
)
def test_an_edit_that_adds_an_error_is_seen(language: str, is_one: bool) -> None:
    document = replace(DOCUMENT, language=language)
    assert breaks(document, LineEdit("a", 1, LINES[1:2], ("x = load(0",))) is is_one
    assert not breaks(document, LineEdit("a", 1, LINES[1:2], ("x = load(0)",)))


def test_an_edit_that_breaks_the_document_far_away_is_seen() -> None:
    lines = ("impl A {", *["    fn f() {}"] * 80, "}")
    document, edit = EditDocument("a", "a.rs", "rust", lines), LineEdit("a", 0, lines[:1], ())
    assert breaks(document, edit)
    assert not breaks(*with_lines_around(document, edit))
    assert not breaks(document, LineEdit("a", 0, lines, lines[1:-1]))


@pytest.mark.usefixtures("anything_is_likely")
@pytest.mark.parametrize("max_chars", [1_000_000, 5_000])
def test_an_edit_that_breaks_the_syntax_is_not_scored(
    target: LanguageModel, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, max_chars: int
) -> None:
    monkeypatch.setattr(parsing_module, "_MAX_CHARS", max_chars)
    document = replace(DOCUMENT, lines=(*LINES[:3], *["pass"] * 2_000))
    hunk = Hunk("a", 0, ("x = fetch(1)",), ("x = fetch((1)",))
    request = EditRequest([document], [hunk])
    answer = EditProposer(target, tokenizer).propose(request)
    assert (answer.proposal, answer.num_candidates, answer.num_scored) == (None, 1, 0)


def test_more_evidence_makes_an_edit_more_likely() -> None:
    evidence = Evidence(2.0, 1)
    assert probability(replace(evidence, log_odds=8.0)) > probability(evidence)
    assert probability(replace(evidence, num_examples=2)) > probability(evidence)
    assert probability(replace(evidence, moves_lines=True)) < probability(evidence)
    assert probability(replace(evidence, repeats_lines=True)) > probability(evidence)
    assert probability(replace(evidence, part=0.2)) < probability(evidence)
    assert probability(replace(evidence, old_name=OldName.DANGLING)) > probability(evidence)
    assert probability(replace(evidence, old_name=OldName.BOUND)) < probability(evidence)
    assert (
        0 < probability(replace(evidence, log_odds=-1e9)) < probability(replace(evidence, log_odds=1e9)) < 1
    )


@pytest.mark.parametrize(
    ("edit", "part", "repeats_lines"),
    [
        (LineEdit("a", 5, ("    x = fetch(1)",), ("    x = load(1)",)), 1.0, True),
        (LineEdit("a", 5, ("y = fetch(2)",), ("y = load(2)",)), 1.0, False),
        (LineEdit("a", 5, ("y = fetch(2)",), ("y = fetch(3)",)), 0.0, False),
    ],
)
def test_the_evidence_tells_how_much_of_a_hunk_is_repeated(
    edit: LineEdit, part: float, repeats_lines: bool
) -> None:
    ((_, found),) = most_promising_first([Candidate(edit, HUNK, 1, 3)])
    assert (found.part, found.repeats_lines) == (part, repeats_lines)


def test_the_place_of_a_whole_change_comes_before_a_nearer_place_of_a_part() -> None:
    hunk = Hunk("a", 0, ("x = fetch(1, mode)",), ("x = load(1, kind)",))
    part = Candidate(LineEdit("a", 1, ("y = mode",), ("y = kind",)), hunk, 1, 1)
    whole = Candidate(LineEdit("a", 9, ("z = fetch(2, mode)",), ("z = load(2, kind)",)), hunk, 1, 9)
    assert [candidate for candidate, _ in most_promising_first([part, whole])] == [whole, part]


def test_a_prompt_shows_the_lines_around_a_place_and_the_recent_edits(tokenizer: Tokenizer) -> None:
    lines = tuple(f"line {number}" for number in range(100))
    document = EditDocument("a", "a.py", "python", lines)
    before, after = text_around(document, LineEdit("a", 50, lines[50:52], ("x",)))
    assert before.splitlines() == list(lines[50 - NUM_LINES_BEFORE : 50])
    assert after.splitlines() == list(lines[52 : 52 + NUM_LINES_AFTER])
    request = EditRequest([document], [HUNK])
    tokens = PlacePrompts(tokenizer, 4096).prompt(request, document, LineEdit("a", 50, lines[50:51], ("x",)))
    assert tokens is not None
    shown = tokenizer.decode(list(tokens))
    assert shown.index("x = load(1)") < shown.index("line 49") < shown.index("line 51")
    assert "fetch" not in shown and "line 50" not in shown


def test_a_key_in_the_last_edit_changes_the_end_of_a_rename_prompt_alone(tokenizer: Tokenizer) -> None:
    lines = ("first = 1", "x = f", *(f"y{number} = fetch({number})" for number in range(20)))
    earlier = Hunk("a", 0, ("old = 1",), ("first = 1",))
    place = LineEdit("a", 8, lines[8:9], ("y6 = f(6)",))
    prompts = []
    for typed in ("x = f", "x = fo", "x = foo(1)"):
        document = EditDocument("a", "a.py", "python", (lines[0], typed, *lines[2:]))
        request = EditRequest([document], [earlier, Hunk("a", 1, ("x = fetch(1)",), (typed,))])
        left_out = lines_left_out(request, place, [])
        prompts.append(PlacePrompts(tokenizer, 4096).rename_prompt(request, document, place, left_out) or ())
    end = len(tokenizer.encode("\nx = foo(1)\n")) + 1
    assert num_common(prompts[0], prompts[1]) >= len(prompts[0]) - end > end
    assert num_common(prompts[0], prompts[2]) >= len(prompts[2]) - end


def test_a_rename_prompt_leaves_out_what_other_edits_would_change(tokenizer: Tokenizer) -> None:
    hunk = Hunk("a", 2, ("x = fetch(1)",), ("x = fetch(1)",))
    others = [LineEdit("a", 5, LINES[5:6], ("x",)), LineEdit("b", 6, LINES[6:7], ("x",))]
    place = LineEdit("a", 4, LINES[4:5], ("x",))
    request = replace(REQUEST, hunks=[hunk])
    left_out = lines_left_out(request, place, [*others, place])
    assert left_out == {2, 5}
    tokens = PlacePrompts(tokenizer, 4096).rename_prompt(request, DOCUMENT, place, left_out)
    shown = tokenizer.decode(list(tokens or ()))
    assert LINES[3] in shown and LINES[6] in shown and LINES[5] not in shown and LINES[4] not in shown


@pytest.mark.usefixtures("anything_is_likely")
def test_a_place_whose_prompt_is_too_long_is_not_scored(target: LanguageModel, tokenizer: Tokenizer) -> None:
    assert PlacePrompts(tokenizer, 10).prompt(REQUEST, DOCUMENT, LineEdit("a", 1, LINES[1:2], ("x",))) is None
    long = EditDocument("a", "a.py", "python", (LINES[0], "x = fetch(" + "1 + " * 2_000 + "1)"))
    answer = EditProposer(target, tokenizer).propose(EditRequest([long], [HUNK]))
    assert (answer.proposal, answer.num_candidates, answer.num_scored) == (None, 1, 0)


@pytest.mark.usefixtures("anything_is_likely")
def test_lines_that_go_away_are_scored_with_the_line_after_them(
    target: LanguageModel, tokenizer: Tokenizer
) -> None:
    lines = ("top()", "print(value)", "middle()", "print(value)", "end()")
    document = EditDocument("a", "a.py", "python", lines)
    hunk = Hunk("a", 1, ("print(value)",), ())
    answer = EditProposer(target, tokenizer).propose(EditRequest([document], [hunk], 1))
    assert answer.proposal is not None
    assert answer.proposal.edit == LineEdit("a", 1, ("print(value)",), ())


@pytest.mark.parametrize("num_examples", [1, 2])
def test_a_name_that_its_file_still_binds_is_not_exchanged_a_third_time(num_examples: int) -> None:
    evidence = Evidence(20.0, num_examples, is_name_change=True, repeats_lines=True, old_name=OldName.BOUND)
    assert (probability(evidence) > 0) is (num_examples == 1)


@pytest.mark.parametrize(
    ("evidence", "is_invoked", "is_proposed"),
    [
        (Evidence(15.6, 1), False, True),
        (Evidence(7.5, 2), False, False),
        (Evidence(7.5, 2), True, True),
    ],
)
def test_after_two_examples_an_edit_must_be_more_likely_unless_the_user_asks(
    evidence: Evidence, is_invoked: bool, is_proposed: bool
) -> None:
    assert 0.65 < probability(evidence) < 0.8
    assert (probability(evidence) >= threshold_of(evidence, is_invoked=is_invoked)) is is_proposed
