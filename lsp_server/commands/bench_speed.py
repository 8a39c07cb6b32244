"""Milliseconds per token of Slipstream, transformers and llama.cpp, in turn on the same prompts.

Each continues the same token ids greedily. The clock starts when the first pass after the prompt has handed
over its tokens, so the prompt counts for none of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from completion_engine.decoding.ending import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import CATALOGUE
from completion_engine.models.paths import path_of
from completion_engine.prompting.prompt import Prompt
from completion_engine.request import CompletionRequest, Progress
from completion_engine.target_model.threads import thread_counts, use_threads
from lsp_server.commands.cursor_samples import Sample
from ngram_cache import NgramIndex

_MAX_PROMPT_TOKENS = 600
_SPARE_POSITIONS = 8
_WARM_UP = "def add(left, right):\n    return "


@dataclass(frozen=True, slots=True)
class Timing:
    """One prompt continued: tokens after the first pass, and the milliseconds that they took."""

    num_tokens: int
    ms: float


Continue = Callable[[list[int], Sample, int], Timing]


@dataclass(slots=True)
class _Clock(NoRules):
    """Text rules that stop nothing and record when each pass had written its tokens."""

    times: list[float] = field(default_factory=list)

    def check(self, generated: str) -> None:  # noqa: ARG002 - never stops
        """Never stop."""
        self.times.append(time.perf_counter())


@dataclass(slots=True)
class _Streamer:
    """What transformers calls with the prompt and then with each token."""

    times: list[float] = field(default_factory=list)

    def put(self, _tokens: object) -> None:
        """Record the time."""
        self.times.append(time.perf_counter())

    def end(self) -> None:
        """The call returns next."""


def measure_speed(
    engine: CompletionEngine, index: NgramIndex, samples: Sequence[Sample], max_tokens: int, report: Progress
) -> dict[str, Any]:
    """Passes by width, each contender's time per token, and why others cannot run."""
    plain = CompletionEngine(replace(engine.config, drafters=()), engine.target, engine.tokenizer)
    contenders: dict[str, Continue] = {
        "Slipstream": _ours(engine, index),
        "Slipstream plain": _ours(plain, index),
    }
    absent: dict[str, str] = {}
    num_positions = _MAX_PROMPT_TOKENS + max_tokens + _SPARE_POSITIONS
    for name, load in (("transformers greedy", _transformers), ("llama.cpp", _llama)):
        report(f"Loading {name}", 0, 0)
        try:
            contenders[name] = load(engine, num_positions)
        except (UserError, ImportError, OSError, ValueError) as error:
            absent[name] = str(error)
    num_tokens = min(_MAX_PROMPT_TOKENS, engine.target.capacity // 2)
    prompts = [engine.tokenizer.encode(sample.prefix)[-num_tokens:] for sample in samples]
    short = engine.tokenizer.encode(_WARM_UP)  # of its own: a prompt seen before is drafted from its answer
    for go_on in contenders.values():
        go_on(short, samples[0], max_tokens)
    timings: dict[str, list[Timing]] = {name: [] for name in contenders}
    for number, (prompt, sample) in enumerate(zip(prompts, samples, strict=True)):
        names = list(contenders)
        for name in (*names[number % len(names) :], *names[: number % len(names)]):
            timings[name].append(contenders[name](prompt, sample, max_tokens))
        report("Comparing", number + 1, len(samples))
    return {
        "pass_ms": engine.describe()["pass_ms"],
        "prompt_token_ms": round(engine.target.prompt_token_ms, 3),
        "ms_per_token": {name: _median_ms(found) for name, found in timings.items()},
        "absent": absent,
    }


def _median_ms(timings: Sequence[Timing]) -> float:
    """The median over prompts; 0 where none has a token after the first pass."""
    found = [timing.ms / timing.num_tokens for timing in timings if timing.num_tokens]
    return round(median(found), 3) if found else 0.0


def _ours(engine: CompletionEngine, index: NgramIndex) -> Continue:
    def go_on(prompt: list[int], sample: Sample, max_tokens: int) -> Timing:
        clock = _Clock()
        request = CompletionRequest(
            "", "", document=sample.document, index=index, deadline_ms=0, repository_memory="off"
        )
        engine.target.governor.look_anew()  # the one before took all cores, and is done
        decoding = engine.write(request, clock, max_tokens, Prompt(tuple(prompt), b""))
        end = time.perf_counter()
        use_threads(max(thread_counts()))  # the others take their own number of threads
        sources = decoding.sources  # each pass ends with a token of the target's own
        num_first = sources.index(None) + 1 if None in sources else len(sources)
        return Timing(len(decoding.tokens) - num_first, 1e3 * (end - (clock.times or [end])[0]))

    return go_on


def _transformers(engine: CompletionEngine, _num_positions: int) -> Continue:
    """The same model in transformers. Raises OSError, ValueError or UserError where it cannot be loaded."""
    from transformers import AutoModelForCausalLM, GenerationConfig  # noqa: PLC0415 - only here

    folder = ModelStore().ensure(engine.config.target)
    source: dict[str, Any] = {"pretrained_model_name_or_path": folder}
    if not any(folder.glob("*.safetensors")):
        gguf = _gguf_of(engine.config.target)
        source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    model: Any = AutoModelForCausalLM.from_pretrained(
        **source, dtype=engine.target.precision.dtype, local_files_only=True, trust_remote_code=False
    )
    model.eval().requires_grad_(False).to(engine.target.device)
    ends = sorted(engine.tokenizer.end_ids)
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # its own may sample

    def go_on(prompt: list[int], _sample: Sample, max_tokens: int) -> Timing:
        streamer, rows = _Streamer(), torch.tensor([prompt], device=model.device)
        model.generate(
            rows,
            attention_mask=torch.ones_like(rows),
            max_new_tokens=max_tokens,
            do_sample=False,
            eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else 0,
            streamer=streamer,
        )
        _, first, *others = streamer.times
        return Timing(len(others), 1e3 * (time.perf_counter() - first))

    return go_on


def _llama(engine: CompletionEngine, num_positions: int) -> Continue:
    """llama.cpp on the model's own GGUF file. Raises UserError or ImportError where it cannot run."""
    import llama_cpp  # type: ignore[import-not-found]  # noqa: PLC0415 - not a dependency

    num_threads, on_gpu = os.cpu_count() or 1, engine.target.device.type == "cuda"
    model = llama_cpp.Llama(
        model_path=str(_gguf_of(engine.config.target)),
        n_ctx=num_positions,
        n_threads=num_threads,
        n_threads_batch=num_threads,
        n_gpu_layers=-1 if on_gpu else 0,
        verbose=False,
    )

    def go_on(prompt: list[int], _sample: Sample, max_tokens: int) -> Timing:
        model.reset()  # otherwise the prompt would be read from the cache of the last run
        times = []
        for token in model.generate(prompt, temp=0.0, repeat_penalty=1.0):
            times.append(time.perf_counter())
            if token in engine.tokenizer.end_ids or len(times) >= max_tokens:
                break
        return Timing(len(times) - 1, 1e3 * (times[-1] - times[0]))

    return go_on


def _gguf_of(target: str) -> Path:
    """The GGUF file that the model was made from. Raises UserError."""
    path = path_of(target)
    if path is not None and path.suffix == ".gguf":
        return path
    if target in CATALOGUE:
        return ModelStore().path(target)
    raise UserError(f"{target} was not made from a GGUF file.")
