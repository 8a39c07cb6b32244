"""llama.cpp for `worker_program`: a model that counts its passes, and a prompt continued.

Stands alone: llama_cpp is handed in.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

MODULE = "llama_cpp"


def version(llama_cpp: Any) -> str:
    """The version of the library."""
    return str(llama_cpp.__version__)


def load(llama_cpp: Any, message: dict[str, Any]) -> Any:
    """A model that counts its passes; with `num_lookup_tokens` it drafts from its prompt."""

    class Counting(llama_cpp.Llama):  # type: ignore[misc]  # known only once it is imported
        num_passes = 0

        def eval(self, tokens: list[int]) -> None:
            self.num_passes += 1
            super().eval(tokens)

    options: dict[str, Any] = {}
    if message["num_lookup_tokens"]:
        speculative = importlib.import_module("llama_cpp.llama_speculative")
        lookup = speculative.LlamaPromptLookupDecoding(num_pred_tokens=message["num_lookup_tokens"])
        # The binding keeps rows of logits for a whole context only if this option is set.
        options = {"draft_model": lookup, "logits_all": True}
    return Counting(
        model_path=message["path"],
        n_ctx=message["num_positions"],
        n_threads=message["num_threads"],
        n_threads_batch=message["num_threads"],
        n_gpu_layers=-1 if message["on_gpu"] else 0,
        verbose=False,
        **options,
    )


def write(model: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Continue a prompt greedily, its prefill afresh. Times as in `runs.Run`."""
    ends, max_tokens = set(message["end_ids"]), message["max_tokens"]
    model.reset()  # else the prompt's cache would be taken over from the last run
    model.num_passes = 0
    tokens: list[int] = []
    num_first, first_at = 0, 0.0
    begin = time.perf_counter()
    for token in model.generate(message["tokens"], temp=0.0, repeat_penalty=1.0):
        first_at = first_at or time.perf_counter()
        num_first += model.num_passes == 1
        tokens.append(int(token))
        if token in ends or len(tokens) >= max_tokens:
            break
    end = time.perf_counter()
    return {
        "tokens": tokens,
        "num_first": num_first,
        "first_ms": (first_at - begin) * 1e3,
        "decode_ms": (end - first_at) * 1e3,
        "num_passes": model.num_passes - 1,
    }
