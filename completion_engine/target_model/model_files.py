"""A model folder on disk: its configuration and its weights, read without building the model.

Building it with transformers takes seconds, and the engine's own kernels need neither the modules nor the
library. Has no access to kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from completion_engine.models.gguf_layout import LAYOUT, read_layout
from completion_engine.models.manifest import weight_names
from completion_engine.runtime import parse_json
from completion_engine.target_model.gguf_weights import GgufWeights
from completion_engine.target_model.weights import StoredWeights, Weights

Config = Mapping[str, Any]  # what `config.json` says

# Types of the values that are read before the check.
_KINDS_OF_VALUES = {"model_type": str, "hidden_act": str, "layer_types": list}


def read_config(folder: Path) -> Config:
    """What the folder's `config.json` says. Raises OSError or ValueError where it cannot be read."""
    config = parse_json((folder / "config.json").read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise ValueError("config.json holds no object")  # noqa: TRY004 - a damaged file, no wrong argument
    for name, kind in _KINDS_OF_VALUES.items():
        if not isinstance(config.get(name), kind | None):
            raise ValueError(f"its config.json says no {kind.__name__} for {name}")  # noqa: TRY004 - as above
    return config


def completed(folder: Path) -> Config:
    """The folder's configuration with what transformers fills in where `config.json` is silent. A second.

    Raises ValueError where transformers can make nothing of it.
    """
    from transformers import AutoConfig  # noqa: PLC0415 - seconds that most folders need not pay

    try:
        config: dict[str, Any] = AutoConfig.from_pretrained(folder, local_files_only=True).to_dict()
    except Exception as error:  # whatever its checks and those of the libraries below raise
        raise ValueError(f"config.json cannot be understood ({error})") from error
    return config


def weight_files(folder: Path) -> list[Path]:
    """The files that the weights of the model in `folder` follow from: safetensors, or GGUF and its layout.

    Raises OSError or ValueError for a damaged index or layout.
    """
    layout = read_layout(folder)
    return [layout.file, folder / LAYOUT] if layout else [folder / name for name in weight_names(folder)]


def open_weights(folder: Path, dtype: torch.dtype) -> Weights:
    """The weights of the model in `folder`, read as `dtype`. Raises as `weight_files` does."""
    layout = read_layout(folder)
    return GgufWeights(layout, dtype) if layout else StoredWeights(weight_files(folder), dtype)
