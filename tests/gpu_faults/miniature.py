"""An engine in miniature on a machine with a GPU, whose kernels run in Triton's interpreter."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from completion_engine import load_engine as loading
from completion_engine.config import EngineConfig
from completion_engine.decoding.ending import NoRules
from completion_engine.drafting.distilled import DrafterFiles
from completion_engine.drafting.drafter_network import DrafterShape, Preview
from completion_engine.engine import CompletionEngine
from completion_engine.gpu import machine
from completion_engine.gpu.decoder import GraphedDecoder
from completion_engine.loading import gpu_target, model
from completion_engine.loading.backends import plan_backends
from completion_engine.request import CompletionRequest
from completion_engine.target_model.language_model import LanguageModel
from tests.completion_engine.gpu.interpreter import KNOWN
from tests.gpu_faults.injected import GPU, Fault

CAPACITY = 256
REQUEST = CompletionRequest(
    "def add(first, second):\n    return first + second\n\n\ndef add(fir",
    "",
    "python",
    deadline_ms=0,
    max_tokens=3,
)


class QuickTarget(LanguageModel):
    """On the kernels its bits are not compared; another test does that."""

    def __init__(self, decoder: Any, *others: Any, **options: Any) -> None:
        if isinstance(decoder, GraphedDecoder):
            options["known"] = KNOWN
        super().__init__(decoder, *others, **options)

    def rehearse(self) -> None:
        """Nothing has to be loaded ahead."""


@contextmanager
def machine_with_gpu() -> Iterator[pytest.MonkeyPatch]:
    """A machine with `GPU`, on which loading takes seconds in the interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_target, "_CAPACITIES", (CAPACITY,))
        patch.setattr(gpu_target, "_NUM_TOKENS", 16)
        patch.setattr(loading, "_NUM_WARM_UP_TOKENS", 1)
        patch.setattr(gpu_target, "LanguageModel", QuickTarget)
        patch.setattr(model, "LanguageModel", QuickTarget)
        patch.setattr(model, "CAPACITY", {"cpu": CAPACITY, "cuda": CAPACITY})
        with pytest.MonkeyPatch.context() as gpu:
            gpu.setattr(machine, "find_gpu", lambda: GPU)
            gpu.setattr(machine, "num_free_bytes", lambda _: 8_000_000_000)
            gpu.setattr(machine, "compiler_flaw", lambda: None)
            yield gpu


def config_for(folder: Path, fault: Fault) -> EngineConfig:
    """The engine's configuration: without drafters, unless the fault is in one."""
    drafters = ("ngram", "neural") if fault.drafts else ()
    drafter = str(folder.parent / "drafter") if fault.drafts else ""
    return EngineConfig(
        str(folder),
        drafters,
        drafter,
        device=fault.device,
        prefix_chars=60,
        suffix_chars=20,
        context_tokens=0,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an engine with a fault: its backend, its message, seconds to the first answer."""

    backend: str
    reason: str
    seconds: float
    text: str
    tokens: tuple[int, ...]
    dtype: str


def outcome_of(fault: Fault, folder: Path) -> Outcome:
    """Load an engine with the fault, and ask for one completion."""
    with machine_with_gpu() as gpu:
        config = config_for(folder, fault)
        if not fault.later:
            fault.inject(gpu)
        begin = time.perf_counter()
        engine = loading.load_engine_from(folder, config)
        if fault.later:
            fault.inject(gpu)
            begin = time.perf_counter()
        text = engine.complete(REQUEST).text
        seconds, tokens = time.perf_counter() - begin, written_by(engine)
        about = engine.describe()
        return Outcome(about["backend"], about["backend_reason"], seconds, text, tokens, about["dtype"])


def written_by(engine: CompletionEngine) -> tuple[int, ...]:
    """The first tokens of the completion, without any rule about where it ends."""
    return tuple(engine.write(REQUEST, NoRules(), 4).tokens[:4])


def written_on(backend: str, dtype: str, folder: Path) -> tuple[str, tuple[int, ...]]:
    """The target's plain text on a backend of that type, without any fault: the answer, and tokens."""
    with machine_with_gpu():
        options = gpu_target.LoadOptions(folder)
        for gpu in (GPU, machine.Gpu("T4", (7, 5), 1, device=torch.device("cpu")), None):
            for found in plan_backends("auto", "auto", gpu).backends:
                if (found.name, found.precision.name) == (backend, dtype):
                    target = model.load_on(options, found)
                    config = EngineConfig(str(folder), (), prefix_chars=60, suffix_chars=20, context_tokens=0)
                    engine = CompletionEngine(config, target, loading.load_tokenizer(folder))
                    return engine.complete(REQUEST).text, written_by(engine)
    raise LookupError(f"there is no {backend} in {dtype}")


def write_drafter(folder: Path, target: Path) -> None:
    """A random drafter for the target of one layer in `target`."""
    shape = GraphedShape.of(target)
    drafter = DrafterShape(
        1, shape.num_kv_heads, shape.head_size, shape.hidden_size, shape.vocab_size,
        memory_layer=0, num_heads=2, mlp_size=24, num_tokens=shape.vocab_size // 2,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    weights = {name: torch.randn(size, generator=generator) * 0.3 for name, size in drafter.sizes.items()}
    preview = Preview(torch.eye(shape.hidden_size), torch.eye(shape.hidden_size))
    tokens = torch.arange(0, shape.vocab_size // 2 * 2, 2)
    DrafterFiles("tiny", drafter, (1.0, 0.8), tokens, weights, preview).save(folder)


@dataclass(frozen=True, slots=True)
class GraphedShape:
    """Sizes that a drafter shares with its target."""

    num_kv_heads: int
    head_size: int
    hidden_size: int
    vocab_size: int

    @classmethod
    def of(cls, folder: Path) -> GraphedShape:
        """From a model folder."""
        geometry = gpu_target.read_geometry(folder)
        assert geometry is not None
        return cls(geometry.num_kv_heads, geometry.head_size, geometry.hidden_size, geometry.vocab_size)
