"""Damaged model folders. The oracle: a target, or an error of ours with advice; no bare exception, no panic.

Owns how the files of a toy model are damaged.
"""

from __future__ import annotations

import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from completion_engine.compile_kernels import TARGET, write_toy_model
from completion_engine.errors import SlipstreamError
from completion_engine.loading.model import load_language_model
from tests.fuzz.places import own_folder
from tests.stored_toy import write_stored_toy

_FILES = (
    "target/config.json",
    "target/gguf-layout.json",
    "weights.bin",
    "stored/target/config.json",
    "stored/target/model.safetensors",
)
_VALUES: tuple[Any, ...] = (None, -1, 0, 2**31, 2**63, 1.5, "x", "", [], {}, [[[]]], True, "qwen2", 10**30)


@cache
def sound_model() -> Path:
    """A toy model's folder, as it should be; `stored/target` beside it is one with safetensors."""
    folder = own_folder("model")
    write_toy_model(folder)
    (folder / "stored").mkdir()
    write_stored_toy(folder / "stored")
    return folder / TARGET


def check(rng: random.Random) -> None:
    """One folder with one file damaged: a byte, a part, a value of its JSON."""
    folder = own_folder("damaged")
    shutil.copytree(sound_model().parent, folder, dirs_exist_ok=True)
    name = rng.choice(_FILES)
    (folder / name).write_bytes(damaged((folder / name).read_bytes(), rng))
    target = folder / ("stored/target" if name.startswith("stored") else TARGET)
    try:
        load_language_model(target, "cpu", "auto", capacity=256)
    except SlipstreamError as error:
        assert error.advice


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The file with a value changed, a part replaced, or cut."""
    if data.startswith(b"{") and rng.random() < 0.7:
        return _with_odd_value(data, rng)
    at = rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + rng.randbytes(8) + data[at + 8 :]
        case 2:
            return data[:8] + rng.randbytes(8) + data[16:]
        case _:
            return rng.randbytes(8) + data[8:]


def _with_odd_value(data: bytes, rng: random.Random) -> bytes:
    """One value anywhere in the JSON is of another kind, or missing."""
    value: Any = json.loads(data)
    inner = value
    while inner:
        key = rng.choice(sorted(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
        if isinstance(inner[key], dict | list) and inner[key] and rng.random() < 0.7:
            inner = inner[key]
            continue
        if rng.random() < 0.2:
            del inner[key]
        else:
            inner[key] = rng.choice(_VALUES)
        break
    return json.dumps(value).encode()
