"""Prepares a model folder for a GGUF file, once: runs the worker, checks its result, then renames the folder.
Owns its manifest, and the checks of all model folders.

The weights stay in the GGUF file (see `gguf_worker`). The folder appears complete or not at all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.errors import DataError, MachineError, SlipstreamError
from completion_engine.models.gguf_layout import read_layout
from completion_engine.models.job import Monitor, ProgramOutcome, messages, run_program, worker
from completion_engine.models.sources import sha256_of
from completion_engine.runtime import parse_json

MANIFEST = "manifest.json"
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
_FORMAT = 2
_METADATA = "__metadata__"
_MAX_HEADER_BYTES = 100 << 20  # the format's own limit
_STALL_S = 600.0  # a slow disk may take minutes for a large header
_SHARE = {"reading": 50, "tokenizer": 35, "checking": 15}  # share of the time, in percent; measured
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}


def write_manifest(folder: Path, source: Mapping[str, Any]) -> None:
    """Record size and SHA-256 of every file in `folder`, and the file that it was made from."""
    files: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.iterdir()):
        files[path.name] = {"num_bytes": path.stat().st_size, "sha256": sha256_of(path).hexdigest()}
    manifest = {"format": _FORMAT, "source": dict(source), "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest, or None when there is none that can be used."""
    try:
        manifest: dict[str, Any] = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))
        is_usable = manifest["format"] == _FORMAT and all(
            type(file["num_bytes"]) is int and type(file["sha256"]) is str and _is_plain(name)
            for name, file in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if is_usable else None


def find_damage(folder: Path, source: Mapping[str, Any]) -> str:
    """The visible damage of a prepared folder or of its GGUF file, or "". Reads sizes and the layout only."""
    manifest = read_manifest(folder)
    if manifest is None:
        return "its manifest is missing or unreadable"
    if manifest.get("source") != dict(source):
        return "it was made from another file"
    for name, file in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != file["num_bytes"]:
            return f"{name} has {path.stat().st_size} bytes instead of {file['num_bytes']}"
    return weights_damage(folder)


def header_damage(path: Path) -> str:
    """The damage of a safetensors file's header, or "" if it fits the file's size."""
    num_bytes = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_MAX_HEADER_BYTES, num_bytes - 8):
            return f"{path.name} is not a complete safetensors file"
        raw = file.read(length)
    try:
        header = parse_json(raw)
        end = max(
            (entry["data_offsets"][1] for name, entry in header.items() if name != _METADATA), default=0
        )
        is_whole = 8 + length + end == num_bytes
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return f"{path.name} has a damaged header"
    return "" if is_whole else f"{path.name} is cut short or has grown"


def weight_names(folder: Path) -> list[str]:
    """The names of a model's weight files, all in `folder`. Raises OSError, or ValueError for a bad index."""
    index = folder / INDEX
    if not index.is_file():
        return [WEIGHTS]
    parsed = parse_json(index.read_text(encoding="utf-8"))
    file_of = parsed.get("weight_map") if isinstance(parsed, dict) else None
    names = list(file_of.values()) if isinstance(file_of, dict) else []
    if not names or not all(map(_is_plain, names)):
        raise ValueError(f"{INDEX} names no files beside it")
    return sorted(set(names))


def _is_plain(name: object) -> bool:
    """Whether it is a file's name, of a file that can only lie in the folder itself."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and name.isprintable()
        and not any(separator in name for separator in "/\\:")
    )


def weights_damage(folder: Path) -> str:
    """The visible damage of a folder's weights, in a GGUF file or in safetensors, or ""."""
    try:
        layout = read_layout(folder)
    except ValueError as error:
        return str(error)
    if layout:
        return layout.flaw()
    try:
        names = weight_names(folder)
    except ValueError:
        return f"{INDEX} is damaged"
    if missing := [name for name in names if not (folder / name).is_file()]:
        return f"{missing[0]} is missing (weights must be safetensors)"
    return next((damage for name in names if (damage := header_damage(folder / name))), "")


def remove_if_damaged(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the files of a prepared folder, and of those whose content differs from the manifest.

    Reads all of them. If there is a damaged one, the folder is removed.
    """
    manifest = read_manifest(folder)
    files = manifest["files"] if manifest else {}

    def is_damaged(name: str, sha256: str) -> bool:
        path = folder / name
        return not path.is_file() or sha256_of(path).hexdigest() != sha256

    damaged = [name for name, file in files.items() if is_damaged(name, file["sha256"])]
    if manifest is None and folder.is_dir():
        damaged = [MANIFEST]
    if damaged:
        shutil.rmtree(folder)
    return tuple(files), tuple(damaged)


@dataclass(frozen=True, slots=True)
class Source:
    """A GGUF file, and the facts about it that the manifest records."""

    file: Path
    facts: Mapping[str, Any]


def prepare(source: Source, folder: Path, work: Path, job: Monitor) -> Path:
    """Prepare `folder`, which must not exist, for `source`; `work` is an empty folder beside it.

    Raises DataError for a file that cannot be used, MachineError for lack of memory or space.
    """
    fresh = work / "prepared"
    fresh.mkdir()
    what = f"preparing {source.file.name}"

    def measure(stdout: str) -> object:
        job.report(what, _percent(stdout), 100)
        return stdout

    beside = ("beside",) if source.file.parent == folder.parent else ()
    arguments = (str(source.file.absolute()), str(fresh), *beside)
    program = worker("completion_engine.models.gguf_worker", arguments, _QUIET, _STALL_S)
    outcome = run_program(program, work, job, measure)
    if outcome.exit_code != 0:
        raise _explain(source.file, outcome)
    write_manifest(fresh, source.facts)
    job.check()
    fresh.replace(folder)
    job.report(what, 100, 100)
    return folder


def _percent(stdout: str) -> int:
    steps = [message["step"] for message in messages(stdout) if "step" in message]
    return sum(_SHARE.get(step, 0) for step in steps[:-1])


def _explain(source: Path, outcome: ProgramOutcome) -> SlipstreamError:
    failed = [message for message in messages(outcome.stdout) if "error" in message]
    if failed and failed[-1]["fault"] == "data":
        return DataError(
            f"{source.name} cannot be used: {failed[-1]['error']}.",
            advice="Use an undamaged GGUF file of a causal language model that transformers supports.",
        )
    if failed:
        return MachineError(
            f"{source.name} could not be read: {failed[-1]['error']}.",
            advice="Free some space or memory and try again.",
        )
    if outcome.is_stalled:
        return MachineError(f"Reading {source.name} made no progress and was ended.", advice="Try again.")
    if outcome.exit_code < 0:
        return MachineError(
            f"Reading {source.name} was ended by the system (signal {-outcome.exit_code}).",
            advice="This usually means too little memory. Close other programs, or choose a smaller model.",
        )
    lines = outcome.stderr.strip().splitlines() or ["no output"]
    return MachineError(
        f"The program that reads {source.name} failed: {lines[-1][:300]}",
        advice="The installation may be damaged. Run `slipstream doctor` for details.",
    )
