"""The time that each commit of a replay gets."""

from __future__ import annotations

import time

import pytest

from lsp_server.history.blocks import Block
from lsp_server.history.commit_replay import CommitBlocks, TimeLimit
from lsp_server.history.git_objects import Commit

COMMIT = Commit("c" * 40, ("p" * 40,), "A change")
BLOCK = Block(COMMIT, "a.py", "x = 1\n", 0, 6)


@pytest.mark.parametrize(
    ("commit", "num_left", "seconds"),
    [
        pytest.param(CommitBlocks(COMMIT, [BLOCK]), 4, 100, id="an equal share of what is left"),
        pytest.param(CommitBlocks(COMMIT, [BLOCK]), 1, 400, id="the last one all of it"),
        pytest.param(CommitBlocks(COMMIT, [BLOCK], {0: 6}), 4, 400, id="all of it to compare"),
    ],
)
def test_the_time_of_a_commit(
    monkeypatch: pytest.MonkeyPatch, commit: CommitBlocks, num_left: int, seconds: float
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    assert TimeLimit(1400.0).end_of(commit, num_left) == 1000 + seconds
