"""The program that compiles every kernel a start needs, by running a toy model. A child of `warmup`.

The toy model is small and random, with its own drafter, and has every kind of weight and of pass: a kernel is
the same for models of all sizes.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

import torch
from filelock import FileLock
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

from completion_engine.checksum import checksum
from completion_engine.config import EngineConfig
from completion_engine.cpu.kernels.kernel_cache import (
    KERNEL_FOLDER,
    are_compiled,
    can_store,
    forget_unused,
    mark_compiled,
)
from completion_engine.cpu.kernels.stored_kernels import are_all_stored
from completion_engine.drafting.distilled import DrafterFiles
from completion_engine.drafting.drafter_network import DrafterShape, Preview
from completion_engine.load_engine import load_engine_from
from completion_engine.loading.backends import plan_here
from completion_engine.models.gguf_layout import (
    BLOCK_SIZES,
    EMBEDDING,
    GgufLayout,
    TensorLayout,
    write_layout,
)

TARGET, DRAFTER, WEIGHTS = "target", "drafter", "weights.bin"
_HIDDEN, _HEAD, _NUM_HEADS, _NUM_KV = 64, 64, 4, 2
_MLP, _NUM_TOKENS, _NUM_LAYERS, _RANK = 256, 320, 1, 16
_ATTENDED, _KEPT = _NUM_HEADS * _HEAD, _NUM_KV * _HEAD
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
# Types of the products' weights: together they are packed in 4, 5 and 8 bits, and some are rounded.
_QUANTISED = {
    "self_attn.q_proj": ("Q5_0", _ATTENDED, _HIDDEN),
    "self_attn.k_proj": ("Q8_0", _KEPT, _HIDDEN),
    "self_attn.v_proj": ("Q5_1", _KEPT, _HIDDEN),
    "self_attn.o_proj": ("Q5_0", _HIDDEN, _ATTENDED),
    "mlp.gate_proj": ("Q4_0", _MLP, _HIDDEN),
    "mlp.up_proj": ("Q4_1", _MLP, _HIDDEN),
    "mlp.down_proj": ("Q6_K", _HIDDEN, _MLP),
}
# The offsets of the scale and the minimum in a block, and their values, for each type.
_NUMBERS = {
    "Q4_0": {0: 2**-6}, "Q4_1": {0: 2**-6, 2: -(2**-3)}, "Q5_0": {0: 2**-7}, "Q5_1": {0: 2**-7, 2: -(2**-3)},
    "Q8_0": {0: 2**-10}, "Q6_K": {208: 2**-14},
}  # fmt: skip


def compile_all(device: str) -> None:
    """Compile what the default target needs on the CPU, by writing a few tokens with one like it.

    Nothing where `device` means a GPU. One of several first starts compiles, and the others wait for it.
    """
    if can_store():
        with FileLock(KERNEL_FOLDER / "compiling.lock"):
            if not are_compiled(device):
                _compile(device)
        forget_unused(KERNEL_FOLDER, time.time())


def _compile(device: str) -> None:
    kind = plan_here(device, "auto").backends[0].device.type
    if kind == "cpu":
        folder = KERNEL_FOLDER / "toy"  # replaced if a killed process left it
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            write_toy_model(folder)
            config = EngineConfig(TARGET, draft_model=str(folder / DRAFTER), device="cpu")
            load_engine_from(folder / TARGET, config)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if are_all_stored():
        mark_compiled(kind)


def write_toy_model(folder: Path) -> None:
    """Write the folders `TARGET` and `DRAFTER` and the target's `WEIGHTS` into `folder`."""
    generator = torch.Generator().manual_seed(0)
    target = folder / TARGET
    target.mkdir()
    (target / "config.json").write_text(json.dumps(_CONFIG), encoding="utf-8")
    _tokenizer().save(str(target / "tokenizer.json"))
    _write_weights(folder / WEIGHTS, target, generator)
    _drafter(generator).save(folder / DRAFTER)


def _write_weights(file: Path, target: Path, generator: torch.Generator) -> None:
    """Write the weights into `file` as a GGUF file holds them, and their layout into `target`."""
    layouts: dict[str, TensorLayout] = {}
    content = bytearray()

    def add(name: str, kind: str, raw: Tensor, *shape: int) -> None:
        levels = raw.contiguous().view(torch.uint8).numpy()
        layouts[name] = TensorLayout(kind, shape, len(content), checksum=checksum(levels))
        content.extend(levels.tobytes())

    add(EMBEDDING, "BF16", _random(generator, _NUM_TOKENS, _HIDDEN).bfloat16(), _NUM_TOKENS, _HIDDEN)
    add("model.norm.weight", "F32", torch.ones(_HIDDEN), _HIDDEN)
    layer = "model.layers.0"
    for part, (kind, num_outputs, num_inputs) in _QUANTISED.items():
        raw = _blocks(generator, kind, num_outputs, num_inputs)
        add(f"{layer}.{part}.weight", kind, raw, num_outputs, num_inputs)
    for part, size in (("q_proj", _ATTENDED), ("k_proj", _KEPT), ("v_proj", _KEPT)):
        add(f"{layer}.self_attn.{part}.bias", "F32", _random(generator, size), size)
    for part in ("input_layernorm", "post_attention_layernorm"):
        add(f"{layer}.{part}.weight", "F32", torch.ones(_HIDDEN), _HIDDEN)
    file.write_bytes(content)
    write_layout(target, GgufLayout(file, len(content), layouts), is_beside=True)


def _blocks(generator: torch.Generator, kind: str, num_outputs: int, num_inputs: int) -> Tensor:
    """Return blocks of random levels as bytes, all with the same scale and minimum."""
    num_values, num_bytes = BLOCK_SIZES[kind]
    shape = num_outputs, num_inputs // num_values, num_bytes
    raw = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    for at, number in _NUMBERS[kind].items():
        raw[..., at : at + 2] = torch.tensor([number], dtype=torch.float16).view(torch.uint8)
    return raw


def _random(generator: torch.Generator, *shape: int) -> Tensor:
    """Return integers times a power of two, which are the same on all machines."""
    return torch.randint(-(1 << 11), (1 << 11) + 1, shape, generator=generator) / (1 << 13)


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
    """Return a tokenizer with one token for each byte, and the markers."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = FastTokenizer(models.BPE({character: at for at, character in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(marker, special=True) for marker in _MARKERS])
    return made


if __name__ == "__main__":
    compile_all(sys.argv[1])
