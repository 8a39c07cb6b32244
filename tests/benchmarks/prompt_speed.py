"""Measures how fast prompts of some lengths are read, beside llama.cpp on the same file, runs in turn.

Run as `python -m tests.benchmarks.prompt_speed` after `make llama-server`: prints tokens per second, the
median of some runs. `--ik PYTHON` adds ik_llama.cpp; PYTHON has ik-llama-cpp-python, whose wheels use AVX2.
`--as AVX2` takes no wider instructions for any program. Owns this one measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from tests.benchmarks.keystrokes.llama_server import AVX2_BENCH, BENCH, PART, PEERS
from tests.benchmarks.passes_by_instruction_set import forced

LENGTHS = (128, 512, 2048)  # tokens
ROOT = Path(__file__).parents[2]
IK_PROGRAM = Path(__file__).with_name("ik_prompt_speed.py")


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


def llama_cpp(lengths: Sequence[int], num_threads: int, program: Path) -> list[float]:
    """Tokens per second of llama.cpp, after a run of its own that makes things ready."""
    sizes = ["-p", ",".join(map(str, lengths)), "-n", "0", "-r", "1", "-t", str(num_threads)]
    done = subprocess.run(
        [program, "-m", model_file(), *sizes, "-o", "json"], check=True, capture_output=True, text=True
    )
    return [run["avg_ts"] for run in json.loads(done.stdout)]


def ik_llama_cpp(lengths: Sequence[int], num_threads: int, python: Path) -> list[float]:
    """Tokens per second of ik_llama.cpp."""
    sizes = [str(num_threads), *map(str, lengths)]
    done = subprocess.run(
        [python, IK_PROGRAM, model_file(), *sizes], check=True, capture_output=True, text=True
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def model_file() -> Path:
    """The default model's GGUF file."""
    from completion_engine.config import DEFAULT_TARGET
    from tests.benchmarks.peers.llama import gguf_of

    found = gguf_of(DEFAULT_TARGET)
    if isinstance(found, str):
        sys.exit(found)
    return found


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
    parser.add_argument("--ik", type=Path, metavar="PYTHON", help="an interpreter with ik-llama-cpp-python")
    parser.add_argument("--as", dest="instruction_set", help="instead of the processor's own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--worker", nargs="+", type=int, metavar="TOKENS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(options.worker, options.threads)))  # noqa: T201 - a command speaks
        return
    bench = PEERS.find(PART, AVX2_BENCH if options.instruction_set else BENCH)
    programs: dict[str, Callable[[], list[float]]] = {
        "Slipstream": partial(ours, LENGTHS, options.threads, options.instruction_set),
        "llama.cpp": partial(llama_cpp, LENGTHS, options.threads, bench),
    }
    if options.ik:
        programs["ik_llama.cpp"] = partial(ik_llama_cpp, LENGTHS, options.threads, options.ik)
    found: dict[str, list[list[float]]] = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name, measured in programs.items():
            found[name].append(measured())
    print(f"{'tokens a second, prompt of':28}" + "".join(f"{length:>10}" for length in LENGTHS))  # noqa: T201 - a command speaks
    for name, rounds in found.items():
        columns = [f"{median(speeds):10.1f}" for speeds in zip(*rounds, strict=True)]
        print(f"{name:28}" + "".join(columns))  # noqa: T201 - a command speaks


if __name__ == "__main__":
    main()
