"""Checksums of stored arrays, at the speed of memory: they find zeroed, exchanged and overwritten pages.

Protect against damage, not against people: a user who can write an array can write its checksum.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PAGE_WORDS = 512  # 4 KB
_LENGTH = 16


def checksum(array: NDArray[Any]) -> str:
    """Return the hash of the sums, modulo 2^64, of the words of each page: 90 ms/GB."""
    raw = array.reshape(-1).view(np.uint8)
    num_summed = raw.size // (8 * _PAGE_WORDS) * 8 * _PAGE_WORDS
    pages = raw[:num_summed].view(np.uint64).reshape(-1, _PAGE_WORDS)
    digest = hashlib.blake2b(np.add.reduce(pages, axis=1, dtype=np.uint64), digest_size=_LENGTH)
    digest.update(raw[num_summed:].data)
    return digest.hexdigest()


def with_checksum(content: bytes) -> bytes:
    """Return the content after its own hash, for small files."""
    return hashlib.blake2b(content, digest_size=_LENGTH).digest() + content


def without_checksum(stored: bytes) -> bytes:
    """Return the content that `with_checksum` stored. Raises ValueError for a damaged one."""
    content = stored[_LENGTH:]
    if with_checksum(content) != stored:
        raise ValueError("its checksum does not match")
    return content
