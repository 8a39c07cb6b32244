"""Which tokens of a forecast were right, judged by what stands in the document later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from completion_engine.stats import Forecast
from lsp_server.workspace.documents import Document, Edit
from lsp_server.workspace.outcomes import NUM_AWAITED, Outcomes, Token

URI = "file:///a.py"
TOKENS = ("ret", "urn", " x", "\n", "\n", "def")
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)


def forecast(tokens: tuple[str, ...] = TOKENS) -> Forecast:
    ends = tuple(sum(map(len, tokens[: n + 1])) for n in range(len(tokens)))
    return Forecast("".join(tokens), ends, SHARES[: len(tokens)], ends[-1])


def begun(text: str = "def f(x):\n    \nend\n") -> tuple[Document, Outcomes]:
    """A document whose second line somebody is about to write, and a forecast for it."""
    document, outcomes = Document(URI, "python", 1, text), Outcomes()
    outcomes.expect("model", document.snapshot(1, 4), forecast())
    return document, outcomes


def judged(document: Document, outcomes: Outcomes, line: int, column: int) -> list[Token]:
    return [token for _, token in outcomes.judged(document, document.snapshot(line, column))]


@pytest.mark.parametrize(
    ("written", "rights"),
    [
        ("return x\n\n", [True, True, True, True, True]),
        ("return x\n\ndef", [True] * 6),
        ("return x\n    pass", [True, True, True, True, False]),
        ("return y\n", [True, True, False]),
        ("raise\n", [False]),
        ("ret\n", [True, False]),
        ("\n", [False]),
    ],
)
def test_tokens_are_right_up_to_the_first_that_was_not_written(written: str, rights: list[bool]) -> None:
    document, outcomes = begun()
    document.apply(Edit((1, 4), (1, 4), written), "utf-16")
    lines = written.split("\n")
    found = judged(document, outcomes, len(lines), len(lines[-1]))
    assert found == [Token(share, is_right) for share, is_right in zip(SHARES, rights, strict=False)]
    assert judged(document, outcomes, len(lines), len(lines[-1])) == []


def test_nothing_is_judged_while_the_line_is_written() -> None:
    document, outcomes = begun()
    document.apply(Edit((1, 4), (1, 4), "raise"), "utf-16")
    assert judged(document, outcomes, 1, 9) == []
    document.apply(Edit((1, 4), (1, 9), "return x\n"), "utf-16")
    assert [token.is_right for token in judged(document, outcomes, 2, 0)] == [True, True, True, True]


@pytest.mark.parametrize(
    "edits",
    [
        [],  # only the cursor moved
        [Edit((2, 0), (2, 0), "typed")],  # something was written elsewhere
        [Edit((0, 0), (0, 0), "import os\n"), Edit((2, 4), (2, 4), "raise\n")],  # the place is another one
        [Edit((1, 0), (1, 4), "")],  # what stood before is gone
    ],
)
def test_nobody_is_judged_by_what_was_not_written_there(edits: list[Edit]) -> None:
    document, outcomes = begun()
    for edit in edits:
        document.apply(edit, "utf-16")
    line = len(document.lines) - 2
    assert judged(document, outcomes, line, len(document.content(line))) == []


def test_a_forecast_that_nobody_weighed_is_not_judged() -> None:
    document, outcomes = Document(URI, "python", 1, "\n"), Outcomes()
    outcomes.expect("model", document.snapshot(0, 0), replace(forecast(), is_weighed=False))
    document.apply(Edit((0, 0), (0, 0), "return x\n"), "utf-16")
    assert judged(document, outcomes, 1, 0) == []


def test_typing_along_is_one_forecast() -> None:
    document, outcomes = begun()
    for at, letter in enumerate("return x"):
        document.apply(Edit((1, 4 + at), (1, 4 + at), letter), "utf-16")
        rest = forecast((("return x"[at + 1 :]) or "\n", "\n"))
        outcomes.expect("model", document.snapshot(1, 5 + at), rest)
    document.apply(Edit((1, 12), (1, 12), "\n"), "utf-16")
    assert len(judged(document, outcomes, 2, 0)) == 4


def test_what_waits_is_bounded_and_forgotten_with_its_document() -> None:
    document, outcomes = begun("x\n" * 200)
    for line in range(3 * NUM_AWAITED):
        outcomes.expect("model", document.snapshot(line, 1), forecast())
    document.apply(Edit((0, 1), (0, 1), "y\n"), "utf-16")
    outcomes.forget(URI)
    assert judged(document, outcomes, 190, 0) == []
