"""The whole engine on the kernels for GPUs writes with drafts what it writes plainly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.tokenizer import load_tokenizer
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.target_model.decoder import InPlaceBranches
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel, read_family_config
from completion_engine.target_model.model_files import open_weights
from completion_engine.target_model.weights import Precision
from tests.completion_engine.gpu.interpreter import KNOWN

PREFIX = "def add(first, second):\n    return first + second\n\n\ndef add(fir"
CAPACITY = 256


@pytest.fixture(scope="module")
def make_engine(
    write_tiny: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
    device: torch.device,
) -> Callable[..., CompletionEngine]:
    """Makes engines on a target of one layer that has a tokenizer."""
    from completion_engine.gpu.decoder import GraphedDecoder

    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    folder = write_tiny(tmp_path_factory.mktemp("one") / "layer", num_layers=1)
    model = FamilyModel(read_family_config(folder), open_weights(folder, dtype))
    decoder = GraphedDecoder(model, CAPACITY, device)
    precision = Precision(str(dtype), dtype)
    target = LanguageModel(decoder, device, precision, CAPACITY, InPlaceBranches(), KNOWN)
    tokenizer = load_tokenizer(folder)

    def make(**options: object) -> CompletionEngine:
        config = EngineConfig(target="tiny", prefix_chars=200, suffix_chars=50, **options)
        return CompletionEngine(config, target, tokenizer)

    return make


@pytest.fixture(scope="module")
def engines(make_engine: Callable[..., CompletionEngine]) -> tuple[CompletionEngine, CompletionEngine]:
    """One that drafts, and one that drafts nothing."""
    return make_engine(), make_engine(drafters=())


Engines = tuple[CompletionEngine, CompletionEngine]


def request(document: str, max_tokens: int, eagerness: float = 1.0) -> CompletionRequest:
    """A request in a document of its own, so that nothing of another test is cached."""
    return CompletionRequest(
        PREFIX, "", "python", document, deadline_ms=0, max_tokens=max_tokens, eagerness=eagerness
    )


def test_drafts_change_no_text(engines: Engines) -> None:
    found, wanted = (engine.complete(request("a", 12)) for engine in engines)
    assert wanted.text
    assert found.text == wanted.text
    assert found.stats.num_drafted > 0
    assert found.stats.finish_reason == wanted.stats.finish_reason


def test_an_unsure_text_ends_where_it_does_undrafted(engines: Engines) -> None:
    found, wanted = (engine.complete(request("b", 12, 0.9)) for engine in engines)
    assert found.text == wanted.text
    assert found.stats.finish_reason == wanted.stats.finish_reason
    assert found.forecast == wanted.forecast
    assert found.forecast.is_scored
    assert found.forecast.probabilities


def test_work_ahead_goes_on_behind_the_text(engines: Engines) -> None:
    texts = []
    for engine in engines:
        first = engine.complete(request("c", 4))
        for _ in range(3):
            engine.idle(Cancellation())
        texts.append((first.text, engine.complete(request("c", 8)).text))
    assert texts[0] == texts[1]
