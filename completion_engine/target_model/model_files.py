"""A model folder as it lies on disk: its configuration and its weights, read without building the model.

Building it is transformers' work and takes seconds; what runs a model by kernels of its own needs neither
the modules nor their library. Knows nothing of kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from completion_engine.models.manifest import weight_names
from completion_engine.runtime import parse_json

Config = Mapping[str, Any]  # what `config.json` says
Weights = Mapping[str, Tensor]  # by the names that files have
Affine = tuple[Tensor, Tensor | None]  # a layer's weight [num_outputs, num_inputs] and its bias

# Of what is asked for before anything is checked.
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
    """The safetensors files of the model in `folder`. Raises OSError or ValueError for a damaged index."""
    return [folder / name for name in weight_names(folder)]


class StoredWeights(Mapping[str, Tensor]):
    """The tensors of a folder's safetensors files by name, each read when it is asked for, as `dtype`.

    Raises OSError or safetensors' own error where a file is missing or damaged.
    """

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        self._dtype = dtype
        files: list[Any] = [safe_open(file, "pt") for file in weight_files(folder)]
        self._file_of = {name: file for file in files for name in file.keys()}  # noqa: SIM118 - no mapping

    def __getitem__(self, name: str) -> Tensor:
        """A tensor that may lie in the file's own pages: to be read, or copied, not to be written."""
        tensor: Tensor = self._file_of[name].get_tensor(name)
        return tensor.to(self._dtype)

    def __contains__(self, name: object) -> bool:
        return name in self._file_of  # a mapping's own would read the tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)
