"""Packed weights of a model in a file of the cache folder, so that only the first load packs them.

Later loads copy the file into huge pages, or map it where the system has none. The file is a safetensors
file whose header describes the packing of each weight, and holds the checksum of each array. Its name follows
from the model's files, from the dtype they are read in, from what composes and what packs them; it appears
whole or not at all. If it cannot be stored, the weights stay in memory.

A pass reads all weights once. With pages of 4 KB, translating their addresses takes 3 to 13 % of its time
(docs/experiments/kernels.md).
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import mmap
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

import numpy as np
import torch
from platformdirs import user_cache_dir
from safetensors import SafetensorError, safe_open

from completion_engine.checksum import checksum
from completion_engine.cpu import block_packing
from completion_engine.cpu.kernels import language, packing, vectors
from completion_engine.cpu.kernels.kernel_cache import flaw_of, forget_unused, make_private
from completion_engine.cpu.kernels.language import Array
from completion_engine.cpu.kernels.packing import BLOCK, RECORDS, TILE_OUTPUTS, PackedWeight
from completion_engine.runtime import UNFINISHED, private_pages, whole_file
from completion_engine.target_model import gguf_blocks

_LINE = 64  # bytes of a cache line, where each array begins
_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# Room for the header, which is known only when all is written. The weights after it begin at a cache line.
_HEADER_BYTES = (1 << 18) - 8
_SPARE_BYTES = 1 << 30  # bytes of the disk for other programs
_FORMAT = 2  # the first one with checksums
_WORTH_BYTES = 1 << 26  # packing fewer bytes is faster than reading the file
_SUFFIX = ".safetensors"
_UNFINISHED_S = 3600  # an ended process left a file that was not written for this long
_UNUSED_S = 7 * 86_400  # for the files of other engine versions, which may be in use as well


def in_huge_pages(arrays: Sequence[Array]) -> list[Array]:
    """Copies of arrays in one block of huge pages; the arrays themselves where the system has none to give.

    Copies of 4 KB pages would be slower than a mapped file, whose pages may be larger.
    """
    if sys.platform != "linux" or not _are_offered():
        return list(arrays)
    num_bytes = sum(_padded(array) for array in arrays)
    try:
        memory = private_pages(num_bytes)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError as error:
        logger.warning("Weights stay in the pages of their file: %s", error)
        return list(arrays)
    return [*_copies(arrays, np.frombuffer(memory, np.uint8))]


def _are_offered() -> bool:
    """Return whether this system gives huge pages to a process that wants them."""
    try:
        return "[never]" not in _SWITCH.read_text("ascii")
    except (OSError, ValueError):
        return False


def _padded(array: Array) -> int:
    return -(-array.nbytes // _LINE) * _LINE


def _copies(arrays: Sequence[Array], memory: Array) -> Iterator[Array]:
    at = 0
    for array in arrays:
        copy = memory[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(copy, array)
        at += _padded(array)
        yield copy


logger = logging.getLogger(__name__)


Shape = tuple[int, int]
Make = Callable[[], PackedWeight]


class Source(NamedTuple):
    """A model's weight that is to be packed: its size [num_outputs, num_inputs], and what packs it."""

    shape: Shape
    make: Make


