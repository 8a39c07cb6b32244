"""Freed memory of a thread returns to the system, and garbage collection is rare during a load."""

from __future__ import annotations

import gc
import sys
import threading

import psutil
import pytest

from completion_engine.runtime import give_back, seldom_collected

MEGABYTE = 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's arenas")
def test_memory_that_another_thread_freed_goes_back() -> None:
    process = psutil.Process()
    pieces: list[bytearray] = []

    def fill() -> None:
        pieces.extend(bytearray(b"x" * 65_536) for _ in range(4000))  # too small for pages of their own
        keeper.append(bytearray(b"x" * 65_536))

    keeper: list[bytearray] = []
    thread = threading.Thread(target=fill)
    thread.start()
    thread.join()
    pieces.clear()
    before = process.memory_info().rss
    give_back()
    assert before - process.memory_info().rss > 200 * MEGABYTE


def test_garbage_is_looked_for_as_before_behind_the_block_however_it_ends() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyError), seldom_collected():
        assert gc.get_threshold()[0] > 10 * before[0]
        assert gc.isenabled()
        raise KeyError
    assert gc.get_threshold() == before
