"""Damaged model folders. The oracle: a target, or an error of ours with advice; no bare exception, no panic.

Owns how the files of a toy model are damaged.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from completion_engine.errors import SlipstreamError
from completion_engine.loading.model import load_language_model
from completion_engine.loading.toy_model import TARGET, write_toy_model
from completion_engine.prompting.tokenizer import load_tokenizer

_FILES = ("config.json", "tokenizer.json", "model.safetensors")
_VALUES: tuple[Any, ...] = (None, -1, 0, 2**31, 2**63, 1.5, "x", "", [], {}, [[[]]], True, "qwen2", 10**30)


@cache
def _sound() -> Path:
    """A toy model's folder, as it should be."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-model-"))
    write_toy_model(folder)
    return folder / TARGET


def check(rng: random.Random) -> None:
    """One folder with one file damaged: a byte, a piece, a value of its JSON."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = Path(temporary, "target")
        shutil.copytree(_sound(), folder)
        name = rng.choice(_FILES)
        (folder / name).write_bytes(_damaged((folder / name).read_bytes(), rng))
        try:
            if name == "tokenizer.json":
                load_tokenizer(folder).encode("def f():\n")
            else:
                load_language_model(folder, "cpu", "auto", capacity=256)
        except SlipstreamError as error:
            assert error.advice


def _damaged(data: bytes, rng: random.Random) -> bytes:
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
    while isinstance(inner, dict) and inner:
        key = rng.choice(sorted(inner))
        if isinstance(inner[key], dict) and inner[key] and rng.random() < 0.7:
            inner = inner[key]
            continue
        if rng.random() < 0.2:
            del inner[key]
        else:
            inner[key] = rng.choice(_VALUES)
        break
    return json.dumps(value).encode()
