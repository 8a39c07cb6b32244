"""Measures products and passes by instruction set: time of one thread or several, trees in turn.

Run as `python -m tests.benchmarks.passes_by_instruction_set [OTHER_TREE ...]`: prints a column for this tree
and one for each other, a checkout with the same module names. `--as AVX2` compiles as for a processor that
has no wider instructions, `--as AVX-VNNI` and `--as "AVX-512 VNNI"` as for one that has these too. The time
of one thread is the processor time that it used. With `--threads 2`, times are those of the clock, which
other programs lengthen. Owns this one measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
BITS, PRODUCT_ROWS = (4, 5, 8), (1, 4, 8, 16, 64)
PASS_ROWS, PREFILL_ROWS = (1, 2, 4, 8, 16, 24), (64, 256)
NUM_KEYS = 600  # tokens of a source file before each pass
# LLVM's names of features that processors with AVX2 alone lack.
_WIDER = (
    "avx512",
    "avx10",
    "avxvnni",
    "amx",
    "avxifma",
    "avxneconvert",
    "vaes",
    "vpclmulqdq",
    "gfni",
    "evex512",
)


class Forced(NamedTuple):
    """A processor to compile for: LLVM's name of it, the features it lacks, by how their names begin, and
    those it has beyond its name.
    """

    name: str
    lacks: tuple[str, ...]
    has: tuple[str, ...] = ()


# AVX-VNNI's instruction comes in AVX-512's encoding, because no processor here has its own: the last name
# takes that away from the compiler, after it was named for `dot`.
_FORCED = {
    "AVX2": Forced("x86-64-v3", _WIDER),
    "AVX-VNNI": Forced("x86-64-v3", _WIDER, ("+avxvnni", "+avx512vl", "+avx512vnni", "-avxvnni")),
    "AVX-512 VNNI": Forced("x86-64-v4", ("amx",), ("+avx512vnni",)),
}


def measured() -> Iterator[tuple[str, int, int]]:
    """What is measured: its kind, bits or none, and rows."""
    yield from (("product", bits, rows) for bits in BITS for rows in PRODUCT_ROWS)
    yield from (("pass", 0, rows) for rows in PASS_ROWS)
    yield from (("prefill", 0, rows) for rows in PREFILL_ROWS)


def forced(instruction_set: str | None) -> dict[str, str]:
    """The environment in which kernels are compiled for an instruction set; None for this processor's own.

    AVX-VNNI as it is forced here has 32 registers instead of 16.
    """
    if instruction_set is None:
        return {}
    if instruction_set not in _FORCED:
        sys.exit(f"Only {', '.join(_FORCED)} can be forced: the others need a processor that has them.")
    from llvmlite import binding

    host = binding.get_host_cpu_features()
    name, lacks, has = _FORCED[instruction_set]
    if not all(host.get(feature[1:]) for feature in has if not feature.endswith("avxvnni")):
        sys.exit(f"This processor has no instructions that {instruction_set} could be forced with.")
    kept = [
        feature
        for feature in host.flatten().split(",")
        if feature[0] == "+" and not feature[1:].startswith(lacks)
    ]
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ",".join([*kept, *has])}


class Worker:
    """A process that measures one tree."""

    def __init__(self, tree: Path, environment: dict[str, str], num_threads: int) -> None:
        self.tree = tree
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), "--worker", "--threads", str(num_threads)],
            env={**os.environ, **environment, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": str(num_threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: tuple[str, int, int]) -> list[float]:
        """Some times of it, in nanoseconds a block or milliseconds a pass."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        found: list[float] = json.loads(self._process.stdout.readline())
        return found

    def end(self) -> None:
        self._process.communicate()


