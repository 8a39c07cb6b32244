"""The comparison of a larger model with and without a smaller one's text, with tiny models."""

from __future__ import annotations

from pathlib import Path

from completion_engine.config import EngineConfig
from completion_engine.load_engine import load_engine_from
from lsp_server.commands.local_engine import drawn_samples
from tests.benchmarks.samples import repository_index
from tests.benchmarks.two_models import compare

SAMPLES = Path(__file__).parents[2] / "docs" / "sample_repository"


def test_the_smaller_models_text_changes_no_token_of_the_larger_one(tiny_model_dir: Path) -> None:
    config = EngineConfig(str(tiny_model_dir), ("ngram",))
    small, large = (load_engine_from(tiny_model_dir, config) for _ in range(2))
    samples = drawn_samples(sorted(SAMPLES.rglob("*.py")), SAMPLES, 6)
    index = repository_index(SAMPLES, large.tokenizer.encode_many)
    found = compare(small, large, samples, index, 0, lambda *_: None).as_dict()
    assert (found["num_places"], found["num_differing"]) == (6, 0)
    assert found["num_tokens"] > 0
    assert found["shared_tokens_per_pass"] >= 1
