"""Measures how fast ik_llama.cpp reads prompts, for `prompt_speed`; needs ik-llama-cpp-python.

`python ik_prompt_speed.py MODEL THREADS LENGTH...` prints tokens per second as JSON. Stands alone.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

_READY_TOKENS = 128


def main() -> None:
    path, num_threads, *lengths = sys.argv[1:]
    sizes = [int(length) for length in lengths]
    ik_llama_cpp: Any = importlib.import_module("ik_llama_cpp")
    model = ik_llama_cpp.IkLlama(path, n_ctx=max(sizes) + 64, n_threads=int(num_threads), verbose=False)
    tokens = model.tokenize("def area(width, height):\n    return width * height\n" * max(sizes))
    found = []
    for size in (_READY_TOKENS, *sizes):
        begin = time.perf_counter()
        model.generate(tokens[:size], max_tokens=0)
        found.append(size / (time.perf_counter() - begin))
    print(json.dumps(found[1:]))  # noqa: T201 - its answer


main()
