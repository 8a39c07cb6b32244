"""Fixtures that every test folder shares: a tiny target of the real architecture, and the real one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.own_folders import use_own_folders
from tests.units import unit_of, urgency

use_own_folders()
# A test gets the same examples each time, so that a change fails by its own fault; `make fuzz` takes others.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("others", deadline=None, print_blob=True)
settings.load_profile("same")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Threads that spin while they wait take the cores of other test processes. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # without a driver kernels run on the CPU; read at import


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes long where several workers share the tests."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: urgency(unit_of(item.nodeid)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.parallel import Scheduling

    return Scheduling(config, log)


SAMPLES = Path(__file__).parents[1] / "docs" / "sample_repository"
MARKERS = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
           "<|repo_name|>", "<|file_sep|>", "<|im_start|>", "<|im_end|>"]  # fmt: skip
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)


def write_tiny_tokenizer(folder: Path) -> int:
    """A byte-level BPE of Qwen's kind, 1,000 tokens, learnt from the sample repository; returns its size."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=MARKERS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # Not from the standard library: otherwise the tiny target's text would depend on Python's patch version.
    tokenizer.train_from_iterator([path.read_text() for path in sorted(SAMPLES.rglob("*.py"))], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer.get_vocab_size()


def write_tiny_model(folder: Path, *, seed: int = 0, num_layers: int = 2, num_heads: int = 4) -> Path:
    """A randomly initialised Qwen2 small enough for fast tests, saved as transformers saves models."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    num_tokens = write_tiny_tokenizer(folder)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=num_tokens,
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=num_heads // 2,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the tiny target: config.json, tokenizer.json, model.safetensors."""
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def write_tiny() -> Callable[..., Path]:
    """Writes further tiny targets: `write_tiny(folder, seed=…)`."""
    return write_tiny_model


@pytest.fixture(scope="session")
def real_model_dir() -> Path:
    """The default target in the model store; fetched on first use."""
    from completion_engine.config import DEFAULT_TARGET
    from completion_engine.models import ModelStore

    return ModelStore().ensure(DEFAULT_TARGET)
