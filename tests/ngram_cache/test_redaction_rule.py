"""Where a rule finds a secret, to the character, and what of a text is left without it."""

from __future__ import annotations

import re

import pytest

from ngram_cache.redaction.rule import Finding, Rule, Shape, Span, find, lowered, without


def rule(ahead: str = r"(?P<bare>\w+)", behind: str = "", guard: str = "", trigger: str = "pw=") -> Rule:
    return Rule(trigger, (shape(ahead, behind),), re.compile(guard) if guard else None)


def shape(ahead: str = "", behind: str = "") -> Shape:
    return Shape("a shape", re.compile(ahead) if ahead else None, re.compile(behind) if behind else None)


def found(text: str, *rules: Rule) -> list[Span]:
    return list(find(text, lowered(text), rules))


@pytest.mark.parametrize(
    ("text", "small"), [("AbZ[@", "abz[@"), ("ÄAbZ[@", "Äabz[@"), ("İX", "İx"), ("", "")]
)
def test_small_letters_stand_where_the_capitals_were(text: str, small: str) -> None:
    assert lowered(text) == small


@pytest.mark.parametrize(
    ("text", "rules", "spans"),
    [
        pytest.param("PW=Tulip", [rule()], [(3, 8)], id="at the beginning"),
        pytest.param("pw=a pw=- pw=b", [rule()], [(3, 4), (13, 14)], id="all of them"),
        pytest.param("no", [rule()], [], id="no trigger"),
        pytest.param(
            "pw=apw=b pw=c", [rule(r"(?P<bare>[\w=]+)")], [(3, 8), (12, 13)], id="not within a secret"
        ),
        pytest.param(
            "a pw=b", [rule(), rule(r"(?P<bare>\w)", trigger="a ")], [(5, 6), (2, 3)], id="two rules"
        ),
        pytest.param("pw=a pw=b", [rule(guard="b")], [(8, 9)], id="where the guard holds"),
        pytest.param("aapw=", [rule("", r"(?P<bare>a+)\Z")], [(0, 2)], id="before the trigger"),
        pytest.param("a" * 9 + "pw=", [rule("", r"(?P<bare>a+)\Z")], [(0, 9)], id="all before the trigger"),
        pytest.param(
            "a" * 170 + "pw=", [rule("", r"(?P<bare>a+)\Z")], [(10, 170)], id="no more than 160 before it"
        ),
        pytest.param("x=pw=b", [rule(behind=r"y=\Z")], [], id="what must stand before does not"),
        pytest.param("y=pw=-", [rule(behind=r"y=\Z")], [], id="what must stand behind does not"),
        pytest.param("y=pw=b", [rule(behind=r"y=\Z")], [(5, 6)], id="both do"),
        pytest.param("y=pw=b", [rule("b", r"(?P<bare>y)=\Z")], [(0, 1)], id="the text before names it"),
        pytest.param("y=pw=b", [rule("(?P<bare>b)", r"(?P<bare>y)=\Z")], [(5, 6)], id="both name one"),
        pytest.param("pw=b", [rule("b")], [], id="none is named"),
        pytest.param(
            "pw=aapw=aapw=aa", [rule("(?P<bare>a)")], [(3, 4), (8, 9), (13, 14)], id="behind a secret"
        ),
        pytest.param(
            "aaaaaa", [rule("(?P<bare>a)", trigger="aa")], [(2, 3), (5, 6)], id="in its own trigger"
        ),
        pytest.param(
            "pw=" + "a" * 199 + "-b", [rule()], [(3, 202)], id="one that is not longer than its rule"
        ),
        pytest.param("- pw=" + "a" * 200 + "-b c", [rule()], [(5, 207)], id="one that is"),
        pytest.param("pw=" + "a" * 200 + "-b'c", [rule()], [(3, 205)], id="one that is, up to a quote"),
    ],
)
def test_where_secrets_stand(text: str, rules: list[Rule], spans: list[Span]) -> None:
    assert found(text, *rules) == spans


def test_of_shapes_the_first_that_holds_is_taken() -> None:
    shapes = (shape("-"), shape("", "-"), shape("a"), shape("(?P<bare>ab)"), shape("(?P<bare>abc)"))
    assert found("pw=abc", Rule("pw=", shapes)) == [(3, 5)]


def test_a_judge_is_shown_the_value_and_what_else_has_a_name_until_one_is_a_secret() -> None:
    seen: list[Finding] = []

    def judge(finding: Finding) -> bool:
        seen.append(finding)
        return len(seen) == 2

    shapes = (
        shape("(?P<more>z)?(?P<quoted>)(?P<bare>a)"),
        shape("(?P<quoted>ab)(?P<bare>c)"),
        shape("(?P<bare>abc)"),
    )
    text = "- pw=abc"
    assert found(text, Rule("pw=", shapes, judge=judge)) == [(5, 7)]
    assert seen == [
        Finding(text, (2, 5), (5, 6), False, {"more": "", "quoted": "", "bare": "a"}),
        Finding(text, (2, 5), (5, 7), True, {"quoted": "ab", "bare": "c"}),
    ]
    assert [finding.value for finding in seen] == ["a", "ab"]


def test_a_judge_is_shown_what_stands_before_a_trigger() -> None:
    seen: list[Finding] = []

    def judge(finding: Finding) -> bool:
        seen.append(finding)
        return False

    assert found("abpw=", Rule("pw=", (shape("", r"(?P<bare>b)\Z"),), judge=judge)) == []
    assert seen == [Finding("abpw=", (2, 5), (1, 2), False, {"bare": "b"})]


@pytest.mark.parametrize(
    ("spans", "left"),
    [
        ([], "ab\ncd\nef"),
        ([(0, 1)], "b\ncd\nef"),
        ([(7, 8)], "ab\ncd\ne"),
        ([(0, 8)], "\n\n"),
        ([(4, 5), (0, 2)], "\nc\nef"),
        ([(0, 4), (1, 2)], "\nd\nef"),
        ([(0, 4), (1, 5)], "\n\nef"),
        ([(0, 4), (0, 4)], "\nd\nef"),
        ([(0, 2), (2, 4)], "\nd\nef"),
        ([(0, 4), (1, 4), (3, 7)], "\n\nf"),
    ],
)
def test_a_text_without_spans_keeps_its_lines(spans: list[Span], left: str) -> None:
    assert without("ab\ncd\nef", spans) == left
