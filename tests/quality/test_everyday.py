"""The benchmark of everyday files judges what its rules say, and never the author's own text."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.quality.everyday.__main__ import Answers, judge_all, print_table
from tests.quality.everyday.cases import CursorCase, written_cases
from tests.quality.everyday.judging import Accepted, faults, reason_not_parsed

CASES = written_cases()


def test_half_of_the_positions_are_written_and_cover_many_languages() -> None:
    assert len(CASES) >= 200
    assert len({case.language for case in CASES}) >= 25
    assert min(Counter(case.kind for case in CASES).values()) >= 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}:{case.prefix.count(chr(10)) + 1}")
def test_the_text_that_was_there_is_never_a_fault(case: CursorCase) -> None:
    assert faults(case, Accepted(case.truth)) == []


def markdown(prefix: str, truth: str, suffix: str) -> CursorCase:
    return CursorCase("closes_below", "markdown", "a.md", prefix, truth, suffix)


@pytest.mark.parametrize(
    ("case", "accepted", "fault"),
    [
        (markdown("```sh\n", "make", "\n```\n"), Accepted("make\n```"), "repeat"),
        (markdown("a `", "b", "` c\n"), Accepted("b` c"), "pairs"),
        (markdown("$$\n", "x", "\n$$\n"), Accepted("x\n$$"), "pairs"),
        (CursorCase("random", "c", "a.c", "f(", "x", ");\n"), Accepted("x))"), "pairs"),
        (CursorCase("random", "c", "a.c", "int x;\n", "", "\n"), Accepted("```c"), "fence"),
        (CursorCase("random", "c", "a.c", "int x;\n", "", "\n"), Accepted('"a", ' * 20), "circle"),
        (CursorCase("random", "c", "a.c", "{\n  a;\n  ", "b;", "\n}"), Accepted("b;\n\tc;"), "indentation"),
        (CursorCase("random", "c", "a.c", "a;\n", "b;", "\nc;"), Accepted("b;\r\nd;"), "line end"),
    ],
)
def test_each_rule_notices_its_fault(case: CursorCase, accepted: Accepted, fault: str) -> None:
    assert fault in faults(case, accepted)


@pytest.mark.parametrize(
    ("case", "accepted"),
    [
        (CursorCase("random", "makefile", "a.mk", "a:\n\t", "echo $$x", "\n"), Accepted("echo $x")),
        (CursorCase("random", "makefile", "a.mk", "A = $(wildcard ", "b/*.c", ")\n"), Accepted("*.c")),
        (
            CursorCase("random", "markdown", "a.md", "```\n", "A --> B", "\n```\n"),
            Accepted("A --> B\nB --> C"),
        ),
        (CursorCase("random", "org", "a.org", "f = ", "r ** 2", "\n"), Accepted("3 * r")),
        (CursorCase("random", "plaintext", "a.txt", "a. i", "tem A. b)", "\n"), Accepted("tem A. b")),
        (CursorCase("random", "c", "a.c", "", 'f("x");', "\n"), Accepted('f("a) f(x)");')),
        (CursorCase("random", "scheme", "a.scm", ";; a\n", ";; b", "\n;;\n"), Accepted(";;\n;; b")),
        (CursorCase("random", "python", "a.py", '"""a/', "b", '"""\n'), Accepted("*/c_*.txt")),
        (CursorCase("random", "javascript", "a.js", "", "x = a */b/.exec(c);", "\n"), Accepted("x = a;")),
        (CursorCase("random", "makefile", "a.mk", "a:\n    b\n", "c:", "\n    d\n"), Accepted("c: e\n\tf")),
        (
            CursorCase("random", "properties", "a.properties", "\ta=b\n", "c", "\n  d\n  e\n"),
            Accepted("x\n\ta=b"),
        ),
    ],
)
def test_what_looks_like_a_pair_or_a_repeat_is_no_fault(case: CursorCase, accepted: Accepted) -> None:
    assert faults(case, accepted) == []


@pytest.mark.skipif(bool(reason_not_parsed()), reason="files are not parsed")
@pytest.mark.parametrize(
    ("language", "document", "written", "num_faults"),
    [
        ("rust", "fn f() {\n    a(try!(b));\n    ⟦c();⟧\n}\n", "c(try!(d));", 0),
        ("rust", "fn f() {\n    a(b?);\n    ⟦c();⟧\n}\n", "c(try!(d));", 1),
        ("ini", "[a]\n⟦b = c⟧\nd = e \\\n    f\n", "b = c \\\n    g", 0),
        ("ini", "[a]\n⟦b = c⟧\nd = e\n", "b = c \\\n    g", 1),
    ],
)
def test_what_the_document_has_and_the_grammar_does_not_know_is_no_fault(
    language: str, document: str, written: str, num_faults: int
) -> None:
    before, _, rest = document.partition("⟦")
    truth, _, after = rest.partition("⟧")
    case = CursorCase("random", language, "a", before, truth, after)
    assert len(faults(case, Accepted(written))) == num_faults


@pytest.mark.skipif(bool(reason_not_parsed()), reason="files are not parsed")
@pytest.mark.parametrize(("num_lines", "is_fault"), [(2, True), (40, False)])
def test_a_document_of_errors_alone_is_not_judged_by_them(num_lines: int, is_fault: bool) -> None:
    row = "x = = 1\n"
    case = CursorCase("random", "python", "a.py", row * num_lines, row, row)
    assert ("parse" in faults(case, Accepted(row * 3))) == is_fault


@pytest.mark.parametrize("written", ["/* a", "a */", "a */b"])
def test_a_comment_in_a_script_still_counts(written: str) -> None:
    case = CursorCase("random", "javascript", "a.js", "", "a;", "\n")
    assert "pairs" in faults(case, Accepted(written))


@pytest.mark.parametrize("written", ['f("a)"));', 'f("a"'])
def test_brackets_beside_strings_still_count(written: str) -> None:
    case = CursorCase("random", "c", "a.c", "", "f(x);", "\n")
    assert "pairs" in faults(case, Accepted(written))


def test_replaced_characters_count_for_the_pairs() -> None:
    case = CursorCase("rest_closes", "c", "a.c", "f(", "x", ");\n")
    assert faults(case, Accepted("x);", num_replaced=2)) == []


def test_an_interrupted_run_goes_on_with_the_answers_of_its_file(tmp_path: Path) -> None:
    case, other = CASES[:2]
    Answers(tmp_path / "answers").add(case, Accepted("x\u2028y", 3))
    answers = Answers(tmp_path / "answers")
    assert answers.get(case) == Accepted("x\u2028y", 3)
    assert answers.get(other) is None


def test_the_table_says_what_was_not_asked_and_whether_files_are_parsed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = Answers(tmp_path / "answers")
    answers.add(CASES[0], Accepted(CASES[0].truth))
    results = judge_all(CASES[:3], answers, prints_all=False)
    print_table(results, [CASES[0].kind], num_missing=2)
    row, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["num_cases"], row["right"]) == (1, 1.0)
    assert last["num_not_asked"] == 2
    assert (last["files_are_parsed"] == "yes") == (not reason_not_parsed())
