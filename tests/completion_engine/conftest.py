"""The tiny target, loaded once, and ways to decode with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from completion_engine.config import EngineConfig
from completion_engine.costs import PassClock
from completion_engine.decoding import Decoding, Finish, Means
from completion_engine.drafting.draft import Allowed, Draft, Drafter, DraftToken, Pass
from completion_engine.drafting.policy import SurvivalTable
from completion_engine.drafting.stride import Strider
from completion_engine.engine import CompletionEngine
from completion_engine.kv_cache import KVCache
from completion_engine.language_model import LanguageModel
from completion_engine.loading import load_language_model
from completion_engine.module_decoder import ModuleDecoder
from completion_engine.prompt import Prompt
from completion_engine.request import Cancellation
from completion_engine.running import Limits, run
from completion_engine.sampling import Sampler
from completion_engine.slots import Slot
from completion_engine.stats import CompletionStats
from completion_engine.tokenizer import Tokenizer, load_tokenizer
from completion_engine.written import Written


@pytest.fixture(scope="session")
def tokenizer(tiny_model_dir: Path) -> Tokenizer:
    return load_tokenizer(tiny_model_dir)


@pytest.fixture(scope="session")
def target(tiny_model_dir: Path) -> LanguageModel:
    return load_language_model(tiny_model_dir, "cpu", "auto", 512)


def _free(target: LanguageModel) -> LanguageModel:
    target.clock = PassClock(dict.fromkeys(target.widths, 1.0), 0.0)
    return target


@pytest.fixture(scope="session")
def free_targets(tiny_model_dir: Path) -> dict[str, LanguageModel]:
    """The same tiny weights behind both decoders. Rows and lanes cost nothing: all that fits is verified."""
    import torch
    from transformers import AutoModelForCausalLM

    fused = load_language_model(tiny_model_dir, "cpu", "auto", 512)
    model = AutoModelForCausalLM.from_pretrained(tiny_model_dir, dtype=fused.precision.dtype)
    decoder = ModuleDecoder(model.eval().requires_grad_(False), 512)
    modules = LanguageModel(decoder, torch.device("cpu"), fused.precision, 512)
    return {"fused": _free(fused), "modules": _free(modules)}


@pytest.fixture
def make_engine(target: LanguageModel, tokenizer: Tokenizer) -> Callable[..., CompletionEngine]:
    def make(**options: object) -> CompletionEngine:
        options.setdefault("target", "tiny")
        options.setdefault("prefix_chars", 400)
        options.setdefault("suffix_chars", 200)
        return CompletionEngine(EngineConfig(**options), target, tokenizer)

    return make


class Rules:
    """Never stops; cuts after any character."""

    def check(self, generated: str) -> None:
        return None

    def boundary(self, generated: str) -> int:
        return len(generated)


class Scripted:
    """A drafter that proposes what a function of the path gives: a tree of (token, parent), as in a draft."""

    step_ms = 0.0
    num_bytes = 0

    def __init__(self, script: Callable[[list[int]], Sequence[tuple[int, int]]]) -> None:
        self._script = script
        self._path: list[int] = []

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        self._path = list(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        self._path += tokens

    def observe(self, done: Pass) -> None:
        pass

    def lend(self, num_rows: int) -> Sequence[int]:
        return ()

    def end(self) -> None:
        pass

    def drafts(self, max_tokens: int, allowed: Allowed, min_survival: float) -> list[Draft]:
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
            sampler: Sampler | None = None,
            by: LanguageModel = target,
            strider: Strider | None = None,
        ) -> tuple[Decoding, Finish]:
            slot = slot or Slot(KVCache(by.cache_shape))
            picker = sampler or Sampler(tokenizer.num_tokens)
            written = Written(tokenizer, healed)
            prompt = Prompt(tuple(tokens), healed)
            means = Means(by, picker, drafters, SurvivalTable(), strider=strider)
            decoding = Decoding(means, slot, prompt, written, CompletionStats())
            return decoding, run(decoding, Rules(), Limits(num_tokens), Cancellation())

        return decode

    return make


@pytest.fixture(scope="session")
def write(target: LanguageModel, writer: Callable[[LanguageModel], Write]) -> Write:
    """Decodes by the tiny target, unless told otherwise."""
    return writer(target)
