"""Where torch computes on OpenMP's threads, kernels find them too, wherever its build hides the library."""

from __future__ import annotations

import sys

import pytest
import torch

from completion_engine.cpu.kernels import openmp


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere its library has other names")
def test_the_threads_of_torch_are_found() -> None:
    assert "backend: OpenMP" in torch.__config__.parallel_info()
    assert openmp.openmp() is not None
