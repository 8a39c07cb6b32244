"""Length of a suggestion: shorter before a low-confidence name, and never longer than without that."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from completion_engine.cutting.cutter import Cutter
from completion_engine.decoding.low_confidence_names import names_in, num_confident_chars
from completion_engine.request import Forecast
from completion_engine.text_window import CursorContext


def rules_at(prefix: str, language: str = "python") -> Cutter:
    return Cutter(CursorContext(prefix, "\n", language))


def forecast(tokens: list[str], share: float = 0.9) -> Forecast:
    ends = tuple(sum(map(len, tokens[: n + 1])) for n in range(len(tokens)))
    return Forecast("".join(tokens), ends, (share,) * len(tokens), ends[-1])


@pytest.mark.parametrize(
    ("language", "prefix", "text", "expected"),
    [
        ("python", "", "return first.second(third)\n", ["first", "second", "third"]),
        ("python", "retu", "rned = na", ["returned"]),
        ("python", "", "x = ab\n", []),
        ("python", "", "import sys, json\n", []),
        ("python", "", "'name' # other name\n", []),
        ("python", "# a ", "comment goes on\nname = 1", ["name"]),
        ("python", '"a ', 'string" + name\n', ["name"]),
        ("python", "", "one = 1 # two\nthree = 3\n", ["one", "three"]),
        ("typescript", "", "const first = `a ${second} b`;\n", ["first", "second"]),
        ("typescript", "", "$first.map(second)\n", ["$first", "map", "second"]),
        ("python", "", "number = 0xABCDEF + 12e4567\n", ["number"]),
    ],
)
def test_names_are_found_whole_and_in_code(
    language: str, prefix: str, text: str, expected: list[str]
) -> None:
    found = names_in(rules_at(prefix, language).around, text, is_ended=False)
    assert [name.text for name in found] == expected


def test_a_name_at_the_end_counts_where_the_text_is_ended() -> None:
    site = rules_at("").around
    assert [name.text for name in names_in(site, "x = name", is_ended=True)] == ["name"]
    assert not list(names_in(site, "x = name", is_ended=False))


@pytest.mark.parametrize(
    ("tokens", "known", "shown"),
    [
        (["ca", "ll", "(", "fir", "st", ")", "\n"], {"call", "first"}, "call(first)\n"),
        (["ca", "ll", "(", "fir", "st", ")", "\n"], {"call"}, "call"),
        (["ca", "ll", "(", "fir", "st", ")", "\n"], {"first"}, ""),
        (["ca", "ll", "(", "'", "fir", "st", "'", ")", "\n"], {"call"}, "call('first')\n"),
    ],
)
def test_a_text_ends_before_a_name_that_nobody_knows(tokens: list[str], known: set[str], shown: str) -> None:
    rules, written = rules_at("x = "), forecast(tokens, 0.95)
    num_chars = num_confident_chars(rules, written, 0.6, is_known=known.__contains__)
    assert written.text[:num_chars] == shown
    assert num_confident_chars(rules, written, 0.6) == len(written.text)


def test_a_model_that_is_sure_enough_is_believed() -> None:
    written = forecast(["call", "(", ")", "\n"], 0.9999)
    assert num_confident_chars(rules_at("x = "), written, 0.8, is_known=lambda _: False) == len(written.text)


@given(
    st.lists(st.sampled_from(["name", " ", "(", ")", "\n", "'", "#", ".", "other"]), min_size=1, max_size=20),
    st.floats(0.3, 0.9999),
    st.floats(0.05, 0.95),
)
@example(["name", *" " * 5, "(", "\n", *["name"] * 5], 0.875, 0.890625)
def test_doubts_never_show_more(tokens: list[str], share: float, eagerness: float) -> None:
    rules, written = rules_at("x = "), forecast(tokens, share)
    doubted = num_confident_chars(rules, written, eagerness, is_known=lambda _: False)
    assert doubted <= num_confident_chars(rules, written, eagerness) <= len(written.text)
