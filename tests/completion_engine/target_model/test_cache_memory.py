"""How the cache lies in memory, to the byte, and what it refuses, to the position."""

from __future__ import annotations

import mmap
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from completion_engine.target_model.kv_cache import CacheShape, KVCache

SHAPE = CacheShape(2, 3, 4, 7, 33, torch.bfloat16, torch.device("cpu"))


def test_a_slot_has_keys_values_and_what_the_head_reads() -> None:
    cache = KVCache(SHAPE)
    for tensor in (cache.keys, cache.values):
        assert (tensor.shape, tensor.dtype) == ((2, 3, 33, 4), torch.bfloat16)
        assert tensor.is_contiguous()
    assert (cache.hidden.shape, cache.hidden.dtype) == ((33, 7), torch.bfloat16)
    assert SHAPE.num_bytes == 2 * (2 * 2 * 3 * 33 * 4 + 33 * 7)
    assert not any(tensor.any() for tensor in (cache.keys, cache.values, cache.hidden))
    assert (cache.num_cached, cache.capacity) == (0, 33)


@pytest.mark.parametrize(("capacity", "room"), [(31, 32), (32, 32), (33, 64)])
def test_keys_by_channel_have_room_for_whole_vectors(capacity: int, room: int) -> None:
    cache = KVCache(replace(SHAPE, capacity=capacity, keys_by_channel=True))
    assert (cache.keys.shape, cache.keys.dtype) == ((2, 3, capacity, 4), torch.bfloat16)
    assert cache.keys.stride() == (3 * 4 * room, 4 * room, 1, room)
    assert cache.values.is_contiguous()
    assert not cache.keys.any()


def num_pages_taken() -> int:
    """Pages that this thread was given by the system."""
    if sys.platform != "linux":
        pytest.skip("Only Linux counts what a thread takes.")
    import resource

    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


@pytest.mark.parametrize("by_channel", [False, True])
def test_who_makes_a_cache_does_not_wait_for_its_memory(by_channel: bool) -> None:
    shape = CacheShape(4, 4, 64, 256, 16_384, torch.float32, torch.device("cpu"), keys_by_channel=by_channel)
    before = num_pages_taken()
    cache = KVCache(shape)
    assert num_pages_taken() - before < cache.shape.num_bytes / mmap.PAGESIZE / 100


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux lists a process' memory.")
def test_memory_belongs_to_this_process_alone() -> None:
    def shared() -> list[str]:
        areas = Path("/proc/self/maps").read_text().splitlines()
        return [area for area in areas if area.split()[1].endswith("s")]

    before = shared()
    cache = KVCache(SHAPE)
    assert shared() == before
    assert cache.num_cached == 0


def test_memory_is_zero_however_a_system_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    cache = KVCache(SHAPE)
    assert not any(tensor.any() for tensor in (cache.keys, cache.values, cache.hidden))
    cache.pretend(5)
    assert cache.tokens == [0] * 5


def test_memory_that_is_not_there_is_an_error_of_memory() -> None:
    with pytest.raises(MemoryError, match=r"^no memory for \d+ bytes of keys and values$"):
        KVCache(replace(SHAPE, capacity=1 << 55))


def test_everything_lies_on_the_device() -> None:
    for by_channel in (False, True):
        shape = replace(SHAPE, device=torch.device("meta"), keys_by_channel=by_channel)
        cache = KVCache(shape)
        tensors = (cache.keys, cache.values, cache.hidden)
        assert {(one.device.type, one.dtype) for one in tensors} == {("meta", torch.bfloat16)}


def test_it_takes_as_many_tokens_as_there_are_positions_and_says_what_it_refuses() -> None:
    cache = KVCache(SHAPE)
    cache.keep([1] * 30)
    with pytest.raises(ValueError, match=r"^4 tokens do not fit after 30 of 33$"):
        cache.keep([2] * 4)
    cache.keep([2] * 3)
    assert cache.num_cached == 33
    cache.check_integrity()
    for num_cached in (-1, 34):
        with pytest.raises(ValueError, match=rf"^cannot rewind from 33 to {num_cached}$"):
            cache.rewind(num_cached)
    cache.rewind(33)
    cache.rewind(0)
    assert cache.tokens == []


def test_a_chunk_stands_after_whole_chunks_only_and_the_refusal_says_where() -> None:
    cache = KVCache(SHAPE)
    cache.keep_chunk([1, 2])
    cache.keep([3])
    with pytest.raises(ValueError, match=r"^a chunk at 3, behind 2 from chunks$"):
        cache.keep_chunk([4])
    cache.rewind(2)
    cache.keep_chunk([4])
    assert (cache.tokens, cache.num_from_chunks) == ([1, 2, 4], 3)


def test_what_breaks_the_invariant_is_found() -> None:
    cache = KVCache(SHAPE)
    cache.tokens = [1] * 34
    with pytest.raises(AssertionError):
        cache.check_integrity()
