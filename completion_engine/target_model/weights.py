"""The tensors of a model by the names of a model folder, however its files hold them, and their precision."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from safetensors import safe_open
from torch import Tensor

from completion_engine.target_model.gguf_blocks import QuantisedWeight

WeightKind = Literal["float", "int8", "int4"]  # held as floats or quantised; int4 on a GPU
Affine = tuple[Tensor, Tensor | None]  # a layer's weight [num_outputs, num_inputs] and its bias


@dataclass(frozen=True, slots=True)
class Precision:
    """The type that a target computes in, and how it holds its large weights."""

    name: str
    dtype: torch.dtype
    kind: WeightKind = "float"


class RowTable(Protocol):
    """A table [num_rows, num_inputs] for reading single rows; a tensor is one."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of the rows."""
        ...

    @property
    def device(self) -> torch.device:
        """The device that holds the rows."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory."""
        ...

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Some rows, of any shape, [..., num_inputs]."""
        ...


class Weights(Protocol):
    """A model's tensors. Reading an unknown name raises KeyError."""

    @abstractmethod
    def __getitem__(self, name: str, /) -> Tensor:
        """A tensor to be read, or copied, not to be written."""

    @abstractmethod
    def __contains__(self, name: object, /) -> bool:
        """Whether there is such a tensor; reads nothing."""

    @abstractmethod
    def __iter__(self) -> Iterator[str]:
        """All names."""

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(self[name].shape)

    def quantised(self, name: str) -> QuantisedWeight | None:  # noqa: ARG002 - for those that hold some
        """A weight as its file quantises it; None where the file holds plain numbers."""
        return None

    def table(self, name: str) -> RowTable:
        """A tensor for reading single rows; a copy, see `StoredWeights`."""
        return self[name].clone()


class StoredWeights(Weights):
    """The tensors of safetensors files, each read when it is asked for, as `dtype`.

    A tensor may lie in the file's mapped pages: if the file is cut short, reading it ends the process. Raises
    OSError or safetensors' own error where a file is missing or damaged.
    """

    def __init__(self, files: Sequence[Path], dtype: torch.dtype) -> None:
        self._dtype = dtype
        opened: list[Any] = [safe_open(file, "pt") for file in files]
        self._file_of = {name: file for file in opened for name in file.keys()}  # noqa: SIM118 - no mapping

    def __getitem__(self, name: str) -> Tensor:
        """See `Weights`."""
        tensor: Tensor = self._file_of[name].get_tensor(name)
        return tensor.to(self._dtype)

    def __contains__(self, name: object) -> bool:
        return name in self._file_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """See `Weights.shape_of`; reads the header only."""
        return tuple(self._file_of[name].get_slice(name).get_shape())
