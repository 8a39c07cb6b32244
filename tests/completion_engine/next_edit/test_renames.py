"""Each rename of the table, followed to its end: all that means the renamed thing, and nothing else."""

from __future__ import annotations

import pytest

from tests.completion_engine.next_edit.following import Rename, followed, renames

RENAMES = [pytest.param(it, id=f"{it.language}: {it.title}") for it in renames()]


@pytest.mark.parametrize("rename", RENAMES)
def test_a_rename_is_followed_to_its_end(rename: Rename) -> None:
    assert followed(rename.language, rename.before, rename.renamed) == rename.after
