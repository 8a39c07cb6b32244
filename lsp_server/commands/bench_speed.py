"""Milliseconds per token of Slipstream, transformers and llama.cpp, in turn on the same prompts.

Each continues the same token ids greedily. The clock starts when the first pass after the prompt has handed
over its tokens, so the prompt counts for none of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch

from completion_engine.decoding.ending import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import path_of
from completion_engine.prompting.prompt import Prompt
from completion_engine.request import CompletionRequest, Progress
from completion_engine.target_model.threads import thread_counts, use_threads
from lsp_server.commands.local_engine import Sample
from ngram_cache import NgramIndex

_MAX_PROMPT_TOKENS = 600
_SPARE_POSITIONS = 8
_WARM_UP = "def add(left, right):\n    return "

# Continues the token ids of a prompt by a number of tokens. Returns milliseconds per token after the first
# pass, or 0 without one.
Continue = Callable[[list[int], Sample, int], float]


@dataclass(slots=True)
class _Clock(NoRules):
    """Text rules that stop nothing, and a streamer of transformers: both record when tokens arrive."""

    times: list[float] = field(default_factory=list)

    def stop(self, generated: str) -> None:
        """Slipstream has written tokens; never stops."""
        self.put(generated)

    def put(self, _tokens: object) -> None:
        """The prompt, and then each token of transformers."""
        self.times.append(time.perf_counter())

    def end(self) -> None:
        """The call returns next."""

    def ms_per_token(self, num_tokens: int, first: int = 0) -> float:
        """From the event `first` to now, for `num_tokens` after it."""
        passed_s = time.perf_counter() - self.times[first] if len(self.times) > first else 0.0
        return 1e3 * passed_s / num_tokens if num_tokens > 0 else 0.0


def measure_speed(
    engine: CompletionEngine, index: NgramIndex, samples: Sequence[Sample], max_tokens: int, report: Progress
) -> dict[str, Any]:
    """Passes by width, each contender's median time per token, and why others cannot run."""
    plain = engine.beside(drafters=())
    contenders = {"Slipstream": _ours(engine, index), "Slipstream plain": _ours(plain, index)}
    absent: dict[str, str] = {}
    for name, load in (("transformers greedy", _transformers), ("llama.cpp", _llama)):
        report(f"Loading {name}", 0, 0)
        try:
            contenders[name] = load(engine, _MAX_PROMPT_TOKENS + max_tokens + _SPARE_POSITIONS)
        except (UserError, ImportError, OSError, ValueError) as error:
            absent[name] = str(error)
    # A prompt of its own, because a prompt seen before is drafted from its answer.
    short = engine.tokenizer.encode(_WARM_UP)
    for go_on in contenders.values():
        go_on(short, samples[0], max_tokens)
    num_tokens = min(_MAX_PROMPT_TOKENS, engine.target.capacity // 2)
    names = list(contenders)
    found: dict[str, list[float]] = {name: [] for name in names}
    for number, sample in enumerate(samples):
        prompt = engine.tokenizer.encode(sample.prefix)[-num_tokens:]
        for name in (*names[number % len(names) :], *names[: number % len(names)]):
            found[name].append(contenders[name](prompt, sample, max_tokens))
        report("Comparing", number + 1, len(samples))
    return {
        "pass_ms": engine.describe()["pass_ms"],
        "prompt_token_ms": round(engine.target.prompt_token_ms, 3),
        "ms_per_token": {name: _median(ms) for name, ms in found.items()},
        "absent": absent,
    }


def _median(ms: Sequence[float]) -> float:
    return round(median(list(filter(None, ms)) or [0.0]), 3)


def _ours(engine: CompletionEngine, index: NgramIndex) -> Continue:
    def go_on(prompt: list[int], sample: Sample, max_tokens: int) -> float:
        clock = _Clock()
        request = CompletionRequest(
            "", "", document=sample.document, index=index, deadline_ms=0, repository_memory="off"
        )
        engine.target.governor.look_anew()  # the contender before it took all cores, and is done
        decoding = engine.write(request, clock, max_tokens, Prompt(tuple(prompt), b""))
        sources = decoding.sources  # each pass ends with a token of the target's own
        num_first = sources.index(None) + 1 if None in sources else len(sources)
        ms = clock.ms_per_token(len(decoding.tokens) - num_first)
        use_threads(max(thread_counts()))  # the others take their own number of threads
        return ms

    return go_on


def _transformers(engine: CompletionEngine, _num_positions: int) -> Continue:
    """The same model in transformers. Raises OSError, ValueError or UserError if it cannot be loaded."""
    from transformers import AutoModelForCausalLM, GenerationConfig  # noqa: PLC0415 - only here

    folder, gguf = ModelStore().ensure(engine.config.target), ""
    if not any(folder.glob("*.safetensors")):
        file = _gguf_of(engine.config.target)
        folder, gguf = file.parent, file.name
    more: dict[str, Any] = {"gguf_file": gguf} if gguf else {}
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, dtype=engine.target.precision.dtype, local_files_only=True, trust_remote_code=False, **more
    )
    model.eval().requires_grad_(False).to(engine.target.device)
    ends = sorted(engine.tokenizer.end_ids)
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]  # its own may sample
        do_sample=False, eos_token_id=ends or None, pad_token_id=ends[0] if ends else 0
    )

    def go_on(prompt: list[int], _sample: Sample, max_tokens: int) -> float:
        clock, rows = _Clock(), torch.tensor([prompt], device=model.device)
        model.generate(rows, attention_mask=torch.ones_like(rows), max_new_tokens=max_tokens, streamer=clock)
        return clock.ms_per_token(len(clock.times) - 2, first=1)  # it puts the prompt first

    return go_on


def _llama(engine: CompletionEngine, num_positions: int) -> Continue:
    """llama.cpp on the model's own GGUF file. Raises UserError or ImportError if it cannot run."""
    import llama_cpp  # type: ignore[import-not-found]  # noqa: PLC0415 - not a dependency

    num_threads, on_gpu = os.cpu_count() or 1, engine.target.device.type == "cuda"
    sizes = {"n_ctx": num_positions, "n_threads": num_threads, "n_threads_batch": num_threads}
    path = str(_gguf_of(engine.config.target))
    model = llama_cpp.Llama(model_path=path, n_gpu_layers=-1 if on_gpu else 0, verbose=False, **sizes)

    def go_on(prompt: list[int], _sample: Sample, max_tokens: int) -> float:
        model.reset()  # otherwise the prompt would be read from the cache of the last run
        clock = _Clock()
        for token in model.generate(prompt, temp=0.0, repeat_penalty=1.0):
            clock.put(token)
            if token in engine.tokenizer.end_ids or len(clock.times) >= max_tokens:
                break
        return clock.ms_per_token(len(clock.times) - 1)

    return go_on


def _gguf_of(target: str) -> Path:
    """The GGUF file that the model was made from. Raises UserError if there is none."""
    path = path_of(target)
    return path if path is not None and path.suffix == ".gguf" else ModelStore().path(target)
