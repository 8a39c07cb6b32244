"""OpenVINO GenAI for `worker_program`: a pipeline on the CPU, and a prompt continued.

Stands alone: openvino_genai is handed in; openvino and numpy come along with it.
"""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from typing import Any

MODULE = "openvino_genai"
_NGRAM_TOKENS = 3  # longest run that its lookup compares, as in its own samples


@dataclass
class Pipeline:
    """A loaded model, and what it needs to be asked."""

    genai: Any
    model: Any
    num_lookup_tokens: int


def version(openvino_genai: Any) -> str:
    """The version of the library."""
    return str(openvino_genai.__version__)


def load(openvino_genai: Any, message: dict[str, Any]) -> Pipeline:
    """The model in a GGUF file or a folder; with `num_lookup_tokens` it drafts from its prompt."""
    num_lookup_tokens = int(message["num_lookup_tokens"])
    options: dict[str, Any] = {"INFERENCE_NUM_THREADS": message["num_threads"]}
    if num_lookup_tokens:
        options["prompt_lookup"] = True
    model = openvino_genai.LLMPipeline(message["path"], "CPU", **options)
    return Pipeline(openvino_genai, model, num_lookup_tokens)


def write(pipeline: Pipeline, message: dict[str, Any]) -> dict[str, Any]:
    """Continue a prompt greedily. Times as in `runs.Run`.

    The pipeline keeps what it computed of earlier prompts, so a prompt is asked once.
    """
    numpy, openvino = importlib.import_module("numpy"), importlib.import_module("openvino")
    streamer = _streamer(pipeline.genai)
    ids = openvino.Tensor(numpy.array([message["tokens"]], dtype=numpy.int64))
    config = _generation(pipeline, message)
    begin = time.perf_counter()
    pipeline.model.generate(ids, config, streamer)
    end = time.perf_counter()
    steps, first_at = streamer.steps, streamer.first_at
    return {
        "tokens": _up_to_end(steps, message),
        "num_first": len(steps[0]),
        "first_ms": (first_at - begin) * 1e3,
        "decode_ms": (end - first_at) * 1e3,
        "num_passes": len(steps) - 1,
    }


def _streamer(genai: Any) -> Any:
    """Return an object that notes the tokens of each pass, and the time of the first."""

    class Streamer(genai.StreamerBase):  # type: ignore[misc]  # known only once it is imported
        def __init__(self) -> None:
            super().__init__()
            self.steps: list[list[int]] = []
            self.first_at = 0.0

        def write(self, tokens: int | list[int]) -> Any:
            self.first_at = self.first_at or time.perf_counter()
            self.steps.append([tokens] if isinstance(tokens, int) else list(tokens))
            return genai.StreamingStatus.RUNNING

        def end(self) -> None:
            pass

    return Streamer()


def _generation(pipeline: Pipeline, message: dict[str, Any]) -> Any:
    config = pipeline.genai.GenerationConfig()
    config.max_new_tokens = message["max_tokens"]
    config.do_sample = False
    config.stop_token_ids = set(message["end_ids"])
    if pipeline.num_lookup_tokens:
        config.num_assistant_tokens = pipeline.num_lookup_tokens
        config.max_ngram_size = _NGRAM_TOKENS
    return config


def _up_to_end(steps: list[list[int]], message: dict[str, Any]) -> list[int]:
    tokens = [token for step in steps for token in step][: message["max_tokens"]]
    ends = (at for at, token in enumerate(tokens, 1) if token in message["end_ids"])
    return tokens[: next(ends, len(tokens))]
