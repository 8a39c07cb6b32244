"""The device of kernels in tests: the GPU in bf16 if there is one, otherwise interpreted on the CPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from completion_engine.drafting.distilled import DrafterFiles
from completion_engine.drafting.drafter_network import DrafterShape, Preview
from completion_engine.gpu.weights import Bits
from completion_engine.target_model.decoder import InPlaceBranches
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel, read_family_config
from completion_engine.target_model.model_files import open_weights
from completion_engine.target_model.weights import Precision
from tests.completion_engine.gpu.interpreter import interpreted

HAS_GPU = torch.cuda.is_available()


@pytest.fixture(scope="session")
def device() -> Iterator[torch.device]:
    """The place of tests that launch kernels; skips them where they cannot be launched."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed: the GPU kernels are NOT tested here")
    if HAS_GPU:
        yield torch.device("cuda")
        return
    with interpreted():
        yield torch.device("cpu")


@pytest.fixture(scope="session", params=["bfloat16"] if HAS_GPU else ["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """What the kernels compute in."""
    found: torch.dtype = getattr(torch, request.param)
    return found


@pytest.fixture(scope="session")
def tolerance(dtype: torch.dtype) -> float:
    """The largest relative error, as a norm, that rounding explains."""
    return 1e-2 if dtype == torch.bfloat16 else 1e-5


@pytest.fixture(scope="session")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes the folder of a random model of one layer of some family."""

    def make(kind: str) -> Path:
        from transformers import AutoConfig, AutoModelForCausalLM

        config = AutoConfig.for_model(
            kind,
            vocab_size=90,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=1,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=1024,
            tie_word_embeddings=kind == "qwen3",
            initializer_range=0.3,
        )
        torch.manual_seed(0)
        made = AutoModelForCausalLM.from_config(config)
        for name, weight in made.named_parameters():
            if weight.ndim == 1:
                torch.nn.init.uniform_(weight, 0.5 if "norm" in name else -1.0, 1.5)
        folder = tmp_path_factory.mktemp(kind)
        made.save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def random_model(random_folder: Callable[[str], Path]) -> Callable[[str, torch.dtype], FamilyModel]:
    """Makes a random model of one layer of some family, read from a folder."""

    def make(kind: str, dtype: torch.dtype) -> FamilyModel:
        folder = random_folder(kind)
        return FamilyModel(read_family_config(folder), open_weights(folder, dtype))

    return make


@pytest.fixture(scope="session")
def graphed(
    device: torch.device, random_model: Callable[[str, torch.dtype], FamilyModel]
) -> Callable[..., Any]:
    """Makes a decoder on our kernels of a random model of some family, for caches of 300 positions."""

    def make(kind: str, bits: Bits = 16) -> Any:
        from completion_engine.gpu.decoder import GraphedDecoder

        dtype = torch.bfloat16 if HAS_GPU else torch.float32
        return GraphedDecoder(random_model(kind, dtype), 300, device, bits)

    return make


@pytest.fixture(scope="session")
def decoder(graphed: Callable[[str], Any]) -> Any:
    """The decoder of `target`."""
    return graphed("qwen2")


@pytest.fixture(scope="session")
def target(decoder: Any, device: torch.device) -> LanguageModel:
    """A random target on our kernels."""
    dtype = decoder.embedding.dtype
    precision, branches = Precision(str(dtype), dtype), InPlaceBranches()
    return LanguageModel(decoder, device, precision, 300, branches)


@pytest.fixture(scope="session")
def random_drafter(target: LanguageModel) -> DrafterFiles:
    """A random drafter for `target` that can guess every other token."""
    shape = target.cache_shape
    tokens = torch.arange(0, target.vocab_size, 2)
    drafter = DrafterShape(
        shape.num_layers, shape.num_kv_heads, shape.head_size, shape.hidden_size, target.vocab_size,
        memory_layer=0, num_heads=2, mlp_size=24, num_tokens=len(tokens),
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    weights = {name: torch.randn(size, generator=generator) * 0.3 for name, size in drafter.sizes.items()}
    preview = Preview(torch.eye(shape.hidden_size), torch.eye(shape.hidden_size))
    return DrafterFiles("tiny", drafter, (1.0, 0.8, 0.9), tokens, weights, preview)
