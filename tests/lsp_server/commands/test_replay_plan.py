"""Which stretch of a file is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.commands.replay_run import Options, planned, stretch_end

LINES = "".join(f"line {number}\n" for number in range(10))


@given(st.text(alphabet="ab\n", max_size=40), st.integers(0, 39), st.integers(1, 50))
def test_what_is_typed_ends_where_a_line_ends(text: str, start: int, num_chars: int) -> None:
    start = min(start, len(text))
    end = stretch_end(text, start, num_chars)
    assert start <= end <= len(text)
    assert end == len(text) or text[end] == "\n"
    assert end <= start + num_chars or "\n" not in text[start + 1 : end]


@pytest.mark.parametrize(
    ("options", "typed"),
    [
        (Options(num_keystrokes=19), "line 3\nline 4"),
        (Options(num_keystrokes=3), "line 3"),
        (Options(num_keystrokes=1000, start_line=8), "line 8\nline 9\n"),
        (Options(num_keystrokes=13, start_line=0), "line 0\nline 1"),
    ],
)
def test_whole_lines_are_typed_from_the_start_line_on(tmp_path: Path, options: Options, typed: str) -> None:
    file = tmp_path / "lines.txt"
    file.write_text(LINES.replace("\n", "\r\n"), newline="")
    plan = planned(file, options, num_files=1)
    assert plan.text[plan.start : plan.end] == typed
    assert plan.text == LINES


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (Options(), {}),
        (Options(target="other", is_plain=True), {"target": "other", "drafters": []}),
        (Options(multiline="always", deadline_ms=0.0), {"multiline": "always", "deadlineMs": 0.0}),
    ],
)
def test_servers_are_told_what_differs_from_the_users_settings(
    options: Options, settings: dict[str, object]
) -> None:
    assert options.settings == settings
