"""Redaction lets at most 2 % of the corpus through and takes out at most 0.1 % of ordinary code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quality.redaction import corpus, false_findings, ordinary_lines

PAGE = Path(__file__).parents[2] / "docs/privacy.md"
COUNTED = ("None", "One", "Two", "Three", "Four", "Five", "Six", "Seven")


def test_hardly_a_secret_leaks() -> None:
    examples = list(corpus())
    assert len(examples) >= 250
    forms = {example.form for example in examples}
    assert len(forms) >= 40
    leaked = [f"{example.form}: {example.text}" for example in examples if example.leaks()]
    assert len(leaked) <= 0.02 * len(examples), "\n".join(leaked)
    said = f"{COUNTED[len(leaked)]} of {len(examples)} invented secrets in {len(forms)} forms pass"
    assert said in PAGE.read_text("utf-8")


@pytest.mark.parametrize("seed", [0, 1])
def test_ordinary_code_stays(seed: int) -> None:
    lines = ordinary_lines(2000, seed)
    found = false_findings(lines)
    assert len(found) <= 0.001 * len(lines), found
