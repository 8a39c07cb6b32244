"""Loads an engine: fetches its target, chooses the backend, and warms up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from completion_engine.config import EngineConfig
from completion_engine.cutting.tree import load_grammar
from completion_engine.decoding.ending import NextLine
from completion_engine.engine import CompletionEngine
from completion_engine.errors import DataError
from completion_engine.loading.drafters import build_drafters
from completion_engine.loading.gpu_target import LoadOptions
from completion_engine.loading.model import chain_for
from completion_engine.models import ModelStore
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import CompletionRequest, Progress
from completion_engine.runtime import give_back
from completion_engine.target_model.language_model import LanguageModel
from ngram_cache import NgramIndex

_WARM_UP_TEXT = ("def add(first, second):\n    return first + second\n\n\nadd(", "\n")
_COMPARED_TEXT = (
    _WARM_UP_TEXT[0] + "1, 2)\n\n\nclass Point:\n    def __init__(self, x, y):\n        self.x = x\n"
)
_WARM_UP_LANGUAGE, _NUM_WARM_UP_TOKENS = "python", 8


def load_engine(
    config: EngineConfig,
    report: Progress | None = None,
    *,
    warms_up: bool = True,
) -> CompletionEngine:
    """Fetch the target if it is not there, and make it ready: in minutes, or seconds if it is there.

    Damaged files are made anew. `warms_up` as in `load_engine_from`.

    Raises SlipstreamError with advice when that fails.
    """

    def load() -> CompletionEngine:
        folder = ModelStore().ensure(config.target, report)
        return load_engine_from(folder, config, report, warms_up=warms_up)

    try:
        return load()
    except DataError:
        if not ModelStore().discard_damaged(config.target):
            raise
    return load()


def load_engine_from(
    folder: Path,
    config: EngineConfig,
    report: Progress | None = None,
    tokenizer: Tokenizer | None = None,
    *,
    warms_up: bool = True,
) -> CompletionEngine:
    """Load an engine on the model in `folder`; `tokenizer` is its own, if it is loaded already.

    It `warms_up` so that the first keystroke does not pay for one-time setup. A single answer comes sooner
    without that.
    """
    notify = report or (lambda *_: None)
    notify("Loading the tokenizer", 0, 2)
    tokenizer = tokenizer or load_tokenizer(folder)
    notify("Loading the model", 1, 2)
    text = tokenizer.encode(_COMPARED_TEXT)
    options = LoadOptions(folder, num_slots=config.num_slots, text=text)
    chain = chain_for(options, config.device, config.dtype)

    def build(target: LanguageModel) -> CompletionEngine:
        drafters = build_drafters(config, target, chain.note)
        engine = CompletionEngine(config, target, tokenizer, drafters, chain)
        if warms_up:
            engine.chain = None  # a failure is handled by `run_on_best`, which also warms up the next target
            _warm_up(engine)
            engine.chain = chain
        return engine

    engine = chain.run_on_best(build)
    give_back()
    notify("Model ready", 2, 2)
    return engine


def _warm_up(engine: CompletionEngine) -> None:
    """Write a few tokens and discard them, so that the first keystroke does not pay for setup."""
    engine.tokenizer.tokens_towards(b"x")
    engine.target.rehearse()
    request = CompletionRequest(*_WARM_UP_TEXT, _WARM_UP_LANGUAGE, deadline_ms=0)
    if engine.target.device.type == "cpu":
        index = NgramIndex([("", engine.tokenizer.encode(request.prefix * 2))])
        request = replace(request, index=index, indexed_as="-", repository_memory="on")
    load_grammar(request.language)
    engine.write(request, NextLine(""), _NUM_WARM_UP_TOKENS)
    engine.forget(request.document)
