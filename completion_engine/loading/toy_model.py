"""A target in miniature with a drafter of its own: every kind of weight and of pass, and no sense.

What it is for is `compile_kernels`: a kernel is the same for any size of model. Owns what such folders hold.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

from completion_engine.cpu.kernels.grids import BLOCK
from completion_engine.drafting.distilled.drafter import DrafterFiles
from completion_engine.drafting.distilled.drafter_network import DrafterShape
from completion_engine.drafting.distilled.head import Preview

TARGET, DRAFTER = "target", "drafter"

_HIDDEN, _HEAD, _NUM_HEADS, _NUM_KV = 64, 64, 4, 2
_MLP, _NUM_TOKENS, _NUM_LAYERS, _RANK = 128, 320, 1, 16
_MARKERS = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_CONFIG = {
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": _HIDDEN,
    "intermediate_size": _MLP,
    "max_position_embeddings": 4096,
    "num_attention_heads": _NUM_HEADS,
    "num_hidden_layers": _NUM_LAYERS,
    "num_key_value_heads": _NUM_KV,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": True,
    "vocab_size": _NUM_TOKENS,
}


def write_toy_model(folder: Path) -> None:
    """Write the folders `TARGET` and `DRAFTER` into `folder`."""
    generator = torch.Generator().manual_seed(0)
    target = folder / TARGET
    target.mkdir()
    (target / "config.json").write_text(json.dumps(_CONFIG), encoding="utf-8")
    _tokenizer().save(str(target / "tokenizer.json"))
    save_file(_weights(generator), target / "model.safetensors")
    _drafter(generator).save(folder / DRAFTER)


def _weights(generator: torch.Generator) -> dict[str, Tensor]:
    """Weights as model files have them: on grids of 16, 32 and 64 levels, and on none."""
    attended, kept = _NUM_HEADS * _HEAD, _NUM_KV * _HEAD
    found = {
        "model.embed_tokens.weight": _random(generator, _NUM_TOKENS, _HIDDEN),
        "model.norm.weight": torch.ones(_HIDDEN),
        "self_attn.q_proj.weight": _on_grid(generator, 32, attended, _HIDDEN),
        "self_attn.k_proj.weight": _on_grid(generator, 32, kept, _HIDDEN),
        "self_attn.v_proj.weight": _on_grid(generator, 32, kept, _HIDDEN),
        "self_attn.q_proj.bias": _random(generator, attended),
        "self_attn.k_proj.bias": _random(generator, kept),
        "self_attn.v_proj.bias": _random(generator, kept),
        "self_attn.o_proj.weight": _on_grid(generator, 32, _HIDDEN, attended),
        "mlp.gate_proj.weight": _on_grid(generator, 16, _MLP, _HIDDEN),
        "mlp.up_proj.weight": _on_grid(generator, 16, _MLP, _HIDDEN),
        "mlp.down_proj.weight": _on_grid(generator, 64, _HIDDEN, _MLP),
        "input_layernorm.weight": torch.ones(_HIDDEN),
        "post_attention_layernorm.weight": torch.ones(_HIDDEN),
    }
    full = {name if name.startswith("model.") else f"model.layers.0.{name}": x for name, x in found.items()}
    return {name: x.to(torch.bfloat16) for name, x in full.items()}


def _random(generator: torch.Generator, *shape: int) -> Tensor:
    """Whole numbers times a power of two, which every machine draws alike."""
    return torch.randint(-(1 << 11), (1 << 11) + 1, shape, generator=generator) / (1 << 13)


def _on_grid(generator: torch.Generator, num_levels: int, num_outputs: int, num_inputs: int) -> Tensor:
    """Each block of weights a power of two times whole numbers, the lowest of which occurs."""
    half = num_levels // 2
    shape = num_outputs, num_inputs // BLOCK, BLOCK
    levels = torch.randint(-half, half, shape, generator=generator)
    levels[..., 0], levels[..., 1] = -half, half - 1
    return (levels / 256).view(num_outputs, num_inputs)


def _drafter(generator: torch.Generator) -> DrafterFiles:
    shape = DrafterShape(
        num_layers=_NUM_LAYERS,
        num_kv_heads=_NUM_KV,
        head_size=_HEAD,
        hidden_size=_HIDDEN,
        vocab_size=_NUM_TOKENS,
        memory_layer=0,
        num_heads=_NUM_HEADS,
        mlp_size=_MLP,
        num_tokens=256,
    )
    weights = {name: _random(generator, *size) for name, size in shape.sizes.items()}
    preview = Preview(_random(generator, _RANK, _HIDDEN), _random(generator, _HIDDEN, _RANK))
    return DrafterFiles(TARGET, shape, (1.0,), torch.arange(shape.num_tokens), weights, preview)


def _tokenizer() -> FastTokenizer:
    """One token for each byte, and the markers."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = FastTokenizer(models.BPE({character: at for at, character in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(marker, special=True) for marker in _MARKERS])
    return made
