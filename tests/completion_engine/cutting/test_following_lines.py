"""Texts beside existing code: a line of its own, a repeat, a statement that goes on, a number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Accepted = Callable[[str, str, str], str]

ROWS: list[tuple[str, str, str, str]] = [
    # A line of its own needs a line end, so nothing is shown before code on the cursor's line.
    ("shellscript", "‸set -euo pipefail\n", "#!/bin/bash", "set -euo pipefail\n"),
    ("python", "‸import os\n", "# Copyright 2024\n", "import os\n"),
    # A repeat is one whatever separator it has.
    ("toml", 'a = [\n  "x",\n  ‸\n  "pandas"\n]\n', '"pandas",\n', 'a = [\n  "x",\n  \n  "pandas"\n]\n'),
    # A statement that the next line goes on with is not ended, and keeps its mark.
    (
        "sql",
        "UPDATE a\nSET b = 1\n‸\nRETURNING id;\n",
        "AND c = 1;\n",
        "UPDATE a\nSET b = 1\nAND c = 1\nRETURNING id;\n",
    ),
    (
        "shellscript",
        "docker run \\\n  --name web \\\n  ‸\n  -p 80:80 \\\n  nginx\n",
        "--rm \\\n  nginx:latest\n",
        "docker run \\\n  --name web \\\n  --rm \\\n  -p 80:80 \\\n  nginx\n",
    ),
    # Nothing is glued to what stands after the cursor.
    ("python", "print(scale(‸10, 4))\n", "2", "print(scale(10, 4))\n"),
    # A line that needs the one below has it.
    (
        "python",
        "@app.route('/‸')\ndef users():\n    pass\n",
        "users')\ndef index():\n    pass\n",
        "@app.route('/users')\ndef users():\n    pass\n",
    ),
    # Prose ends at a word, after the first round of a loop.
    ("markdown", "‸\n", "the boats were moving. " * 6, "the boats were moving.\n"),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), ROWS)
def test_what_stands_there_stays_as_it_is(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after
