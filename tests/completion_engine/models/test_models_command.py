"""`slipstream models` in a terminal and in a pipe."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from completion_engine.errors import SlipstreamError, UserError
from completion_engine.models import CATALOGUE
from lsp_server.commands.models import app


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLIPSTREAM_MODEL_DIR", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are there; that they are compiled beside a pull is tested in test_warmup."""
    monkeypatch.setattr("completion_engine.loading.warmup.are_compiled", lambda _: True)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, SlipstreamError):
        raise result.exception
    return result


@pytest.mark.parametrize("arguments", [[], ["list"]], ids=["no argument", "list"])
@pytest.mark.usefixtures("root")
def test_list_shows_every_model_with_its_licence(arguments: list[str]) -> None:
    lines = [line for line in run(*arguments).stdout.splitlines() if "Apache-2.0" in line]
    assert [line.split()[0] for line in lines] == list(CATALOGUE)
    assert all(line.split()[1] == "-" for line in lines)


def test_list_marks_what_is_there(root: Path) -> None:
    file = root / "smollm2-135m" / CATALOGUE["smollm2-135m"].file_name
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(20_000_000))
    (line,) = [line for line in run("list").stdout.splitlines() if line.startswith("smollm2")]
    assert line.split()[1:6] == ["fetched", "0.10", "GB", "0.02", "GB"]


@pytest.mark.usefixtures("root")
def test_what_is_not_there_is_said_with_what_to_do() -> None:
    with pytest.raises(UserError) as error:
        run("verify", "smollm2-135m")
    assert error.value.advice == "Run: slipstream models pull smollm2-135m"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("command", ["verify", "pull", "remove"])
def test_an_unknown_id_lists_what_exists(command: str) -> None:
    with pytest.raises(UserError, match="no model called 'qwen'") as error:
        run(command, "qwen")
    assert "smollm2-135m" in error.value.advice


def test_pull_of_a_file_tells_its_steps_and_where_it_is(root: Path, tmp_path: Path, tiny_gguf: Path) -> None:
    file = Path(shutil.copy(tiny_gguf, tmp_path / "tiny.gguf"))
    result = run("pull", str(file))
    key = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]
    assert result.stdout == f"{file} is ready: {root / 'local' / f'tiny-{key}' / 'prepared'}\n"
    lines = result.stderr.splitlines()
    assert lines[0] == "preparing tiny.gguf 0 %"
    assert lines[-1] == "preparing tiny.gguf 100 %"
    assert len(lines) == len(set(lines)), "a log does not repeat itself"
