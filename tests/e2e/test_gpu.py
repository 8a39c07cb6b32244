"""What must hold on a GPU; skipped, with a message, where there is none. Nothing here has run on one yet."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import torch

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.load_engine import load_engine_from
from completion_engine.loading.backends import choose_precision
from completion_engine.request import CompletionRequest
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from lsp_server.commands.bench_exactness import ExactnessOptions, compare
from scripts.random_model import GEOMETRIES
from tests.benchmarks.gpu.random_models import HandedOver, random_model
from tests.benchmarks.gpu.speed import family_decoder
from tests.benchmarks.samples import from_folder

NUM_PROMPTS = 500

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="no CUDA device: the GPU path is not tested here"
    ),
]


@pytest.fixture(scope="module")
def engine(real_model_dir: Path) -> CompletionEngine:
    return load_engine_from(real_model_dir, EngineConfig(device="cuda"))


@pytest.fixture(scope="module", params=["bfloat16", "int8"])
def target(request: pytest.FixtureRequest) -> LanguageModel:
    """The 0.5B's geometry with random weights: no model file is needed."""
    device = torch.device("cuda")
    precision = choose_precision(request.param, device)
    model = HandedOver(random_model(GEOMETRIES["0.5B"], device, precision.dtype))
    decoder, branches = family_decoder(model, 4096, precision.kind, device)
    return LanguageModel(decoder, device, precision, 4096, branches)


@pytest.mark.real_model
def test_drafts_change_no_token_on_the_gpu(engine: CompletionEngine) -> None:
    plain = engine.beside(drafters=())
    samples = from_folder(Path(__file__).parents[2] / "completion_engine", 20, seed=1)
    report = compare({"drafts": engine}, plain, samples, ExactnessOptions(64))["drafts"]
    assert (report.num_prompts, report.num_differing) == (20, 0)


@pytest.mark.real_model
def test_the_first_answer_is_there_soon(real_model_dir: Path) -> None:
    begin = time.perf_counter()
    engine = load_engine_from(real_model_dir, EngineConfig(device="cuda"))
    engine.complete(CompletionRequest("def add(left, right):\n    return ", "", deadline_ms=0))
    assert time.perf_counter() - begin < 60  # kernels may have to be compiled


def test_the_target_runs_on_our_kernels_and_verifies_trees_of_any_width(target: LanguageModel) -> None:
    assert target.is_row_invariant
    assert target.verifies_trees
    assert target.max_branches > max(target.widths)


def test_trees_woven_around_the_truth_change_no_bit(target: LanguageModel) -> None:
    """Many short prompts; at each step a random tree that holds a part of the true answer somewhere."""
    rng = random.Random(0)  # noqa: S311 - reproducible draws, no secrets
    for _ in range(NUM_PROMPTS):
        prompt = [rng.randrange(target.vocab_size) for _ in range(rng.randrange(2, 300))]
        truth, plain = _written(target, prompt, 8)
        cache, at = _primed(target, prompt), 0
        while at < 6:
            rest = [prompt[-1], *truth][at:]
            depth = rng.randrange(1, min(4, len(rest)))
            parents = [-1, *(rng.randrange(row) for row in range(1, rng.randrange(2, 12)))]
            tokens = [rest[0], *(rng.randrange(target.vocab_size) for _ in parents[1:])]
            path = [0]
            for token in rest[1 : depth + 1]:
                path.append(len(parents))
                parents.append(path[-2])
                tokens.append(token)
            logits = target.forward(tokens, cache, len(tokens), parents)
            assert [int(logits[row].argmax()) for row in path[:-1]] == rest[1 : depth + 1]
            kept = path[:-1]
            target.keep(cache, parents, kept, [tokens[row] for row in kept])
            at += len(kept)
        end = cache.num_cached
        assert cache.tokens == plain.tokens[:end]
        assert torch.equal(cache.keys[:, :, :end], plain.keys[:, :, :end])
        assert torch.equal(cache.values[:, :, :end], plain.values[:, :, :end])


def _primed(target: LanguageModel, prompt: list[int]) -> KVCache:
    """A cache that holds all of the prompt but its last token."""
    cache = KVCache(target.cache_shape)
    while cache.num_cached < len(prompt) - 1:
        chunk = prompt[cache.num_cached : -1][: target.chunks.num_rows]
        target.forward(chunk, cache, 0)
        cache.keep(chunk)
    return cache


def _written(target: LanguageModel, prompt: list[int], num_tokens: int) -> tuple[list[int], KVCache]:
    """The target's own text, one token a pass, and the resulting cache."""
    cache, tokens = _primed(target, prompt), [prompt[-1]]
    for _ in range(num_tokens):
        logits = target.forward(tokens[-1:], cache, 1)
        cache.keep(tokens[-1:])
        tokens.append(int(logits[0].argmax()))
    return tokens[1:], cache
