"""The program of a worker process: JSON lines in, JSON lines out. Its argument names the backend.

    python worker_program.py llama_backend

Stands alone with the backend, a file beside it: the standard library and nothing of Slipstream.

    at the start                                                   -> {"version"}
    {"op": "load", "name", "path", "num_lookup_tokens", ...}       -> {}
    {"op": "write", "name", "tokens", "max_tokens", "end_ids"}     -> the fields of a run
    whatever goes wrong                                            -> {"error"}

The end of the input is the end of the process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, TextIO


def serve(backend: Any, lines: TextIO, answers: TextIO) -> None:
    """Answer every line until there are no more.

    A backend names its library's `MODULE` and has `version(library)`, `load(library, message)` and
    `write(model, message)`.
    """

    def answer(found: dict[str, Any]) -> None:
        answers.write(json.dumps(found) + "\n")
        answers.flush()

    try:
        library = importlib.import_module(backend.MODULE)
    except (ImportError, OSError, RuntimeError) as error:
        answer({"error": str(error)})
        return
    answer({"version": backend.version(library)})
    models: dict[str, Any] = {}
    for line in lines:
        message = json.loads(line)
        try:
            if message["op"] == "load":
                models[message["name"]] = backend.load(library, message)
                answer({})
            else:
                answer(backend.write(models[message["name"]], message))
        except Exception as error:  # the other side decides what it means
            answer({"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Keep the answers' channel free: output of libraries goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(importlib.import_module(sys.argv[1]), sys.stdin, answers)


if __name__ == "__main__":
    main()
