"""The family of models that our kernels run: Llama, Qwen2, Qwen3, Mistral; by what `config.json` says.

Owns what tells whether a configuration is of it, and the angles by which it turns queries and keys.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from completion_engine.model_files import Config, completed, read_config

_KINDS = frozenset({"llama", "qwen2", "qwen3", "mistral"})
_SAID = frozenset(
    {
        "hidden_act", "hidden_size", "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
        "rms_norm_eps", "vocab_size",
    }
)  # fmt: skip
_THETA = "rope_theta"


def read_family_config(folder: Path) -> Config:
    """The configuration in `folder`, complete where it is of the family; errors as in `read_config`."""
    config = read_config(folder)
    is_silent = not config.keys() >= _SAID or not (_THETA in config or "rope_parameters" in config)
    return completed(folder) if config.get("model_type") in _KINDS and is_silent else config


def is_of_family(config: Config) -> bool:
    """Whether a model of this configuration has exactly the structure that our kernels compute."""
    kind = config.get("model_type")
    kind_of_all = "sliding_attention" if config.get("use_sliding_window") else "full_attention"
    return (
        kind in _KINDS
        and config.get("hidden_act") == "silu"
        and all(layer == "full_attention" for layer in config.get("layer_types") or [kind_of_all])
        and not (kind == "mistral" and config.get("sliding_window"))
        and not config.get("quantization_config")
    )


def rotary_tables(
    config: Config, head_size: int, num_positions: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines [num_positions, 1, head_size] of a model of the family.

    Plain rotation by powers of theta is ours (Su et al. 2021, arXiv:2104.09864), with halves side by side
    as transformers has them; stretched ones, as of Llama 3, are its module's.
    """
    positions = torch.arange(num_positions)
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if (rope.get("rope_type") or rope.get("type") or "default") == "default":
        theta = rope.get(_THETA) or config[_THETA]
        powers = torch.arange(0, head_size, 2, dtype=torch.int64).float() / head_size
        angles = torch.outer(positions.float(), 1.0 / theta**powers).repeat(1, 2)
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    else:
        cos, sin = _stretched(config, head_size, positions, dtype)
    half = head_size // 2
    signed = torch.cat([-sin[:, :half], sin[:, half:]], dim=-1)
    return cos[:, None].contiguous(), signed[:, None].contiguous()


def _stretched(
    config: Config, head_size: int, positions: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    from transformers import LlamaConfig  # noqa: PLC0415 - seconds that plain rotation need not pay
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding  # noqa: PLC0415 - as above

    module = LlamaRotaryEmbedding(LlamaConfig.from_dict({**config, "head_dim": head_size}))
    cos, sin = module(torch.empty(0, dtype=dtype), positions[None])
    return cos[0], sin[0]
