"""What must hold on a GPU; skipped, with a message, where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from lsp_server.bench.exactness import compare
from lsp_server.bench.prompts import from_folder

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.real_model,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="no CUDA device: the GPU path is not tested here"
    ),
]


@pytest.fixture(scope="module")
def engine(real_model_dir: Path) -> CompletionEngine:
    return CompletionEngine.from_folder(real_model_dir, EngineConfig(device="cuda"))


def test_drafts_change_no_token_on_the_gpu(engine: CompletionEngine) -> None:
    plain = CompletionEngine(EngineConfig(device="cuda", drafters=()), engine.target, engine.tokenizer)
    samples = from_folder(Path(__file__).parents[2] / "completion_engine", 20, seed=1)
    report = compare({"tree": engine}, plain, samples, 64)["tree"]
    assert report.num_prompts == 20
    assert report.num_differing == 0
