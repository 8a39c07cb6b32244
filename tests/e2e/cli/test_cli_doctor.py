"""`slipstream doctor`: the state of the machine, and advice for problems."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from completion_engine.cpu.kernels import kernel_cache
from lsp_server.commands.machine_checks import Check, guarded, kernel_storage_check
from tests.calls import Call

REPOSITORY_ROOT = Path(__file__).parents[3]


def by_name(answer: Any) -> dict[str, Any]:
    return {check["name"]: check for check in answer["checks"]}


@pytest.fixture
def in_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(repository)
    return repository


def test_a_machine_with_a_model_is_measured(run_cli: Call, in_repository: Path) -> None:
    done = run_cli("doctor", "--json")
    checks = by_name(done.json())
    assert done.code == 0
    assert checks["model"]["state"] == "ok"
    assert any(name.startswith("target pass") and "ms" in checks[name]["found"] for name in checks)
    assert checks["index"]["found"].endswith(f"slipstream index {in_repository}")
    assert checks["cores"]["state"] == checks["gpu"]["state"] == "ok"  # facts, not faults
    assert [check["name"] for check in done.json()["checks"]][:2] == ["model", "speed"]
    assert checks["speed"]["found"].startswith(("95 % of suggestions take at most ", "not measured"))
    assert checks["target"]["found"].endswith(", by the settings")
    assert checks["kernel"]["found"].endswith(", with weights in bytes")
    assert checks["prompt token"]["found"].endswith(" ms")
    assert "config.toml: " in checks["settings"]["found"]


def test_whatever_is_not_ok_comes_with_advice(run_cli: Call, in_repository: Path) -> None:
    assert in_repository.exists()
    for check in run_cli("doctor", "--json").json()["checks"]:
        assert check["found"]
        assert bool(check["advice"]) == (check["state"] != "ok"), check


def test_widths_of_passes_are_details(run_cli: Call, in_repository: Path) -> None:
    assert in_repository.exists()
    assert "target pass" not in run_cli("doctor").out
    assert "target pass" in run_cli("doctor", "--verbose").out


def test_an_index_is_seen(run_cli: Call, in_repository: Path) -> None:
    run_cli("index", in_repository)
    assert " MB for " in by_name(run_cli("doctor", "--json").json())["index"]["found"]


def test_a_missing_model_says_how_to_get_it(
    run_cli: Call, in_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTREAM_MODEL_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(in_repository))
    done = run_cli("doctor", "--json")
    assert done.code == 1
    checks = by_name(done.json())
    assert checks["target"]["found"].startswith("auto: qwen2.5-coder-0.5b ")
    assert checks["kernel"]["found"].endswith(", with weights in bytes")
    assert checks["next larger target"]["found"].startswith("qwen2.5-coder-1.5b needs ")
    assert checks["model"] == {
        "name": "model",
        "state": "missing",
        "found": "qwen2.5-coder-0.5b is not in the store",
        "advice": "Run: slipstream models pull qwen2.5-coder-0.5b",
    }


def test_problems_in_the_settings_are_rows(run_cli: Call, in_repository: Path) -> None:
    (in_repository / ".slipstream.toml").write_text("maxTokns = 4\n")
    table = run_cli("doctor").out
    assert "there is no setting maxTokns. Did you mean maxTokens?" in " ".join(table.split())


def test_a_folder_of_kernels_that_is_not_safe_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "slipstream" / "kernels" / "version"
    monkeypatch.setattr(kernel_cache, "KERNEL_FOLDER", folder)
    assert kernel_storage_check().state == "ok"
    folder.symlink_to(folder.rename(tmp_path / "elsewhere"))
    check = kernel_storage_check()
    assert (check.state, check.found) == ("slow", f"not stored: {folder} is a link")
    assert check.advice


@pytest.mark.parametrize(
    "failure",
    [
        "ModuleNotFoundError('No module named torch')",
        "ImportError('libtorch_cpu.so: undefined symbol')",
        "OSError('libcudart.so.13: cannot open shared object file')",
        "RuntimeError('made for another numpy')",
    ],
)
def test_a_library_that_does_not_load_is_a_row_among_the_others(
    tmp_path: Path, in_repository: Path, failure: str
) -> None:
    (tmp_path / "broken" / "torch").mkdir(parents=True)
    (tmp_path / "broken" / "torch" / "__init__.py").write_text(f"raise {failure}\n")
    places = os.pathsep.join([str(tmp_path / "broken"), str(REPOSITORY_ROOT)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from lsp_server.cli import main; main()", "doctor", "--json"],
        cwd=in_repository,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    checks = by_name(json.loads(done.stdout))
    assert checks["torch"]["state"] == "missing"
    assert failure.split("'")[1] in checks["torch"]["found"]
    assert {"processor", "memory", "disk for models", "shared by windows", "settings"} <= {*checks}
    assert checks["model"]["state"] == "missing"


def test_what_was_found_before_a_failure_is_told_with_it() -> None:
    def look() -> Iterator[Check]:
        yield Check("first", "ok", "there")
        raise ZeroDivisionError("by\nzero")

    first, failed = guarded("second", look)
    assert (first.name, failed.name, failed.state) == ("first", "second", "missing")
    assert failed.found == "fails: ZeroDivisionError: by zero"
