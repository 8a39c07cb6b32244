"""Random renames in random programs, followed to the end: all parses, and each name means what it meant.

All places follow or none does. A model that finds every edit likely never renames another thing.
`python -m tests.completion_engine.next_edit.test_random_renames 1000` runs 1,000 programs in each language.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.next_edit.candidates import find_candidates
from completion_engine.next_edit.certain_edits import certain_edit
from completion_engine.next_edit.edits import EditAnswer, EditDocument, EditRequest, ProposedEdit
from completion_engine.next_edit.parsing import DocumentParser
from completion_engine.next_edit.proposer import Refusals
from tests.completion_engine.next_edit.following import followed
from tests.completion_engine.next_edit.small_programs import (
    FRESH,
    POOL,
    RULES,
    Generator,
    Name,
    Scope,
    is_valid,
    meanings,
)
from tests.completion_engine.next_edit.small_texts import text_of


@dataclass(frozen=True, slots=True)
class Case:
    """A program and a rename in it: the text before, after the user's own change, and when all follows."""

    language: str
    program: Scope
    names: Sequence[Name]
    thing: Sequence[Name]
    new: str
    before: str
    renamed: str
    whole: str
    is_right: bool  # whether all names mean what they meant once all follows

    @classmethod
    def of(cls, random: Random, language: str) -> Case | None:
        """Make a case; None where a program declares nothing."""
        generator = Generator(random, language)
        program, names = generator.program(), generator.names
        declared = [it for it in names if it.role in ("declare", "member")]
        if not declared:
            return None
        one = random.choice(declared)
        new = random.choice([it for it in (*POOL, FRESH) if it != one.text])
        before = text_of(language, program)
        were = meanings(language, names, before)
        thing = [name for name, meaning in zip(names, were, strict=True) if meaning == were[names.index(one)]]
        renamed = _written(language, program, [one], new)
        whole = _written(language, program, thing, new)
        _put(thing, new)
        is_right = is_valid(language, names) and _alike(were, meanings(language, names, whole))
        _take_back(thing)
        return cls(language, program, names, thing, new, before, renamed, whole, is_right)


def _put(names: Sequence[Name], new: str) -> None:
    for name in names:
        name.old, name.text = name.text, new


def _take_back(names: Sequence[Name]) -> None:
    for name in names:
        name.old, name.text = "", name.old


def _written(language: str, program: Scope, names: Sequence[Name], new: str) -> str:
    _put(names, new)
    text = text_of(language, program)
    _take_back(names)
    return text


def _alike(one: Sequence[Hashable], other: Sequence[Hashable]) -> bool:
    """Return whether two lists have equal items at the same places."""
    return [one.index(it) for it in one] == [other.index(it) for it in other]


def check(case: Case) -> str:
    """Follow a rename to its end, without and with edits of the model; return how it ended."""
    found = followed(case.language, case.before, case.renamed)
    shown = f"{case.language}, {case.thing[0].text} to {case.new}:\n{case.renamed}\nbecame\n{found}"
    assert found == case.renamed or (found == case.whole and case.is_right), shown
    assert found == case.renamed or not _has_error(case.language, found), shown
    widest = followed(case.language, case.before, case.renamed, _propose_all)
    allowed = _lines_that_may_be(case)
    wrong = [line for at, line in enumerate(widest.split("\n")) if line not in allowed[at]]
    assert not wrong, f"{shown}\nand with the model\n{widest}"
    if case.renamed == case.whole:
        return "nothing to follow"
    return "followed" if found == case.whole else "refused" if case.is_right else "rightly refused"


def _propose_all(request: EditRequest) -> EditAnswer | None:
    """Propose what is certain, else the first candidate that is not refused."""
    answer = certain_edit(request)
    if answer is not None:
        return answer
    refusals = Refusals(request, DocumentParser())
    for one in find_candidates(request):
        if not refusals.refuses(request.documents[0], one.edit):
            return EditAnswer(ProposedEdit(one.edit, one.repeats, one.num_examples, None, 1.0))
    return None


def _lines_that_may_be(case: Case) -> list[set[str]]:
    """Return the texts of each line in which only the thing and members of unknown objects are renamed."""
    free = [
        it for it in case.names if it in case.thing or (it.role == "other" and it.text == case.thing[0].text)
    ]
    texts = [case.before, case.renamed, case.whole, _written(case.language, case.program, free, case.new)]
    texts += [_written(case.language, case.program, [it], case.new) for it in free]
    lines = [set(at) for at in zip(*(text.split("\n") for text in texts), strict=True)]
    by_line: dict[int, list[Name]] = {}
    base = case.before.split("\n")
    for it in free:
        changed = _written(case.language, case.program, [it], case.new).split("\n")
        for at, line in enumerate(changed):
            if line != base[at]:
                by_line.setdefault(at, []).append(it)
    for at, here in by_line.items():
        for chosen in product((False, True), repeat=len(here)):
            picked = [it for it, is_in in zip(here, chosen, strict=True) if is_in]
            lines[at].add(_written(case.language, case.program, picked, case.new).split("\n")[at])
    return lines


def _has_error(language: str, text: str) -> bool:
    if language == "python":
        compile(text, "a.py", "exec")
    parsed = DocumentParser().parsed(EditDocument("a", "a", language, tuple(text.split("\n"))))
    return parsed is None or parsed.tree.root_node.has_error


@pytest.mark.parametrize("language", RULES)
@settings(max_examples=40, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_every_name_means_what_it_meant(language: str, random: Random) -> None:
    case = Case.of(random, language)
    if case is not None:
        check(case)


def test_a_short_property_of_another_thing_is_not_filled() -> None:
    case = Case.of(Random(100_600), "rust")  # noqa: S311 - as below
    assert case is not None
    check(case)


@pytest.mark.parametrize("language", RULES)
def test_most_renames_that_keep_the_meaning_are_followed(language: str) -> None:
    cases = [Case.of(Random(seed), language) for seed in range(60)]  # noqa: S311 - programs, no secrets
    ends = Counter(check(case) for case in cases if case is not None)
    assert ends["followed"] > 5 * ends["refused"]


if __name__ == "__main__":
    for each in RULES:
        found = (Case.of(Random(seed), each) for seed in range(int(sys.argv[1])))  # noqa: S311 - as above
        print(each, dict(Counter(check(it) for it in found if it is not None)))  # noqa: T201 - a command
