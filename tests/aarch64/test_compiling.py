"""numba itself compiles here, also where all other kernels come from the machine below (`borrowing`)."""

from __future__ import annotations

import json

import numpy as np
from numba import njit

from tests.completion_engine.cpu import golden


def test_a_kernel_that_is_compiled_now_computes_the_same_bits() -> None:
    compiled = njit(nogil=True, error_model="numpy")(golden._exponentials.py_func)
    found = np.empty(1001, np.float32)
    compiled(20 * golden.drawn(1001).numpy(), found)
    assert not compiled._cache_hits
    assert golden.digest(found) == json.loads(golden.FILE.read_text(encoding="ascii"))["exponentials"]
