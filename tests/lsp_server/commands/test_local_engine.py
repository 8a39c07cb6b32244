"""The commands index by the rules that an editor would obey, also in a subfolder."""

from __future__ import annotations

from pathlib import Path

import pytest

from completion_engine.errors import UserError
from lsp_server.commands.local_engine import indexed, settings_for
from ngram_cache.repository import Repository


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A subfolder of a repository with two files."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/slipstream").mkdir(parents=True)
    (tmp_path / "repository/.git").mkdir(parents=True)
    (tmp_path / "repository/.git/HEAD").touch()
    inner = tmp_path / "repository" / "inner"
    inner.mkdir()
    for name in ("a.py", "b.py"):
        (inner / name).write_text("x = 1\n")
    return inner


@pytest.mark.parametrize(
    ("name", "text", "paths"),
    [
        ("repository/inner/.slipstream.toml", "", ["a.py", "b.py"]),
        ("repository/.gitignore", "b.py\n", ["a.py"]),
        ("repository/.slipstream.toml", '[index]\nexclude = ["/inner/b.py", "*.toml"]\n', ["a.py"]),
        ("repository/inner/.slipstream.toml", '[index]\nexclude = ["b.py"]\n', ["a.py"]),
        ("config/slipstream/config.toml", '[index]\nexclude = ["b.py"]\n', ["a.py"]),
        ("repository/.slipstream.toml", '[index]\nexclude = ["inner/"]\n', []),
    ],
)
def test_rules_above_a_subfolder_hold(
    inner: Path, tmp_path: Path, name: str, text: str, paths: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    _, options = indexed(inner)
    files = [file.path for file in Repository(inner, options).walk().files]
    assert sorted(path for path in files if path.endswith(".py")) == paths


@pytest.mark.parametrize(
    "name",
    ["config/slipstream/config.toml", "repository/.slipstream.toml", "repository/inner/.slipstream.toml"],
)
@pytest.mark.parametrize("text", ["[index]\nenabled = false\n", "index = ", "[index]\nexclude = 1\n"])
def test_what_is_switched_off_or_cannot_be_read_is_not_indexed(
    inner: Path, tmp_path: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match="not indexed"):
        indexed(inner)
    said = capsys.readouterr().err
    assert ("can be read" in said) == (text != "[index]\nenabled = false\n")
    assert all(pattern == "*" for pattern in settings_for(inner).settings.index.exclude)
