"""Every name that an answer carries has a text for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from completion_engine.request import SOURCES, STAGES
from lsp_server.protocol import reasons

ROOT = Path(__file__).parents[3]
# The calls that take the name of a rule, and where it stands among their arguments.
RULE_AT = {"empty": 0, "unknown": 0, "Finish": 2, "Stop": 0, "Fire": 2}
RULE_KEYWORDS = {"rule", "outcome"}
# The functions that return a rule.
RULE_RETURNED_BY = {"_ask", "refusal"}


def rules_in(tree: ast.AST) -> Iterator[str]:
    """The rules that code names, as far as they are written out."""
    for node in ast.walk(tree):
        named: list[ast.expr] = []
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            named += [keyword.value for keyword in node.keywords if keyword.arg in RULE_KEYWORDS]
            if name in RULE_AT:
                named += node.args[RULE_AT[name] : RULE_AT[name] + 1]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in RULE_RETURNED_BY:
            named += [line.value for line in ast.walk(node) if isinstance(line, ast.Return) and line.value]
        for value in named:
            for choice in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                if isinstance(choice, ast.Constant) and isinstance(choice.value, str) and choice.value:
                    yield choice.value


@pytest.mark.parametrize("package", ["completion_engine", "lsp_server"])
def test_every_rule_in_the_code_has_a_sentence(package: str) -> None:
    found = {
        rule
        for path in (ROOT / package).rglob("*.py")
        for rule in rules_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert len(found) > 8
    assert found <= {*reasons.REASONS}


def test_every_sentence_is_short_and_whole() -> None:
    sentences = [*reasons.REASONS.values(), *reasons.FINISH_REASONS.values(), *reasons.STATES.values()]
    for sentence in sentences:
        assert sentence[0].isupper(), sentence
        assert sentence.endswith("."), sentence
        assert len(sentence) <= 100, sentence


def test_every_source_and_stage_has_a_text() -> None:
    assert {*SOURCES, "target", "selected"} == {*reasons.SOURCES}
    assert {*STAGES} == {*reasons.STAGES}


def test_an_answer_has_the_texts_of_the_rules_that_it_names() -> None:
    assert reasons.texts(["blank", "no rule"])["rules"] == {"blank": reasons.REASONS["blank"]}
