"""Models of the real shapes with random weights, for speed and exactness on machines without a model.

Each weight follows from its name and size alone, so two runs compare the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from completion_engine.gpu.memory import Geometry
from completion_engine.models.gguf_layout import BLOCK_SIZES
from completion_engine.target_model.gguf_blocks import QuantisedWeight, quantised
from completion_engine.target_model.llama_family import FamilyModel
from completion_engine.target_model.weights import Weights

_HALVES_AT = {"Q4_K": (0, 2), "Q6_K": (208,)}  # float16 numbers of a block; others begin with one
_FILE_SCALE = {
    "Q4_K": 2e-4,
    "Q6_K": 2e-5,
    "Q5_0": 4e-3,
    "Q8_0": 4e-4,
}  # makes weights as large as models have


GEOMETRIES: Mapping[str, Geometry] = MappingProxyType(
    {
        "0.5B": Geometry(24, 896, 4864, 14, 2, 64, 151936, is_tied=True),
        "1.5B": Geometry(28, 1536, 8960, 12, 2, 128, 151936, is_tied=True),
        "3B": Geometry(36, 2048, 11008, 16, 2, 128, 151936, is_tied=True),
        "7B": Geometry(28, 3584, 18944, 28, 4, 128, 152064, is_tied=False),
        "14B": Geometry(48, 5120, 13824, 40, 8, 128, 152064, is_tied=False),
        "32B": Geometry(64, 5120, 27648, 40, 8, 128, 152064, is_tied=False),
    }
)
"""Qwen2.5-Coder's sizes, as their publisher's config.json files say."""


class RandomWeights(Weights):
    """Weights of a geometry, each drawn on the device when it is asked for; the same each time.

    With `is_file`, products have blocks of levels, as in a file in Q4_K_M.
    """

    def __init__(
        self, geometry: Geometry, device: torch.device, num_layers: int, *, is_file: bool = False
    ) -> None:
        g = geometry
        kept, queries = g.num_kv_heads * g.head_size, g.num_heads * g.head_size
        layer = {
            "self_attn.q_proj.weight": (queries, g.hidden_size), "self_attn.q_proj.bias": (queries,),
            "self_attn.k_proj.weight": (kept, g.hidden_size), "self_attn.k_proj.bias": (kept,),
            "self_attn.v_proj.weight": (kept, g.hidden_size), "self_attn.v_proj.bias": (kept,),
            "self_attn.o_proj.weight": (g.hidden_size, queries),
            "mlp.gate_proj.weight": (g.mlp_size, g.hidden_size),
            "mlp.up_proj.weight": (g.mlp_size, g.hidden_size),
            "mlp.down_proj.weight": (g.hidden_size, g.mlp_size),
            "input_layernorm.weight": (g.hidden_size,), "post_attention_layernorm.weight": (g.hidden_size,),
        }  # fmt: skip
        ends = {
            "model.embed_tokens.weight": (g.vocab_size, g.hidden_size),
            "model.norm.weight": (g.hidden_size,),
        }
        heads = {} if g.is_tied else {"lm_head.weight": (g.vocab_size, g.hidden_size)}
        layers = {
            f"model.layers.{at}.{name}": size for at in range(num_layers) for name, size in layer.items()
        }
        self._sizes: dict[str, tuple[int, ...]] = {**ends, **heads, **layers}
        self._device, self._is_file = device, is_file

    def quantised(self, name: str) -> QuantisedWeight | None:
        """See `Weights.quantised`."""
        is_sure = any(part in name for part in ("embed_tokens", "lm_head", "v_proj", "down_proj"))
        num_outputs, num_inputs = self._sizes[name]
        return _random_file_weight(num_outputs, num_inputs, is_sure=is_sure) if self._is_file else None

    def __getitem__(self, name: str) -> Tensor:
        size, place = self._sizes[name], sorted(self._sizes).index(name)
        generator = torch.Generator(self._device).manual_seed(place)
        drawn = torch.randn(size, generator=generator, device=self._device)
        scale = size[-1] ** -0.5 if len(size) == 2 else 0.1
        return (drawn * scale + ("norm" in name)).to(torch.bfloat16)

    def __contains__(self, name: object) -> bool:
        return name in self._sizes

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """See `Weights.shape_of`."""
        return self._sizes[name]


@lru_cache(maxsize=8)  # speed asks for the same shapes in every layer
def _random_file_weight(num_outputs: int, num_inputs: int, *, is_sure: bool) -> QuantisedWeight:
    """Random blocks of the type that a file in Q4_K_M has for such a weight."""
    has_super_blocks = num_inputs % BLOCK_SIZES["Q4_K"][0] == 0
    kind = ("Q6_K" if is_sure else "Q4_K") if has_super_blocks else ("Q8_0" if is_sure else "Q5_0")
    num_values, num_bytes = BLOCK_SIZES[kind]
    generator = np.random.default_rng(num_outputs)
    raw = generator.integers(0, 256, (num_outputs, num_inputs // num_values, num_bytes), np.uint8)
    for at in _HALVES_AT.get(kind, (0,)):
        raw[..., at : at + 2] = np.array([_FILE_SCALE[kind]], np.float16).view(np.uint8)
    return quantised(raw.reshape(num_outputs, -1), kind)


def random_model(
    geometry: Geometry, device: torch.device, num_layers: int = 0, *, is_file: bool = False
) -> FamilyModel:
    """A model with random weights; `num_layers` 0 takes those of the geometry."""
    num_layers = num_layers or geometry.num_layers
    config = {
        "model_type": "qwen2", "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "hidden_size": geometry.hidden_size, "intermediate_size": geometry.mlp_size,
        "num_attention_heads": geometry.num_heads, "num_key_value_heads": geometry.num_kv_heads,
        "num_hidden_layers": num_layers, "vocab_size": geometry.vocab_size,
        "tie_word_embeddings": geometry.is_tied, "max_position_embeddings": 32768,
    }  # fmt: skip
    return FamilyModel(config, RandomWeights(geometry, device, num_layers, is_file=is_file))
