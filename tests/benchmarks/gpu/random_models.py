"""Models of a given geometry with random weights: for speed only, never for text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from completion_engine.gpu.memory import Geometry
from completion_engine.target_model.llama_family import FamilyModel, LayerParts
from completion_engine.target_model.weights import Weights

_INITIAL_SPREAD = 0.02


def random_model(geometry: Geometry, device: torch.device, dtype: torch.dtype) -> Any:
    """A Qwen2 of transformers, made on the device."""
    from transformers import AutoModelForCausalLM, GenerationConfig, Qwen2Config

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


class _Held(dict[str, torch.Tensor], Weights):
    """Tensors in memory."""


class HandedOver(FamilyModel):
    """Takes the weights out of a model of transformers, which is of no use afterwards.

    Each weight can be read once and is then released, so the caller holds it alone.
    """

    def __init__(self, model: Any) -> None:
        self._held = _Held(model.state_dict())
        super().__init__(model.config.to_dict(), self._held)
        model.to("meta")

    def product(self, index: int, part: str) -> torch.Tensor:
        """A layer's weight. Raises KeyError the second time."""
        found = super().product(index, part)
        self._release(name for name, held in self._held.items() if held is found)
        return found

    def layer(self, index: int, *, reads_products: bool = True) -> LayerParts:
        """One layer's parts. Raises KeyError the second time if it reads the products."""
        parts = super().layer(index, reads_products=reads_products)
        if reads_products:
            self._release(name for name in self._held if name.startswith(f"model.layers.{index}."))
        return parts

    def _release(self, names: Iterable[str]) -> None:
        for name in list(names):
            del self._held[name]
