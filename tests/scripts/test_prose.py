"""The check of prose finds dialect and long sentences in all texts for people, and nothing in code."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import prose

LONG = " ".join(["word"] * (prose.MAX_WORDS + 1)) + "."
CASES = {
    "docstring.py": ('"""What comes is read."""\n', 1),
    "comment.py": ("x = 1\n# Rows behind the cursor.\n", 1),
    "two_lines.py": ("# Rows after the cursor, lest\n# they move.\n", 1),
    "apart.py": ("a = 1  # rows\nb = 2  # of a block\n", 1),
    "reason.py": ("import a  # noqa: PLC0415 - lest it waits\n", 1),
    "message.py": ('raise ValueError("Nobody reads it.")\n', 1),
    "long.py": (f'"""{LONG}"""\n', 1),
    "code.py": ('"""Uses `behind` and `lest`."""\nnobody = "behind"\n', 0),
    "page.md": ("Rows behind the cursor.\n\n```\nlest nobody\n```\n\nUse `lest`.\n", 1),
    "table.md": ("| key | rows behind it |\n", 1),
    "script.ts": ("// Rows behind the cursor.\nconst nobody = 1;\n", 1),
    "script.lua": ("-- Rows behind the cursor.\nlocal nobody = 1\n", 1),
}


@pytest.mark.parametrize("name", CASES)
def test_findings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, num_findings = CASES[name]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    found = list(prose.findings(file, prose.load_rules()))
    assert len(found) == num_findings, [str(each) for each in found]
