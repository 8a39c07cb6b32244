"""What a model folder may say: sizes within bounds, and weights of the shapes that follow from them.

A folder comes from elsewhere and may be damaged or made to hurt. Has no access to files or arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from completion_engine.errors import DataError

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
_MAX_SAID = 60  # characters of an odd value that a message repeats


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
    said = repr(value)
    return said if len(said) <= _MAX_SAID else f"{said[:_MAX_SAID]} …"


def _refuse(reason: str) -> NoReturn:
    raise DataError(
        f"The model is damaged: {reason}.", advice="Download it again with `slipstream models pull`."
    )
