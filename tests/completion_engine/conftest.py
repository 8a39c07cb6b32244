"""The tiny target, loaded once, and ways to decode with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from completion_engine.config import EngineConfig
from completion_engine.cpu.int8_decoder import Int8Decoder
from completion_engine.cpu.linear import can_quantise
from completion_engine.decoding.completion import run
from completion_engine.decoding.ending import Finish, Limits, NoRules
from completion_engine.decoding.loop import Decoding, DecodingSetup
from completion_engine.decoding.picking import RepositoryBias
from completion_engine.decoding.reuse import Slot
from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DraftToken
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.engine import CompletionEngine
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import Cancellation, CompletionStats
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.transformers_decoder import TransformersDecoder
from tests.prices import make_rows_free


@pytest.fixture(scope="session")
def tokenizer(tiny_model_dir: Path) -> Tokenizer:
    return load_tokenizer(tiny_model_dir)


@pytest.fixture(scope="session")
def target(tiny_model_dir: Path) -> LanguageModel:
    """The tiny target, at prices that do not depend on the machine."""
    return make_rows_free(load_language_model(tiny_model_dir, "cpu", "auto", 512))


@pytest.fixture(scope="session")
def free_targets(tiny_model_dir: Path) -> dict[str, LanguageModel]:
    """The same tiny weights with each decoder of a CPU, by name; bytes where the machine multiplies them.

    Rows and branches cost nothing: all that fits is tried.
    """
    import torch

    found = {"modules": load_language_model(tiny_model_dir, "cpu", "float32", 512)}
    assert isinstance(found["modules"].decoder, TransformersDecoder)
    if can_quantise(torch.device("cpu")):
        found["int8"] = load_language_model(tiny_model_dir, "cpu", "int8", 512)
        assert isinstance(found["int8"].decoder, Int8Decoder)
    return {name: make_rows_free(target) for name, target in found.items()}


@pytest.fixture
def make_engine(target: LanguageModel, tokenizer: Tokenizer) -> Callable[..., CompletionEngine]:
    def make(**options: object) -> CompletionEngine:
        options.setdefault("target", "tiny")
        options.setdefault("prefix_chars", 400)
        options.setdefault("suffix_chars", 200)
        return CompletionEngine(EngineConfig(**options), target, tokenizer)

    return make


class Scripted(Drafter):
    """A drafter that proposes what a function of the path gives: a tree of (token, parent), as in a draft."""

    def __init__(self, script: Callable[[list[int]], Sequence[tuple[int, int]]]) -> None:
        super().__init__()
        self._script = script

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        tree = self._script(self._path)
        return [tuple(DraftToken(token, "ngram", "index", 16, 1.0, parent) for token, parent in tree)]


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    return Scripted


Write = Callable[..., tuple[Decoding, Finish]]


@pytest.fixture(scope="session")
def writer(tokenizer: Tokenizer) -> Callable[[LanguageModel], Write]:
    """Makes a way to decode by a target."""

    def make(target: LanguageModel) -> Write:
        def decode(
            tokens: Sequence[int],
            drafters: Sequence[Drafter] = (),
            *,
            slot: Slot | None = None,
            healed: bytes = b"",
            num_tokens: int = 24,
            by: LanguageModel = target,
            bias: RepositoryBias | None = None,
        ) -> tuple[Decoding, Finish]:
            slot = slot or Slot(KVCache(by.cache_shape))
            written = Written(tokenizer, healed)
            prompt = Prompt(tuple(tokens), healed)
            parts = by, tokenizer.num_tokens, drafters, AcceptanceTable()
            setup = DecodingSetup(*parts, bias=bias)
            decoding = Decoding(setup, slot, prompt, written, CompletionStats())
            return decoding, run(decoding, NoRules(), Limits(num_tokens), Cancellation())

        return decode

    return make


@pytest.fixture(scope="session")
def write(target: LanguageModel, writer: Callable[[LanguageModel], Write]) -> Write:
    """Decodes with the tiny target, unless another one is given."""
    return writer(target)
