"""The ends of the units of a text: `|` in the generated text marks each one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.units import MIN_CHARS, longest_likely
from completion_engine.text_window import CursorContext
from tests.completion_engine.cutting.test_invariants import any_text, places

At = Callable[..., CursorContext]

CASES: list[tuple[str, str, str]] = [
    ("python", "    ‸", "return sum|(readings|)| / len|(readings|)|\n"),
    ("python", "    ret‸", "urn sum|(readings|)|\n"),
    ("python", "if a:\n    ‸", "return|\n"),
    ("python", "    ‸", 'raise ValueError|("No readings"|, a|)|\n    x'),
    ("python", "raise ValueError('No‸", " readings|'|)|\n"),
    ("typescript", "run('serve -ub ‸", "1024| -b| 1024| --port| of PORT|'|, 'a b'|)|;|\n"),
    ("python", "x = ‸", "1.5| + foo|.bar|(a|, b|=3|)|[1|]| if x| else y|\n"),
    ("python", "    ‸", '"""Return the sum.|\n\n    Args:|\n        one'),
    ("python", "    ‸", "# Compute| the sum|\n    x| = 1|  # the first|\n"),
    ("python", "‸", "def area|(width|, height|)|:|\n    return width| *"),
    ("python", "f(\n    ‸", "width|=2|,|\n    height|=3"),
    ("typescript", "  ‸", "const items| = rows|.map|((one|)| => one|.value| ?? `a ${b.c} d`|)|;|\n"),
    ("typescript", "  ‸", "if (a|)| {|\n    return await load|('x'|)|;|\n"),
    ("typescript", "const a = ‸", "new Map|<string|, number|>()|;|\n"),
    ("go", "\t‸", 'if err| != nil| {|\n\t\treturn nil|, fmt|.Errorf|("no %w"|, err|)|\n\t}|\n'),
    ("go", "\t‸", "for _|, one| := range rows| {|\n"),
    ("rust", "    ‸", "let mut total|: Vec|<u8|> = Vec|::new()|;|\n    for x| in &self.items| {|\n"),
    ("rust", "    ‸", "match self|.kind| {|\n        Kind|::One| => 'x',|\n"),
    ("c", "  ‸", 'for (int| i| = 0|; i| < n|; i|++)| {|\n    printf|("%d\\n"|, i|)|;|\n'),
    ("c", "‸", "static int| area|(int| width|, int| height|)|\n{\n"),
    ("markdown", "- ‸", "Install| the package|,| then| run| it.| See| [docs|](http|://a.b|).\n"),
    ("markdown", "‸", "## Usage|\n\nRun| it as"),
]


@pytest.mark.parametrize(("language", "document", "marked"), CASES)
def test_a_text_may_end_after_a_line_an_item_or_a_word(
    at: At, language: str, document: str, marked: str
) -> None:
    text = marked.replace("|", "")
    found, start = [], 0
    for unit in Cutter(at(language, document)).units(text):
        found.append(text[start : unit.num_chars])
        start = unit.num_chars
    assert "|".join([*found, text[start:]]) == marked


@pytest.mark.parametrize(
    ("confidences", "shown"),
    [
        ([0.9, 0.9, 0.9, 0.9], "total(values)"),
        ([0.9, 0.9, 0.2, 0.9], "total"),
        ([0.9, 0.2, 0.9, 0.9], "total"),
        ([0.2, 0.9, 0.9, 0.9], ""),
    ],
)
def test_the_longest_unit_that_is_likely_enough_is_shown(
    at: At, confidences: list[float], shown: str
) -> None:
    tokens = ["total", "(", "values", ")\n"]
    ends = [sum(map(len, tokens[: number + 1])) for number in range(len(tokens))]
    units = Cutter(at("python", "x = ‸")).units("".join(tokens))
    assert "".join(tokens)[: longest_likely(units, ends, confidences, 0.4)] == shown


@settings(max_examples=100, deadline=None)
@given(places, any_text)
@example(CursorContext("", "", "python"), "\n\n//)\"'")
def test_a_longer_text_has_the_same_ends(cursor: CursorContext, generated: str) -> None:
    rules = Cutter(cursor)
    ends = [unit.num_chars for unit in rules.units(generated)]
    assert ends == sorted(set(ends))
    assert all(len("".join(generated[:end].split())) >= MIN_CHARS for end in ends)
    for sure in range(0, len(generated), 3):  # a regular expression is one only with its end
        shorter = [unit.num_chars for unit in rules.units(generated[: sure + 40])]
        assert [end for end in shorter if end < sure] == [end for end in ends if end < sure]
