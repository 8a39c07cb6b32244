"""A model folder on disk: its configuration and weights, read and checked without building the model.

Building it with transformers takes seconds, and the engine's own kernels need neither the modules nor the
library. A folder comes from elsewhere and may be damaged or hostile, so all sizes are bounded. Has no access
to kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch

from completion_engine.errors import DataError
from completion_engine.models.gguf_layout import LAYOUT, read_layout
from completion_engine.models.gguf_preparation import weight_names
from completion_engine.runtime import parse_json
from completion_engine.target_model.weights import GgufWeights, StoredWeights, Weights

Config = Mapping[str, Any]  # what `config.json` says

# Types of the values that are read before the check.
_KINDS_OF_VALUES = {"model_type": str, "hidden_act": str, "layer_types": list}
_MAX_SIZE = {
    "hidden_size": 1 << 16,
    "intermediate_size": 1 << 19,
    "num_hidden_layers": 1 << 10,
    "num_attention_heads": 1 << 10,
    "num_key_value_heads": 1 << 10,
    "vocab_size": 1 << 22,
    "max_position_embeddings": 1 << 28,
    "head_dim": 1 << 12,
}  # larger than any model that a single machine runs
_OPTIONAL = frozenset({"head_dim", "max_position_embeddings", "intermediate_size"})
_NUMBERS = ("rms_norm_eps", "rope_theta")  # above 0
_MAX_NUMBER = 1e18
_ROPE = ("rope_parameters", "rope_scaling")
_MAX_SHOWN = 60  # characters of an odd value that a message repeats


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


def check_sizes(config: Mapping[str, Any]) -> None:
    """Raises DataError where a size that the configuration names is none."""
    for name, largest in _MAX_SIZE.items():
        if config.get(name) is not None or name not in _OPTIONAL:
            _checked_size(config, name, largest)
    _check_numbers(config)
    for group in _ROPE:
        if not isinstance(inner := config.get(group) or {}, Mapping):
            _refuse(f"its config.json says {group} = {_short(inner)}, which is not a group")
        _check_numbers(inner)
    num_heads, num_kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    if num_heads % num_kv_heads:
        _refuse(f"{num_heads} heads of attention cannot share {num_kv_heads} heads of keys")


def _check_numbers(config: Mapping[str, Any]) -> None:
    for name in _NUMBERS:
        value = config.get(name, 1.0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value < _MAX_NUMBER:
            _refuse(f"its config.json says {name} = {_short(value)}, which is not a positive number")


def check_head(size: int) -> None:
    """Raise DataError if a head of this size has no halves to turn against each other."""
    if size < 1 or size % 2:
        _refuse(f"the size of its heads is {size}, which is not an even number")


def num_positions(config: Mapping[str, Any]) -> int | None:
    """The longest text that the model was made for; None where its configuration is silent.

    Raises as `check_sizes` does.
    """
    name = "max_position_embeddings"
    return _checked_size(config, name, _MAX_SIZE[name]) if config.get(name) is not None else None


def _checked_size(config: Mapping[str, Any], name: str, largest: int) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
        _refuse(f"its config.json says {name} = {_short(value)}, which is not a whole number up to {largest}")
    return value


def check_shapes(what: str, found: Iterable[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> None:
    """Raises DataError where one of some weights, each by name, has another shape than it must have."""
    for name, shape, wanted in found:
        if shape != wanted:
            _refuse(f"{name} of {what} has the shape {shape} instead of {wanted}")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]} …"


def _refuse(reason: str) -> NoReturn:
    raise DataError(
        f"The model is damaged: {reason}.", advice="Download it again with `slipstream models pull`."
    )


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn a ValueError in the block into a DataError, because it comes from a model's damaged files."""
    try:
        yield
    except ValueError as error:
        raise damaged(folder, error) from error


def damaged(folder: Path, error: Exception) -> DataError:
    """Return the error for a folder whose files cannot be loaded."""
    return DataError(
        f"The model in {folder} cannot be loaded: {error}",
        advice="Download it again with `slipstream models pull`.",
    )
