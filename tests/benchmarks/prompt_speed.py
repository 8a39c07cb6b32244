"""Measures how fast prompts of some lengths are read, beside llama.cpp on the same file, runs in turn.

Run as `python -m tests.benchmarks.prompt_speed LLAMA_BENCH`, with llama.cpp's program of that name: prints
tokens per second, the median of some runs. `--as AVX2` compiles kernels for that alone; the program must then
be one that uses no more. Owns this one measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.benchmarks.passes_by_instruction_set import forced

LENGTHS = (128, 512, 2048)  # tokens
ROOT = Path(__file__).parents[2]


def ours(lengths: Sequence[int], num_threads: int, instruction_set: str | None) -> list[float]:
    """Tokens per second of this tree, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.prompt_speed",
        "--threads",
        str(num_threads),
        "--worker",
    ]
    environment = {**os.environ, **forced(instruction_set), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *map(str, lengths)], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def theirs(program: str, lengths: Sequence[int], num_threads: int) -> list[float]:
    """Tokens per second of llama.cpp, after a run of its own that makes things ready."""
    from completion_engine.config import DEFAULT_TARGET
    from completion_engine.models import ModelStore

    (file,) = ModelStore().ensure(DEFAULT_TARGET, lambda *_: None).glob("*.gguf")
    sizes = ["-p", ",".join(map(str, lengths)), "-n", "0", "-r", "1", "-t", str(num_threads)]
    done = subprocess.run(
        [program, "-m", str(file), *sizes, "-o", "json"], check=True, capture_output=True, text=True
    )
    return [run["avg_ts"] for run in json.loads(done.stdout)]


def work(lengths: Sequence[int], num_threads: int) -> list[float]:
    """Tokens per second of the default model, for the first tokens of this project's own code."""
    from completion_engine.config import DEFAULT_TARGET
    from completion_engine.loading.model import load_language_model
    from completion_engine.models import ModelStore
    from completion_engine.prompting.tokenizer import load_tokenizer
    from completion_engine.target_model.kv_cache import KVCache
    from completion_engine.target_model.language_model import PREFILL_ROWS
    from completion_engine.target_model.threads import use_threads

    use_threads(num_threads)
    folder = ModelStore().ensure(DEFAULT_TARGET, lambda *_: None)
    model = load_language_model(folder, "cpu", "auto")
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "ngram_cache").glob("*.py")))
    tokens = load_tokenizer(folder).encode_many([text])[0]
    found = []
    for length in (PREFILL_ROWS, *lengths):
        cache = KVCache(model.cache_shape)
        begin = time.perf_counter()
        for first in range(0, length, PREFILL_ROWS):
            rows = tokens[first : min(first + PREFILL_ROWS, length)]
            model.forward(rows, cache, 0)
            cache.keep(rows)
        found.append(length / (time.perf_counter() - begin))
    return found[1:]  # without the run that makes things ready


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("llama_bench", nargs="?", help="llama.cpp's program of that name")
    parser.add_argument("--as", dest="instruction_set", help="instead of the processor's own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--worker", nargs="+", type=int, metavar="TOKENS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.worker, options.threads)))  # noqa: T201 - a command speaks
        return
    if not options.llama_bench:
        parser.error("Name the program llama-bench.")
    runs = [
        (
            ours(LENGTHS, options.threads, options.instruction_set),
            theirs(options.llama_bench, LENGTHS, options.threads),
        )
        for _ in range(options.rounds)
    ]
    for at, length in enumerate(LENGTHS):
        mine, other = (median(run[side][at] for run in runs) for side in range(2))
        line = f"{length:>5} tokens: {mine:6.1f} a second, llama.cpp {other:6.1f}, {mine / other:.2f} times"
        print(line)  # noqa: T201 - a command speaks


if __name__ == "__main__":
    main()
