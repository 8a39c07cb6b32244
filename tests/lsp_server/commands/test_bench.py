"""`slipstream bench exactness`: it sees a difference where there is one."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from completion_engine.config import EngineConfig
from completion_engine.decoding import preparation
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.commands.bench import app
from lsp_server.commands.bench_exactness import ExactnessOptions, ExactnessReport, compare
from lsp_server.commands.local_engine import repository_samples
from lsp_server.commands.terminal import interruptible

SOURCES = Path(__file__).parents[3] / "completion_engine"


def engine_of(folder: Path, **options: object) -> CompletionEngine:
    config = EngineConfig(target=str(folder), prefix_chars=400, suffix_chars=200, **options)  # type: ignore[arg-type]
    return CompletionEngine(config, load_language_model(folder, "cpu", "auto", 512), load_tokenizer(folder))


def test_the_same_target_with_and_without_drafts_does_not_differ(tiny_model_dir: Path) -> None:
    drafted, plain = engine_of(tiny_model_dir), engine_of(tiny_model_dir, drafters=())
    report = compare({"tree": drafted}, plain, repository_samples(SOURCES, 3), ExactnessOptions(12))["tree"]
    assert (report.num_prompts, report.num_differing) == (3, 0)
    assert report.num_tokens >= 3


def test_an_engine_beside_another_has_its_prompts_whatever_passes_cost_now(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "MAX_CONTEXT_TOKENS", 0)
    monkeypatch.setattr(preparation, "affordable_context", lambda _ms: 64)
    first = engine_of(tiny_model_dir)
    monkeypatch.setattr(preparation, "affordable_context", lambda _ms: 0)
    rooms = [engine.preparation.context_space for engine in (first, first.beside(drafters=()))]
    assert rooms == [64, 64]


def test_another_target_is_seen_to_differ(
    tiny_model_dir: Path, tmp_path: Path, write_tiny: Callable[..., Path]
) -> None:
    other = write_tiny(tmp_path / "other", seed=7)
    drafted, plain = engine_of(tiny_model_dir), engine_of(other, drafters=())
    report = compare({"tree": drafted}, plain, repository_samples(SOURCES, 3), ExactnessOptions(12))["tree"]
    assert report.num_differing == 3
    assert len(report.differing) == 3


def test_a_comparison_that_is_ended_tells_what_it_has(tiny_model_dir: Path) -> None:
    def end_after_two(reports: Mapping[str, ExactnessReport]) -> None:
        if reports["tree"].num_prompts == 2:
            signal.raise_signal(signal.SIGTERM)

    drafted, plain = engine_of(tiny_model_dir), engine_of(tiny_model_dir, drafters=())
    with interruptible():
        reports = compare(
            {"tree": drafted},
            plain,
            repository_samples(SOURCES, 3),
            ExactnessOptions(4),
            progress=end_after_two,
        )
    assert (reports["tree"].num_prompts, reports["tree"].num_differing) == (2, 0)


def test_an_engine_is_not_compared_with_itself(tiny_model_dir: Path) -> None:
    plain = engine_of(tiny_model_dir, drafters=())
    with pytest.raises(ValueError, match="with itself"):
        compare({"plain": plain}, plain, [], ExactnessOptions(12))


def test_positions_lie_in_files_that_an_index_may_hold(tmp_path: Path) -> None:
    line = "value = compute(previous, 12)\n"
    for name in ("kept.py", "ignored.py", "node_modules/package.js", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(line * 100)
    (tmp_path / ".gitignore").write_text("ignored.py\nnode_modules\n")
    samples = repository_samples(tmp_path, 20)
    assert {sample.document for sample in samples} == {"kept.py"}
    for sample in samples:
        assert sample.prefix + sample.expected + sample.suffix == line * 100


def test_a_folder_without_code_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No source files"):
        repository_samples(tmp_path, 1)
    (tmp_path / "comments.py").write_text("# nothing but comments\n" * 200)
    with pytest.raises(UserError, match="Too little code"):
        repository_samples(tmp_path, 1)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path / "index"))


@pytest.mark.usefixtures("own_home")
def test_the_comparison_is_a_table_in_words_or_one_line_of_json(tiny_model_dir: Path) -> None:
    options = ["--prompts", "2", "--tokens", "4", "--sources", str(SOURCES), "--target", str(tiny_model_dir)]
    table, line = (CliRunner().invoke(app, ["exactness", *options, *more]) for more in ([], ["--json"]))
    assert (table.exception, table.exit_code) == (line.exception, line.exit_code) == (None, 0)
    assert "pass ms" in table.stdout
    assert "{" not in table.stdout
    found = json.loads(line.stdout)
    assert (found["bench"], found["tokens_asked"]) == ("exactness", 4)
    assert found["pass_ms"]
