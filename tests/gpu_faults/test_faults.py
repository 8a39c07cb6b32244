"""Whatever goes wrong with a GPU, an engine answers correctly on the backend below, and says why."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed: the GPU kernels are NOT tested here", allow_module_level=True)

from tests.completion_engine.gpu.interpreter import interpreted
from tests.conftest import write_tiny_model
from tests.gpu_faults.injected import FAULTS, Fault
from tests.gpu_faults.miniature import outcome_of, write_drafter, written_on

Written = tuple[str, tuple[int, ...]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A target of one layer with a drafter beside it; its kernels run in the interpreter."""
    folder = tmp_path_factory.mktemp("faults") / "model"
    write_tiny_model(folder, seed=1, num_layers=1, num_heads=2)
    write_drafter(folder.parent / "drafter", folder)
    with interpreted():
        yield folder


@pytest.fixture(scope="module")
def right(folder: Path) -> Callable[[str, str], Written]:
    """A backend's text without any fault."""
    return cache(lambda backend, dtype: written_on(backend, dtype, folder))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_engine_answers_on_the_next_backend(
    fault: Fault, folder: Path, right: Callable[[str, str], Written]
) -> None:
    found = outcome_of(fault, folder)
    assert found.backend == fault.backend
    assert fault.said in found.reason
    assert bool(found.reason) == bool(fault.said)
    assert found.text
    assert (found.text, found.tokens) == right(found.backend, found.dtype)
