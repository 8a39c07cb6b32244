"""The tensors of a model by the names of a model folder, however its files hold them, and their precision."""

from __future__ import annotations

import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from torch import Tensor

from completion_engine.checksum import checksum
from completion_engine.errors import DataError
from completion_engine.models.gguf_layout import GgufLayout
from completion_engine.target_model.gguf_blocks import (
    QUANTISED,
    Bytes,
    QuantisedWeight,
    decoded,
    quantised,
)

WeightKind = Literal["float", "int8"]  # held as floats or quantised
Affine = tuple[Tensor, Tensor | None]  # a layer's weight [num_outputs, num_inputs] and its bias
_MAX_ROWS = 4096  # decoded at once, which bounds the memory of a large tensor


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


class GgufWeights(Weights):
    """The tensors of a GGUF file, read on demand; numbers are decoded as `dtype`.

    The file is read and not mapped: a mapped file that is cut short would end the process. Raises OSError
    where the file cannot be read, or was changed since, ValueError where it does not fit its layout, and
    DataError where it is damaged.
    """

    def __init__(self, layout: GgufLayout, dtype: torch.dtype) -> None:
        if flaw := layout.flaw():
            raise ValueError(flaw)
        self._dtype = dtype
        self._tensors = layout.tensors
        self._file = layout.file.open("rb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._reading = threading.Lock()
        self._opened_as = self._status()

    def __getitem__(self, name: str) -> Tensor:
        """A tensor of its own memory."""
        layout = self._tensors[name]
        raw = self._raw(name)
        found = torch.empty(len(raw), layout.shape[-1], dtype=self._dtype)
        for first in range(0, len(raw), _MAX_ROWS):
            rows = slice(first, first + _MAX_ROWS)
            found[rows] = torch.from_numpy(decoded(raw[rows], layout.kind))
        found = found.view(layout.shape)
        return found[torch.from_numpy(layout.row_order)] if layout.num_interleaved else found

    def shape_of(self, name: str) -> tuple[int, ...]:
        """See `Weights.shape_of`."""
        return self._tensors[name].shape

    def quantised(self, name: str) -> QuantisedWeight | None:
        """See `Weights.quantised`."""
        layout = self._tensors[name]
        if layout.kind not in QUANTISED or len(layout.shape) == 1:
            return None
        found = quantised(self._in_order(name), layout.kind)
        if not all(np.isfinite(part).all() for part in (found.scales, found.floors) if part is not None):
            raise self._damage(f"{name} has scales that are not finite numbers")
        return found

    def table(self, name: str) -> DecodedRows:
        """See `Weights.table`."""
        layout = self._tensors[name]
        return DecodedRows(self._in_order(name), layout.kind, layout.shape[1], self._dtype)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def _in_order(self, name: str) -> Bytes:
        """The bytes of all rows [num_rows, row_bytes] in the model's order."""
        raw, layout = self._raw(name), self._tensors[name]
        return raw[layout.row_order] if layout.num_interleaved else raw

    def _raw(self, name: str) -> Bytes:
        """The bytes of all rows as they lie in the file [num_rows, row_bytes]. Raises DataError."""
        layout = self._tensors[name]
        raw = self._read(layout.offset, layout.num_bytes)
        if layout.checksum and checksum(raw) != layout.checksum:
            raise self._damage(f"the checksum of {name} does not match")
        return raw.reshape(-1, layout.row_bytes)

    def _damage(self, what: str) -> DataError:
        return DataError(
            f"The model is damaged: {what} in {self._file.name}.",
            advice="Download it again with `slipstream models pull`.",
        )

    def _read(self, offset: int, num_bytes: int) -> Bytes:
        found, num_read = bytearray(num_bytes), 0
        with self._reading:
            self._file.seek(offset)
            while num_read < num_bytes and (num := self._file.readinto(memoryview(found)[num_read:])):
                num_read += num
            if num_read < num_bytes or self._status() != self._opened_as:
                raise OSError(f"{self._file.name} was changed while it was in use")
        return np.frombuffer(found, np.uint8)

    def _status(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns


class DecodedRows:
    """A table of quantised rows in memory. Each row is decoded at its first use."""

    def __init__(self, raw: Bytes, kind: str, num_inputs: int, dtype: torch.dtype) -> None:
        """`raw` [num_rows, row_bytes] are blocks of the type `kind`."""
        self._raw, self._kind = raw, kind
        # The system gives pages when they are written, so rows that are never used cost no memory.
        self._table = torch.empty(len(raw), num_inputs, dtype=dtype)
        self._is_decoded: NDArray[np.bool_] = np.zeros(len(raw), np.bool_)

    @property
    def dtype(self) -> torch.dtype:
        """Type of the rows."""
        return self._table.dtype

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return self._table.device

    @property
    def nbytes(self) -> int:
        """Bytes of the quantised rows, and of those that were used."""
        return self._raw.nbytes + int(self._is_decoded.sum()) * self._table[0].nbytes

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Some rows, of any shape, [..., num_inputs]."""
        if not self._is_decoded[rows.numpy()].all():
            missing = np.unique(rows.numpy())
            missing = missing[~self._is_decoded[missing]]
            numbers = torch.from_numpy(decoded(self._raw[missing], self._kind))
            self._table[torch.from_numpy(missing)] = numbers.to(self.dtype)
            self._is_decoded[missing] = True
        return self._table[rows]