def packed_path(files: Sequence[Path], dtype: torch.dtype, composers: Sequence[ModuleType]) -> Path:
    """Where the weights of the model in these files lie, packed from how they read in `dtype`.

    `composers` are the modules that define which weights are packed together. Raises OSError where a file is
    missing.
    """
    digest = hashlib.sha256(f"{dtype} {_FORMAT}".encode())
    for module in (block_packing, gguf_blocks, packing, language, vectors, *composers):
        digest.update(Path(str(module.__file__)).read_bytes())
    for file in files:
        status = file.stat()
        identity = str(file.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        digest.update(repr(identity).encode())
    return packed_folder(files) / f"{digest.hexdigest()[:16]}{_SUFFIX}"


def packed_folder(files: Sequence[Path]) -> Path:
    """The folder of everything that is packed of the model in these files."""
    place = hashlib.sha256(repr([str(file.resolve()) for file in files]).encode()).hexdigest()[:16]
    return Path(user_cache_dir("slipstream", appauthor=False)) / "packed" / place


def load_packed(path: Path | None, sources: Mapping[str, Source]) -> dict[str, PackedWeight]:
    """The weights of `sources` out of the file at `path`, which is made where there is none that fits."""
    if path is None or _num_bytes(sources) < _WORTH_BYTES:
        return {name: source.make() for name, source in sources.items()}
    shapes = {name: source.shape for name, source in sources.items()}
    if found := _read(path, shapes):
        _forget_others(path)
        return found
    made: dict[str, PackedWeight] = {}
    try:
        _write(path, sources, made)
        return _read(path, shapes) or made
    except OSError as error:
        logger.warning("Packed weights are not stored, so every start makes them anew: %s", error)
        return made | {name: source.make() for name, source in sources.items() if name not in made}


def _read(path: Path, shapes: Mapping[str, Shape]) -> dict[str, PackedWeight] | None:
    """The weights in a file of this user's alone; None where it is missing, damaged or of other weights."""
    try:
        if flaw_of(path.parent.lstat()) or flaw_of(path.lstat()):
            return None
        with suppress(OSError):
            os.utime(path)  # it is in use: see `_forget_others`
        file: Any = safe_open(path, "pt")
        metadata = file.metadata() or {}
        bits, wanted = (json.loads(metadata.get(name, "{}")) for name in ("bits", "checksums"))
        found = {name: _weight_in(file, name, int(bits[name]), shape) for name, shape in shapes.items()}
        found = _in_huge_pages(found)
        _check(_arrays(found), wanted)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        logger.warning("Packed weights in %s are damaged and made anew: %s", path, error)
        return None
    return found


def _check(arrays: Mapping[str, Array], wanted: Mapping[str, str]) -> None:
    """Compare arrays with their checksums by name. Raises ValueError, or KeyError for one without."""
    with ThreadPoolExecutor() as pool:  # memory is faster than one core adds
        found = dict(zip(arrays, pool.map(checksum, arrays.values()), strict=True))
    if flaw := next((name for name, own in found.items() if own != wanted[name]), None):
        raise ValueError(f"the checksum of {flaw} does not match")


def _arrays(weights: Mapping[str, PackedWeight]) -> dict[str, Array]:
    return {part: array for name, weight in weights.items() for part, array in _parts(name, weight)}


def _parts(name: str, weight: PackedWeight) -> tuple[tuple[str, Array], tuple[str, Array]]:
    """The arrays of a weight, by their names in the file."""
    return (f"{name}.records", weight.records), (f"{name}.units", weight.units)


def _in_huge_pages(weights: Mapping[str, PackedWeight]) -> dict[str, PackedWeight]:
    """The weights in memory of this process, if that is faster to read than the mapped file."""
    arrays = in_huge_pages([part for weight in weights.values() for part in (weight.records, weight.units)])
    parts = zip(arrays[::2], arrays[1::2], strict=True)
    return {
        name: replace(weight, records=records, units=units)
        for (name, weight), (records, units) in zip(weights.items(), parts, strict=True)
    }


def _weight_in(file: Any, name: str, bits: int, shape: Shape) -> PackedWeight:
    """Raises ValueError or KeyError where what the file holds does not fit `shape`: kernels would read on."""
    record = RECORDS[bits]
    records, units = (file.get_tensor(f"{name}.{part}").numpy() for part in ("records", "units"))
    num_tiles, num_blocks = -(-shape[0] // TILE_OUTPUTS), -(-shape[1] // BLOCK)
    records = records.view(np.uint8).reshape(num_tiles, num_blocks, record.num_bytes)
    return PackedWeight(record, records, units.view(np.float32).reshape(num_tiles * TILE_OUTPUTS), shape)


def _write(path: Path, sources: Mapping[str, Source], made: dict[str, PackedWeight]) -> None:
    """Pack all of `sources` into `made`, and into the file at `path`. Raises OSError."""
    make_private(path.parent)
    _make_room(path, _num_bytes(sources) + _SPARE_BYTES)
    with whole_file(path) as file:
        file.seek(8 + _HEADER_BYTES)
        entries = dict(_written(file, sources, made))
        bits = {name: weight.record.bits for name, weight in made.items()}
        checksums = {name: checksum(array) for name, array in _arrays(made).items()}
        metadata = {"format": "pt", "bits": json.dumps(bits), "checksums": json.dumps(checksums)}
        header = json.dumps({"__metadata__": metadata} | entries).encode()
        if len(header) > _HEADER_BYTES:
            raise OSError(errno.EFBIG, "too many weights", str(path))
        file.seek(0)
        file.write(_HEADER_BYTES.to_bytes(8, "little") + header.ljust(_HEADER_BYTES))


def _make_room(path: Path, num_bytes: int) -> None:
    """Remove what is old, and where the disk is short what other versions use. Raises OSError."""
    for unused_s in (_UNUSED_S, 0):
        _forget_others(path, unused_s)
        if shutil.disk_usage(path.parent).free >= num_bytes:
            return
    raise OSError(errno.ENOSPC, "the disk is nearly full", str(path.parent))


def _num_bytes(sources: Mapping[str, Source]) -> int:
    """The most bytes that the weights may take: 8 bits and the scales of blocks."""
    return (
        sum(shape[0] * shape[1] for shape, _ in sources.values())
        * RECORDS[8].num_bytes
        // (BLOCK * TILE_OUTPUTS)
    )


def _written(
    file: IO[bytes], sources: Mapping[str, Source], made: dict[str, PackedWeight]
) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield each array's entry of the header, once it is written after the one before."""
    end = 0
    for name, source in sources.items():
        made[name] = source.make()
        for part, array in _parts(name, made[name]):
            file.write(array.data)
            begin, end = end, end + array.nbytes
            kind = "U8" if array.dtype == np.uint8 else "F32"
            yield part, {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}


def _forget_others(path: Path, unused_s: float = _UNUSED_S) -> None:
    """Remove what else lies there of this model and is old, and weights that were not used for `unused_s`."""
    now = time.time()
    kept_s = {UNFINISHED: _UNFINISHED_S, _SUFFIX: unused_s}
    with suppress(OSError):
        forget_unused(path.parent, now)
        for file in path.parent.iterdir():
            with suppress(OSError):  # another has removed it, or Windows has it mapped
                if file != path and now - file.stat().st_mtime > kept_s.get(file.suffix, _UNUSED_S):
                    file.unlink()
