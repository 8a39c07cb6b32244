"""What an edit of a document costs."""

from __future__ import annotations

import time

from lsp_server.workspace.documents import Document, Edit


def test_typing_in_a_long_file_costs_no_more_than_in_a_short_one() -> None:
    """Edit and snapshot in 20,000 lines: well under the 2 ms that a keystroke may cost in all."""
    document = Document("file:///a", "python", 1, "    value = compute(previous, 12)  # é\n" * 20_000)
    costs_ms = []
    for column in range(200):
        begin = time.perf_counter()
        document.apply(Edit((10_000, column), (10_000, column), "x"), "utf-16")
        document.snapshot(10_000, column + 1)
        costs_ms.append((time.perf_counter() - begin) * 1000)
    assert sorted(costs_ms)[len(costs_ms) // 2] < 1.0
