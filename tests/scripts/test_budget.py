"""The tree stays within the caps on its size, and each cap is seen to be exceeded."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.budget import CAPS, WHOLE, Cap, find_overruns

ROOT = Path(__file__).parents[2]


def test_the_tree_stays_within_its_caps() -> None:
    assert list(find_overruns(ROOT)) == []


@pytest.mark.parametrize(
    ("caps", "whole", "found"),
    [
        ((Cap("lsp_server", 3, 2),), Cap("all", 3, 2), []),
        ((Cap("lsp_server", 2, 2),), Cap("all", 3, 2), ["lsp_server has 3 lines of Python; the cap is 2."]),
        ((Cap("lsp_server", 3, 1),), Cap("all", 3, 2), ["lsp_server has 2 files of Python; the cap is 1."]),
        ((Cap("lsp_server", 2, 2, but=("in",)),), Cap("all", 2, 2), []),
        ((Cap("lsp_server", 3, 2),), Cap("all", 2, 2), ["all has 3 lines of Python; the cap is 2."]),
    ],
    ids=str,
)
def test_what_exceeds_a_cap_is_named(
    tmp_path: Path, caps: tuple[Cap, ...], whole: Cap, found: list[str]
) -> None:
    (tmp_path / "lsp_server/in").mkdir(parents=True)
    (tmp_path / "lsp_server/a.py").write_text("1\n2\n")
    (tmp_path / "lsp_server/in/b.py").write_text("1\n")
    (tmp_path / "lsp_server/not_counted.txt").write_text("1\n2\n")
    assert list(find_overruns(tmp_path, caps, whole)) == found


def test_every_folder_of_python_has_a_cap() -> None:
    capped = {cap.folder for cap in CAPS}
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"tests", "scripts"}
    assert folders <= capped
    assert WHOLE.num_files <= sum(cap.num_files for cap in CAPS[:3])
