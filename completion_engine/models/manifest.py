"""What a converted model's folder must contain, written beside it, and cheap and full checks of that.

Knows the layout of safetensors' header and the manifest. Must not know any model library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from completion_engine.models.partial import sha256_of

MANIFEST = "manifest.json"
WEIGHTS = "model.safetensors"
NEEDED = ("config.json", "tokenizer.json", WEIGHTS)
_FORMAT = 1
_MAX_HEADER_BYTES = 100 << 20  # the format's own limit


def write_manifest(folder: Path, source: Mapping[str, Any], on_bytes: Callable[[int], None]) -> None:
    """Record size and SHA-256 of every file in `folder`, and what it was made from."""
    files: dict[str, dict[str, Any]] = {}
    done = 0
    for path in sorted(folder.iterdir()):
        digest = sha256_of(path, on_bytes=_shifted(on_bytes, done))
        files[path.name] = {"num_bytes": path.stat().st_size, "sha256": digest.hexdigest()}
        done += path.stat().st_size
    manifest = {"format": _FORMAT, "source": dict(source), "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _shifted(on_bytes: Callable[[int], None], base: int) -> Callable[[int], None]:
    return lambda num_bytes: on_bytes(base + num_bytes)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest, or None when there is none that can be used."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        usable = manifest["format"] == _FORMAT and all(name in manifest["files"] for name in NEEDED)
        sizes = [int(file["num_bytes"]) for file in manifest["files"].values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if usable and sizes else None


def find_damage(folder: Path, source: Mapping[str, Any]) -> str:
    """What is visibly wrong with a converted model, or "" for nothing. Reads sizes and one header only."""
    manifest = read_manifest(folder)
    if manifest is None:
        return "its manifest is missing or unreadable"
    if manifest["source"] != dict(source):
        return "it was made from another file"
    for name, file in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != file["num_bytes"]:
            return f"{name} has {path.stat().st_size} bytes instead of {file['num_bytes']}"
    return header_damage(folder / WEIGHTS)


def header_damage(path: Path) -> str:
    """What is wrong with the header of a safetensors file, or "" when it fits the file's size."""
    num_bytes = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_MAX_HEADER_BYTES, num_bytes - 8):
            return f"{path.name} is no safetensors file, or cut short"
        raw = file.read(length)
    try:
        header = json.loads(raw)
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return f"{path.name} has a damaged header"
    if 8 + length + max(ends, default=0) != num_bytes:
        return f"{path.name} is cut short or has grown"
    return ""


def shards_damage(folder: Path) -> str:
    """What is wrong with a folder's weights, in one file or in several with an index; "" for nothing."""
    index = folder / "model.safetensors.index.json"
    names = [WEIGHTS]
    if index.is_file():
        try:
            names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError):
            return f"{index.name} is damaged"
    if missing := [name for name in names if not (folder / name).is_file()]:
        return f"{missing[0]} is missing (weights must be safetensors)"
    return next((damage for name in names if (damage := header_damage(folder / name))), "")


def find_hash_damage(folder: Path, on_bytes: Callable[[int], None]) -> tuple[str, ...]:
    """The files whose content is not what the manifest says. Reads everything."""
    manifest = read_manifest(folder)
    if manifest is None:
        return (MANIFEST,)
    damaged, done = [], 0
    for name, file in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            damaged.append(name)
            continue
        digest = sha256_of(path, on_bytes=_shifted(on_bytes, done))
        done += path.stat().st_size
        if digest.hexdigest() != file["sha256"]:
            damaged.append(name)
    return tuple(damaged)
