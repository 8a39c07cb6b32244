"""The findings of a load are used by the next one for the same target, and by no other."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from completion_engine.loading import model
from completion_engine.loading.model import findings_path, read_findings, store_findings
from completion_engine.target_model.passes import Findings

FOUND = Findings(
    is_row_invariant=True,
    verifies_drafts=True,
    verifies_trees=False,
    pass_ms={1: 10.5, 8: 20.0},
    branch_ms=1.25,
    chunk_ms=90.5,
    thread_paces={2: 1.0, 1: 1.5},
    are_final=True,
)
DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return findings_path(tmp_path / "weights.safetensors", 2048)


def written_at(path: Path) -> float:
    return path.stat().st_mtime


@pytest.mark.parametrize("are_final", [True, False])
def test_findings_are_read_as_they_were_stored(path: Path, are_final: bool) -> None:
    found = replace(FOUND, are_final=are_final)
    store_findings(path, found)
    assert read_findings(path, written_at(path)) == found
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_what_another_process_of_the_same_id_left_is_not_in_the_way(path: Path) -> None:
    """Containers that share a cache count their processes each from one."""
    path.with_suffix(f".{os.getpid()}.part").mkdir()
    store_findings(path, FOUND)
    assert read_findings(path, written_at(path)) == FOUND


@pytest.mark.parametrize(("days", "is_read"), [(0, True), (6, True), (8, False), (-1, False)])
def test_findings_are_believed_for_a_week(path: Path, days: float, is_read: bool) -> None:
    store_findings(path, FOUND)
    assert (read_findings(path, written_at(path) + days * DAY) is not None) == is_read


def test_what_others_may_have_written_is_not_believed(path: Path) -> None:
    store_findings(path, FOUND)
    path.chmod(0o666)
    assert read_findings(path, written_at(path)) is None


def test_damaged_findings_are_not_believed(path: Path) -> None:
    store_findings(path, FOUND)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert read_findings(path, written_at(path)) is None


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 50_000, '"' * 100_000], ids=range(5))
def test_a_file_of_something_else_is_not_believed(path: Path, text: str) -> None:
    store_findings(path, FOUND)
    path.write_text(text)
    assert read_findings(path, written_at(path)) is None


def test_other_weights_capacities_code_processors_and_threads_have_findings_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "weights.safetensors"
    paths = {findings_path(packed, 2048), findings_path(tmp_path / "other.safetensors", 2048)}
    paths.add(findings_path(packed, 1024))
    for name, value in (
        ("_code", lambda: "other"),
        ("machine_mark", lambda: "other"),
        ("thread_counts", lambda: [64]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(model, name, value)
            paths.add(findings_path(packed, 2048))
    assert len(paths) == 6
