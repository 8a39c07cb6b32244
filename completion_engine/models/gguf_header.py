"""The header of a GGUF file: its metadata and its table of tensors, read no further than the file goes.

The format counts everything in 64 bits, so a damaged or hostile file may promise lists without end. The
reader checks each count against the bytes that are left before it reads anything.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

MAX_VALUES = 8_000_000  # in a header; each takes up to 200 bytes until it is converted
_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
_MAX_ALIGNMENT = 1 << 16
_STRING, _LIST = 8, 9
_FORMATS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip


class Field(NamedTuple):
    """One key's value as gguf's readers give it: `parts[index]` for each index of `data` is one value.

    Values of numbers are tuples of one; strings are bytes. `types` is the type, or the types of a list and of
    its values.
    """

    parts: Sequence[Any]
    data: range
    types: list[int]

    def values(self) -> list[Any]:
        """All values; strings are bytes."""
        return [part if isinstance(part, bytes) else part[0] for part in self.parts]


class TensorEntry(NamedTuple):
    """A tensor: its name, shape with the fastest dimension first, number of its type, and first byte."""

    name: str
    shape: tuple[int, ...]
    type_number: int
    offset: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a header says. `fields` and `tensors` are named as in the gguf library's reader."""

    fields: Mapping[str, Field]
    tensors: Sequence[TensorEntry]

    def value(self, key: str) -> Any:
        """The value of a key that has one; None where it is missing."""
        values = self.fields[key].values() if key in self.fields else []
        value = values[0] if len(values) == 1 else None
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def read_header(path: Path) -> GgufHeader:
    """Read a file's header. Raises ValueError for a damaged one, OSError where it cannot be read."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        try:
            return _Reader(mapped).header()
        except struct.error as error:
            raise ValueError("the file ends too early") from error


class _Reader:
    """A place in a header that moves on with each value."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at, self._num_left = data, 0, MAX_VALUES

    def header(self) -> GgufHeader:
        magic, version, num_tensors, num_fields = self._numbers("4sIQQ")
        if magic != b"GGUF" or version not in _VERSIONS:
            raise ValueError(f"it is not a GGUF file of version {' or '.join(map(str, _VERSIONS))}")
        self._count(num_tensors + num_fields)
        fields = dict(self._field() for _ in range(num_fields))
        tensors = [self._tensor() for _ in range(num_tensors)]
        found = GgufHeader(fields, tensors)
        alignment = found.value("general.alignment") or 32
        if not isinstance(alignment, int) or not 1 <= alignment <= _MAX_ALIGNMENT:
            raise ValueError("its alignment is not a number of bytes")
        start = -(-self._at // alignment) * alignment
        return GgufHeader(fields, [entry._replace(offset=start + entry.offset) for entry in tensors])

    def _field(self) -> tuple[str, Field]:
        name, (kind,) = self._string().decode("utf-8", "replace"), self._numbers("I")
        if kind != _LIST:
            return name, Field(self._values(kind, 1), range(1), [kind])
        kind_of_values, length = self._numbers("IQ")
        return name, Field(self._values(kind_of_values, length), range(length), [kind, kind_of_values])

    def _values(self, kind: int, length: int) -> list[Any]:
        self._count(length)
        if kind == _STRING:
            return [self._string() for _ in range(length)]
        if kind not in _FORMATS:
            raise ValueError(f"its header holds a value of the unknown type {kind}")
        return [(value,) for value in self._numbers(f"{length}{_FORMATS[kind]}")]

    def _tensor(self) -> TensorEntry:
        name, (num_dimensions,) = self._string().decode("utf-8", "replace"), self._numbers("I")
        if num_dimensions > _MAX_DIMENSIONS:
            raise ValueError(f"a tensor has {num_dimensions} dimensions")
        shape = self._numbers(f"{num_dimensions}Q")
        return TensorEntry(name, shape, *self._numbers("IQ"))

    def _string(self) -> bytes:
        (length,) = self._numbers("Q")
        if length > len(self._data) - self._at:
            raise ValueError("the file ends too early")
        self._at += length
        return self._data[self._at - length : self._at]

    def _numbers(self, form: str) -> tuple[Any, ...]:
        form = f"<{form}"
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def _count(self, num_values: int) -> None:
        """Every value takes a byte at least, so no more can follow than bytes are left."""
        self._num_left -= num_values
        if num_values > len(self._data) - self._at:
            raise ValueError("the file ends too early")
        if self._num_left < 0:
            raise ValueError(f"its header holds more than {MAX_VALUES:,} values")
