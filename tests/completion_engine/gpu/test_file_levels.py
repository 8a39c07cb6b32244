"""A target of a GGUF file on our kernels: it computes with the file's own numbers, whatever the types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from completion_engine.gpu.reference import reference_logits
from completion_engine.gpu.weights import Bits
from completion_engine.models.gguf_layout import BLOCK_SIZES
from completion_engine.target_model.decoder import lay_out
from completion_engine.target_model.gguf_blocks import QuantisedWeight, quantised
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.llama_family import FamilyModel
from completion_engine.target_model.weights import Weights
from tests.completion_engine.target_model.test_weights import HALVES_AT, drawn

CAPACITY, HIDDEN, MLP, VOCABULARY = 300, 64, 256, 90
CONFIG = {
    "model_type": "qwen2", "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e4,
    "hidden_size": HIDDEN, "intermediate_size": MLP, "num_attention_heads": 2, "num_key_value_heads": 1,
    "num_hidden_layers": 1, "vocab_size": VOCABULARY, "tie_word_embeddings": False,
    "max_position_embeddings": 1024,
}  # fmt: skip
SHAPES = {
    "self_attn.q_proj": (64, HIDDEN), "self_attn.k_proj": (32, HIDDEN), "self_attn.v_proj": (32, HIDDEN),
    "self_attn.o_proj": (HIDDEN, 64), "mlp.gate_proj": (MLP, HIDDEN), "mlp.up_proj": (MLP, HIDDEN),
    "mlp.down_proj": (HIDDEN, MLP),
}  # fmt: skip
MIXED = dict(zip(SHAPES, ("Q5_0", "Q5_0", "Q8_0", "Q4_0", "Q5_0", "Q5_0", "Q6_K"), strict=True))
SHRINK = {"Q8_0": 0.1, "Q6_K": 0.01, "Q4_K": 0.05} | dict.fromkeys(("Q4_0", "Q4_1", "Q5_0", "Q5_1"), 1.0)
UNLIKE = MIXED | {"self_attn.k_proj": "Q4_1", "mlp.up_proj": "Q5_1", "mlp.down_proj": "Q4_K"}


class FileWeights(Weights):
    """Random tensors. Products and the head have blocks."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self._kinds = {f"model.layers.0.{part}.weight": kind for part, kind in kinds.items()}
        self._kinds["lm_head.weight"] = "Q8_0"
        self._shapes: dict[str, tuple[int, ...]] = {
            f"model.layers.0.{part}.weight": shape for part, shape in SHAPES.items()
        }
        for name in ("lm_head", "model.embed_tokens"):
            self._shapes[f"{name}.weight"] = (VOCABULARY, HIDDEN)
        for name in (
            "model.layers.0.input_layernorm",
            "model.layers.0.post_attention_layernorm",
            "model.norm",
        ):
            self._shapes[f"{name}.weight"] = (HIDDEN,)

    def __getitem__(self, name: str) -> Tensor:
        found = self.quantised(name)
        if found is not None:
            return torch.from_numpy(found.values(0, len(found.levels)))
        shape = self._shapes[name]
        generator = torch.Generator().manual_seed(len(name))
        return torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=generator)

    def quantised(self, name: str) -> QuantisedWeight | None:
        """See `Weights.quantised`; numbers are about as large as those of a model."""
        if name not in self._kinds:
            return None
        kind, (num_outputs, num_inputs) = self._kinds[name], self._shapes[name]
        raw = drawn(kind, num_outputs, num_inputs, seed=len(name)).reshape(-1, BLOCK_SIZES[kind][1])
        for at in HALVES_AT.get(kind, (0,)):
            halves = np.ascontiguousarray(raw[:, at : at + 2]).view(np.float16) * np.float16(SHRINK[kind])
            raw[:, at : at + 2] = halves.view(np.uint8)
        return quantised(raw.reshape(num_outputs, -1), kind)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)


def decoder_of(kinds: dict[str, str], device: torch.device, bits: Bits) -> Any:
    from completion_engine.gpu.decoder import GraphedDecoder

    return GraphedDecoder(FamilyModel(CONFIG, FileWeights(kinds)), CAPACITY, device, bits)


def test_it_computes_what_the_decoded_file_computes(device: torch.device) -> None:
    found = decoder_of(MIXED, device, 8)
    wanted = reference_logits(
        FamilyModel(CONFIG, FileWeights(MIXED)), TOKENS, torch.device("cpu"), 8, len(TOKENS)
    )
    assert [product.weight.form.bits for product in found.layers[0].qkv] == [5, 8]
    tolerance = 2e-2 if device.type == "cuda" else 1e-5
    assert (logits_of(found, device) - wanted).norm() < tolerance * wanted.norm()


def test_gate_and_up_of_two_types_are_rounded_alike(device: torch.device) -> None:
    """One program computes both; all others keep their levels."""
    found = decoder_of(UNLIKE, device, 8)
    assert [product.weight.form.bits for product in found.layers[0].qkv] == [5, 4, 8]
    assert (found.layers[0].gate.weight.form.block, found.layers[0].up.weight.form.block) == (0, 0)
    assert found.layers[0].down.weight.form.has_floors


def test_sixteen_bits_take_the_numbers_that_the_file_means(device: torch.device) -> None:
    found = decoder_of(MIXED, device, 16)
    assert {product.weight.form.bits for product in found.layers[0].qkv} == {16}


TOKENS = list(range(3, 14))


def logits_of(decoder: Any, device: torch.device) -> Tensor:
    """Logits of all tokens."""
    sizes = (decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size)
    cache = KVCache(CacheShape(*sizes, CAPACITY, decoder.embedding.dtype, device))
    layout = lay_out(range(-1, len(TOKENS) - 1))
    found: Tensor = decoder.forward(torch.tensor(TOKENS), layout, [cache], len(TOKENS))
    return found.cpu().float()
