"""The program that reads a GGUF file's header into a model folder; started as a child by `gguf_preparation`.

    python -m completion_engine.models.gguf_worker FILE.gguf OUT_FOLDER [beside]

It writes config.json, the tokenizer's files and the layout of the weights, which stay in the GGUF file. The
weights of models outside the Llama family become safetensors, which transformers can load. It runs in a
process of its own, so that its memory is returned, the model libraries' settings stay untouched, and it can
be ended at any moment. It prints one JSON object per line: {"step": name} when a step begins, and
{"fault": "data" or "machine", "error": text} when it failed.

The format counts everything in 64 bits, so a damaged or hostile header may promise lists without end. The
reader checks each count against the bytes that are left before it reads anything.
"""

from __future__ import annotations

import functools
import mmap
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from tokenizers import Tokenizer

from completion_engine.checksum import checksum
from completion_engine.models.gguf_layout import (
    EMBEDDING,
    HEAD,
    GgufLayout,
    TensorLayout,
    folder_name,
    write_layout,
)
from completion_engine.models.job import one_line, say

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


_FAMILY = frozenset({"llama", "qwen2", "qwen3"})  # architectures whose tensors `folder_name` knows
_SAMPLE = 'def Area(r: float) -> float:\n\treturn 3.14 * r  # "é 漢 🎉"\n'


def main() -> int:
    """Read the file named by the arguments. Returns the exit code."""
    out, sys.stdout = sys.stdout, sys.stderr  # nothing that a library prints may mix with our lines
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        _prepare(source, folder, out, is_beside="beside" in sys.argv[3:])
    except MemoryError:
        say(out, fault="machine", error="there is not enough memory")
        return 1
    except Exception as error:
        # Errors of the system have a number; whatever else a library dislikes is the file's fault.
        is_system = (isinstance(error, OSError) and error.errno) or "No space left" in str(error)
        say(out, fault="machine" if is_system else "data", error=one_line(error))
        return 1
    return 0


def _prepare(source: Path, folder: Path, out: TextIO, *, is_beside: bool) -> None:
    say(out, step="reading")
    header = read_header(source)
    import gguf  # noqa: PLC0415 - seconds after the first message
    from transformers import AutoConfig, AutoTokenizer  # noqa: PLC0415 - as above

    if header.value("general.architecture") in _FAMILY:
        # The model library parses a file several times, and each time takes 40 s for a large vocabulary.
        vars(gguf)["GGUFReader"] = lambda _path: header
        config: Any = AutoConfig.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
        layout = layout_of(source, header, config.num_hidden_layers)
        num_rows = layout.tensors[EMBEDDING].shape[0]
        config.update({"tie_word_embeddings": HEAD not in layout.tensors, "vocab_size": num_rows})
        config.dtype = "bfloat16"
        config.save_pretrained(folder)
        write_layout(folder, layout, is_beside=is_beside)
    else:
        vars(gguf)["GGUFReader"] = functools.cache(gguf.GGUFReader)
        num_rows = _convert(source, folder, out)
    say(out, step="tokenizer")
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, local_files_only=True)
    tokenizer.save_pretrained(folder)
    say(out, step="checking")
    check_tokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")), num_rows)


def _convert(source: Path, folder: Path, out: TextIO) -> int:
    """Write the weights of any other model as bf16 safetensors; returns the rows of its embedding."""
    say(out, step="converting")
    import torch  # noqa: PLC0415 - as above
    from transformers import AutoModelForCausalLM, GgufConfig  # noqa: PLC0415 - as above

    model: Any = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        local_files_only=True,
    )
    model.save_pretrained(folder, max_shard_size="10TB")
    return int(model.get_input_embeddings().weight.shape[0])


def layout_of(source: Path, header: GgufHeader, num_layers: int) -> GgufLayout:
    """Return the places of the tensors of a model of the Llama family.

    Raises ValueError for a damaged file.
    """
    from gguf import GGMLQuantizationType  # noqa: PLC0415 - as above

    heads = _interleaved_heads(header)
    tensors = {}
    for entry in header.tensors:
        if name := folder_name(entry.name):
            num_heads = next((num for part, num in heads.items() if part in name), 0)
            kind = GGMLQuantizationType(entry.type_number).name
            tensors[name] = TensorLayout(kind, tuple(reversed(entry.shape)), entry.offset, num_heads)
    layout = GgufLayout(source, source.stat().st_size, tensors)
    if flaw := layout.flaw() or layout.missing(num_layers):
        raise ValueError(flaw)
    content = np.memmap(source, np.uint8, "r")
    summed = {
        name: replace(tensor, checksum=checksum(content[tensor.offset : tensor.offset + tensor.num_bytes]))
        for name, tensor in tensors.items()
    }
    return replace(layout, tensors=summed)


def _interleaved_heads(header: GgufHeader) -> Mapping[str, int]:
    """The number of heads whose rows the file interleaves, by part of a layer; only Llama has some."""
    if header.value("general.architecture") != "llama":
        return {}
    num_heads = header.value("llama.attention.head_count")
    num_kv_heads = header.value("llama.attention.head_count_kv") or num_heads
    if not (isinstance(num_heads, int) and isinstance(num_kv_heads, int)):
        raise ValueError("it does not say how many heads the model has")  # noqa: TRY004 - a damaged file
    return {"self_attn.q_proj": num_heads, "self_attn.k_proj": num_kv_heads}


def check_tokenizer(tokenizer: Tokenizer, num_rows: int) -> None:
    """Raise ValueError unless every id has a row of the embedding and text survives the tokenizer."""
    num_tokens = tokenizer.get_vocab_size()
    if num_tokens > num_rows:
        raise ValueError(f"its tokenizer has {num_tokens} tokens, its embedding only {num_rows} rows")
    ids = tokenizer.encode(_SAMPLE, add_special_tokens=False).ids
    if tokenizer.decode(ids, skip_special_tokens=False).strip() != _SAMPLE.strip():
        raise ValueError("its tokenizer does not give back the text it was given")


if __name__ == "__main__":
    sys.exit(main())