class Measurement:
    """What a worker measures; imports the tree that is first on the path."""

    def __init__(self, num_threads: int) -> None:
        from completion_engine.target_model.threads import use_threads

        use_threads(num_threads)
        self._num_threads = num_threads
        self._clock = time.thread_time if num_threads == 1 else time.perf_counter
        self._model: Any = None

    def __call__(self, kind: str, bits: int, rows: int) -> list[float]:
        return self._product(bits, rows) if kind == "product" else self._pass(rows, kind == "pass")

    def _times(self, run: Callable[[], object], num_times: int, unit_s: float) -> list[float]:
        """Times of some runs, after a first one that makes things ready."""
        run()
        found = []
        for _ in range(num_times):
            begin = self._clock()
            run()
            found.append((self._clock() - begin) / unit_s)
        return found

    def _product(self, bits: int, num_rows: int) -> list[float]:
        """Nanoseconds for 32 inputs and 16 outputs; weights lie in the second cache."""
        import numpy as np
        import torch

        from completion_engine.cpu.kernels import packing
        from completion_engine.cpu.kernels.product import Product
        from completion_engine.cpu.linear import quantise_rows

        num_tiles, num_blocks, record = 20, 28, packing.RECORDS[bits]
        rng = np.random.default_rng(0)
        records = rng.integers(0, 60, (num_tiles, num_blocks, record.num_bytes)).astype(np.uint8)
        units, shape = np.ones(16 * num_tiles, np.float32), (16 * num_tiles, 32 * num_blocks)
        product = Product(packing.PackedWeight(record, records, units, shape), units)
        x = quantise_rows(torch.randn(num_rows, shape[1]))
        outputs = torch.empty(x.groups.num_held, product.width)
        step = product.step(x, outputs)

        def run() -> None:
            for _ in range(10):
                step.task[0] = 0
                step.kernel.run(step.task)

        return self._times(run, 12, 1e-9 * 10 * num_tiles * num_blocks)

    def _pass(self, num_rows: int, has_logits: bool) -> list[float]:
        """Milliseconds of a whole pass of the default model."""
        if self._model is None:
            self._model = self._loaded()
        model, cache, tokens = self._model
        new = tokens[NUM_KEYS : NUM_KEYS + num_rows]
        return self._times(lambda: model.forward(new, cache, num_rows if has_logits else 0), 5, 1e-3)

    def _loaded(self) -> tuple[Any, Any, list[int]]:
        from completion_engine.config import DEFAULT_TARGET
        from completion_engine.loading.model import load_language_model
        from completion_engine.models import ModelStore
        from completion_engine.prompting.tokenizer import load_tokenizer
        from completion_engine.target_model.kv_cache import KVCache
        from completion_engine.target_model.threads import ThreadGovernor

        folder = ModelStore().ensure(DEFAULT_TARGET, lambda *_: None)
        model = load_language_model(folder, "cpu", "auto")
        # A governor that may choose would count the other trees' passes as load, and take fewer threads.
        model.governor = ThreadGovernor({self._num_threads: 1.0})
        text = "".join(
            path.read_text(encoding="utf-8") for path in sorted((ROOT / "ngram_cache").glob("*.py"))
        )
        tokens = load_tokenizer(folder).encode_many([text])[0]
        cache = KVCache(model.cache_shape)
        for first in range(0, NUM_KEYS, 100):
            model.forward(tokens[first : first + 100], cache, 0)
            cache.keep(tokens[first : first + 100])
        return model, cache, tokens


def work(num_threads: int) -> None:
    """Answer the questions on standard input."""
    measurement = Measurement(num_threads)
    for line in sys.stdin:
        print(json.dumps(measurement(*json.loads(line))), flush=True)  # noqa: T201 - a command speaks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument(
        "--as", dest="instruction_set", choices=_FORCED, help="instead of the processor's own"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("product", "pass", "prefill"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    if options.worker:
        work(options.threads)
        return
    environment = forced(options.instruction_set)
    workers = [Worker(tree.resolve(), environment, options.threads) for tree in (ROOT, *options.trees)]
    wanted = [what for what in measured() if options.only in (None, what[0])]
    found: dict[Any, list[float]] = {(worker, what): [] for worker in workers for what in wanted}
    for _ in range(options.rounds):
        for what in wanted:
            for worker in workers:
                found[worker, what] += worker.ask(what)
    told = [
        f"{platform.processor() or platform.machine()}, {options.instruction_set or 'its own instructions'}"
    ]
    told += ["least and median, ns a block (products) or ms (passes), by tree"]
    for what in wanted:
        kind, bits, rows = what
        times = (found[worker, what] for worker in workers)
        cells = " | ".join(f"{min(some):7.1f} {median(some):7.1f}" for some in times)
        told.append(f"{kind:>8} {f'{bits} bits' if bits else '':>7} {rows:>4} rows | {cells}")
    print("\n".join(told))  # noqa: T201 - a command speaks
    for worker in workers:
        worker.end()


if __name__ == "__main__":
    main()
