"""What a converted model's folder must contain, written beside it, and cheap and full checks of that.

Knows the layout of safetensors' header and the manifest. Must not know any model library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from completion_engine.models.partial import sha256_of
from completion_engine.runtime import parse_json

MANIFEST = "manifest.json"
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
NEEDED = ("config.json", "tokenizer.json", WEIGHTS)
_FORMAT = 1
_METADATA = "__metadata__"
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
        manifest: dict[str, Any] = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        is_usable = (
            manifest["format"] == _FORMAT
            and isinstance(manifest["source"], dict)
            and all(name in files for name in NEEDED)
            and all(map(_is_plain, files))
            and all(type(file["num_bytes"]) is int and type(file["sha256"]) is str for file in files.values())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if is_usable else None


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
    told = parse_json(index.read_text(encoding="utf-8"))
    file_of = told.get("weight_map") if isinstance(told, dict) else None
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


def shards_damage(folder: Path) -> str:
    """What is wrong with a folder's weights, in one file or in several with an index; "" for nothing."""
    try:
        names = weight_names(folder)
    except ValueError:
        return f"{INDEX} is damaged"
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
