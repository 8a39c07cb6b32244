"""Damage of an array changes its checksum, whatever the page holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from completion_engine.checksum import checksum, with_checksum, without_checksum

Bytes = NDArray[np.uint8]
PAGE = 4096


def zero_a_page(raw: Bytes) -> None:
    raw[PAGE : 2 * PAGE] = 0


def exchange_pages(raw: Bytes) -> None:
    raw[: 2 * PAGE] = raw[: 2 * PAGE].reshape(2, PAGE)[::-1].reshape(-1)


def flip_a_bit(raw: Bytes) -> None:
    raw[3 * PAGE + 77] ^= 16


def change_the_last_byte(raw: Bytes) -> None:
    raw[-1] += 1


@pytest.mark.parametrize("num_bytes", [5 * PAGE, 5 * PAGE + 13])
@pytest.mark.parametrize("spoil", [zero_a_page, exchange_pages, flip_a_bit, change_the_last_byte])
def test_damage_changes_the_checksum(spoil: Callable[[Bytes], None], num_bytes: int) -> None:
    raw = np.random.default_rng(1).integers(0, 256, num_bytes, np.uint8)
    before = checksum(raw)
    assert checksum(raw.copy()) == before
    spoil(raw)
    assert checksum(raw) != before


def test_an_array_of_any_type_has_the_checksum_of_its_bytes() -> None:
    raw = np.random.default_rng(2).integers(0, 256, 3 * PAGE, np.uint8)
    assert checksum(raw.view(np.float32).reshape(3, -1)) == checksum(raw)
    assert checksum(raw[:0]) == checksum(np.empty(0, np.float32))


@pytest.mark.parametrize("stored", [b"", b"short", with_checksum(b"abc")[:-1], with_checksum(b"abc") + b"d"])
def test_small_files_are_compared(stored: bytes) -> None:
    assert without_checksum(with_checksum(b"abc")) == b"abc"
    with pytest.raises(ValueError, match="checksum"):
        without_checksum(stored)
