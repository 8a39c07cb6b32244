"""Models of a given geometry with random weights: for speed only, never for text."""

from __future__ import annotations

from typing import Any

import torch

from completion_engine.gpu.memory import Geometry

_INITIAL_SPREAD = 0.02


def random_model(geometry: Geometry, device: torch.device, dtype: torch.dtype) -> Any:
    """A Qwen2 of transformers, made on the device."""
    from transformers import AutoModelForCausalLM, GenerationConfig, Qwen2Config  # noqa: PLC0415 - seconds

    config = Qwen2Config(  # type: ignore[call-arg]  # takes any further key, as head_dim
        vocab_size=geometry.vocab_size,
        hidden_size=geometry.hidden_size,
        intermediate_size=geometry.mlp_size,
        num_hidden_layers=geometry.num_layers,
        num_attention_heads=geometry.num_heads,
        num_key_value_heads=geometry.num_kv_heads,
        head_dim=geometry.head_size,
        max_position_embeddings=32768,
        tie_word_embeddings=geometry.is_tied,
        initializer_range=_INITIAL_SPREAD,
    )
    torch.manual_seed(0)
    with device:
        model: Any = AutoModelForCausalLM.from_config(config, dtype=dtype)  # type: ignore[no-untyped-call]  # as below
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # transformers is untyped
    return model.eval().requires_grad_(False)
