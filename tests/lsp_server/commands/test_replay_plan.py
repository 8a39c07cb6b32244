"""Which stretch of a file is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.errors import UserError
from lsp_server.commands.replay import ReplayOptions, planned, settings_given
from lsp_server.scripted_typing.typing_plan import stretch_end

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
        (ReplayOptions(num_keystrokes=19), "line 3\nline 4"),
        (ReplayOptions(num_keystrokes=3), "line 3"),
        (ReplayOptions(num_keystrokes=1000, start_line=8), "line 8\nline 9\n"),
        (ReplayOptions(num_keystrokes=13, start_line=0), "line 0\nline 1"),
    ],
)
def test_whole_lines_are_typed_from_the_start_line_on(
    tmp_path: Path, options: ReplayOptions, typed: str
) -> None:
    file = tmp_path / "lines.txt"
    file.write_text(LINES.replace("\n", "\r\n"), newline="")
    plan = planned(file, options, num_files=1)
    assert plan.text[plan.start : plan.end] == typed
    assert plan.text == LINES


@pytest.fixture
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slipstream").mkdir()
    (tmp_path / "slipstream" / "config.toml").write_text('target = "own"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize(
    ("pairs", "target", "settings"),
    [
        ([], "", {"target": "own"}),
        (["drafters=[]"], "other", {"target": "other", "drafters": []}),
        (["multiline=always", "deadlineMs=0"], "", {"target": "own", "multiline": "always", "deadlineMs": 0}),
        (["remote.url=https://team.example"], "", {"target": "own", "remote.url": "https://team.example"}),
    ],
)
def test_servers_receive_what_differs_from_the_users_settings(
    pairs: list[str], target: str, settings: dict[str, object]
) -> None:
    assert settings_given(pairs, target) == {"remote.url": "", **settings}


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize(
    ("pair", "named"), [("deadlinMs=0", "deadlineMs"), ("multiline=sometimes", "multiline")]
)
def test_a_setting_that_does_not_exist_is_named(pair: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        settings_given([pair], "")
