"""`slipstream replay` through a real server: every key is answered, and what is reported adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.calls import Call


def check_sums(report: dict[str, Any]) -> None:
    """The parts of a report make up its wholes."""
    counts = {name: report[f"num_{name}"] for name in ("shown", "empty", "cancelled", "failed")}
    latency = report["latency_ms"]
    kinds = ("typed through", "accepted draft", "decode", "no verification")
    assert counts["failed"] == 0
    assert report["num_requests"] == sum(counts.values())
    assert latency["warm"]["count"] + latency["first"]["count"] == counts["shown"] + counts["empty"]
    assert sum(latency[kind]["count"] for kind in kinds) == latency["warm"]["count"]
    assert report["cancel_ms"]["count"] == counts["cancelled"]
    assert 0 <= report["num_chars_not_typed"] <= report["num_chars"]
    assert report["tokens"]["num_accepted"] == sum(report["tokens"]["accepted_by_source"].values())
    assert latency["warm"]["p50"] <= latency["warm"]["p99"] <= latency["warm"]["max"]


def test_as_fast_as_answers_come_nothing_is_cancelled(run_cli: Call, repository: Path) -> None:
    report = run_cli("replay", repository / "shapes.py", "--limit-keystrokes", 60, "--json").json()
    check_sums(report)
    assert report["num_cancelled"] == 0
    assert report["num_requests"] >= 40
    assert report["latency_ms"]["first"]["count"] == 1
    assert report["tokens"]["share_cached"] > 0.5


def test_at_typing_speed_what_is_late_is_cancelled_and_answered(run_cli: Call, repository: Path) -> None:
    arguments = ("--limit-keystrokes", 60, "--pace", 2, "--json")
    report = run_cli("replay", repository / "shapes.py", *arguments).json()
    check_sums(report)
    assert report["num_cancelled"] > 0
    assert report["cancel_ms"]["max"] < 10_000


def test_several_files_share_the_keystrokes(
    run_cli: Call,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no temporary folder stays."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    files = (repository / "shapes.py", repository / "sizes.py")
    arguments = ("--limit-keystrokes", 40, "--start-line", 0, "--json")
    report = run_cli("replay", *files, *arguments).json()
    check_sums(report)
    assert report["num_chars"] <= 40
    assert report["latency_ms"]["first"]["count"] == 2
    assert report["files"] == {str(repository): 2}
    assert list(temporary.glob("slipstream-*")) == []


def test_plain_decoding_drafts_nothing(run_cli: Call, repository: Path) -> None:
    file = repository / "shapes.py"
    report = run_cli("replay", file, "--limit-keystrokes", 20, "--set", "drafters=[]", "--json").json()
    check_sums(report)
    assert report["tokens"]["num_drafted"] == 0
    assert report["latency_ms"]["accepted draft"]["count"] == 0


def test_people_get_tables_and_no_json(run_cli: Call, repository: Path) -> None:
    done = run_cli("replay", repository / "shapes.py", "--limit-keystrokes", 30)
    assert "tokens per verification" in done.out
    assert "Milliseconds from key to answer" in done.out
    assert "{" not in done.out
    assert "_" not in done.out


def test_a_setting_that_does_not_exist_is_told_before_anything_is_typed(
    run_cli: Call, repository: Path
) -> None:
    done = run_cli("replay", repository / "shapes.py", "--set", "deadlinMs=0", "--json")
    assert (done.code, done.out) == (1, "")
    assert "deadlineMs" in done.err


def test_a_stretch_with_nothing_to_type_is_refused(run_cli: Call, repository: Path) -> None:
    done = run_cli("replay", repository / "shapes.py", "--start-line", 900, "--json")
    assert (done.code, done.out) == (1, "")
    assert "nothing to type" in done.err


def test_a_target_that_cannot_be_loaded_is_told_in_the_servers_words(run_cli: Call, repository: Path) -> None:
    done = run_cli("replay", repository / "shapes.py", "--target", "no-such-model", "--json")
    assert (done.code, done.out) == (1, "")
    assert "no-such-model" in done.err
    assert "Traceback" not in done.err


@pytest.mark.real_model
@pytest.mark.usefixtures("real_model_dir")
def test_the_real_target_spares_typing(run_cli: Call) -> None:
    loans = Path(__file__).parents[3] / "docs" / "sample_repository" / "lending" / "loans.py"
    arguments = ("--target", "qwen2.5-coder-0.5b", "--limit-keystrokes", 120, "--json")
    report = run_cli("replay", loans, *arguments).json()
    check_sums(report)
    assert report["num_chars_not_typed"] > 0
    assert report["tokens"]["tokens_per_verification"] > 1
