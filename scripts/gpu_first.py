"""Test the kernels, exactness and speed of a card in its first half hour; print one JSON line a stage.

    python -m scripts.gpu_first [--model FOLDER] [--only STAGE]... [--miniature]

Needs this repository, torch 2.11 to 2.13 for CUDA with its triton, and the packages of requirements.lock; no
network, no pytest, no drafters. Each stage is guarded, so one failure does not hide others. `--model` is a
folder with the 0.5B (config.json, tokenizer.json, model.safetensors), 1 GB to carry; without it the stages
that need it report its absence. `--miniature` runs everything in small in Triton's interpreter, with
TRITON_INTERPRET=1.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from completion_engine.gpu.machine import compiler_flaw, find_gpu, release_memory
from completion_engine.gpu.memory import BITS, Geometry
from completion_engine.gpu.weights import Bits
from completion_engine.target_model.llama_family import FamilyModel
from completion_engine.target_model.passes import Findings
from completion_engine.target_model.weights import Precision
from scripts.random_model import GEOMETRIES, random_model

Facts = dict[str, Any]
_PACKAGES = ("torch", "triton", "numba", "numpy", "safetensors", "tokenizers", "transformers")
_TEXT = "def mean(values):\n    return sum(values) / len(values)\n\n\ndef median(values):\n    "
_TINY = Geometry(1, 128, 128, 2, 1, 64, 96, is_tied=True)
_NUM_NUMBERS = 1 << 25  # float32 numbers to read: more than most processor caches hold
_NUM_ROUNDS = 3
Held = Bits | Literal["file"]
_HELD: tuple[Held, ...] = (16, 8, "file")


@dataclass(frozen=True, slots=True)
class Trial:
    """How large everything is."""

    device: torch.device
    model: Path | None
    kernels: Geometry
    target: Geometry
    timed: Mapping[str, Geometry]
    held: Sequence[Held]
    capacity: int
    is_small: bool = False


FULL = (GEOMETRIES["1.5B"], GEOMETRIES["0.5B"], {size: GEOMETRIES[size] for size in ("1.5B", "7B")})


def machine(trial: Trial) -> Iterator[Facts]:
    """The card, the toolchain and the speed of the memory."""
    flaw, gpu = compiler_flaw(), find_gpu()
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "MISSING: carry it"
    yield {
        "gpu": str(gpu), "cuda": torch.version.cuda, "python": platform.python_version(),
        "packages": versions,
        "compiler": str(flaw) if flaw else "ok",
        "gigabytes_per_s": round(bytes_per_ms(trial.device) / 1e6, 1),
        "model": str(trial.model) if trial.model else "absent: carry the folder of the 0.5B, 1 GB",
    }  # fmt: skip


@cache
def bytes_per_ms(device: torch.device) -> float:
    """Measure how fast a device reads its memory. Takes tens of milliseconds, once."""
    numbers = torch.ones(_NUM_NUMBERS, device=device)
    times = []
    for _ in range(_NUM_ROUNDS):
        begin = time.perf_counter()
        numbers.sum().item()
        times.append((time.perf_counter() - begin) * 1e3)
    return numbers.nbytes / min(times)


def kernels(trial: Trial) -> Iterator[Facts]:
    """Every kernel at the shapes of the 1.5B against float64."""
    from completion_engine.gpu.decoder import GraphedDecoder  # noqa: PLC0415 - as above
    from scripts.gpu_kernel_errors import MAX_ERROR, kernel_errors  # noqa: PLC0415 - as above

    for held in trial.held:
        model = random_model(trial.kernels, trial.device, num_layers=1, is_file=held == "file")
        decoder = GraphedDecoder(model, trial.capacity, trial.device, _bits_of(held))
        errors = dict(kernel_errors(decoder))
        wrong = [name for name, error in errors.items() if not error < MAX_ERROR]
        facts = {name: float(f"{error:.2g}") for name, error in errors.items()}
        yield {"ok": not wrong, "bits": held, "wrong": wrong, "errors": facts}


def _bits_of(held: Held) -> Bits:
    return 8 if held == "file" else held


def loaded(trial: Trial, geometry: Geometry, held: Held, known: Findings | None = None) -> Any:
    """A target with random weights on the kernels, its passes captured, its bits compared unless `known`."""
    from completion_engine.gpu.decoder import GraphedDecoder  # noqa: PLC0415 - as above
    from completion_engine.target_model.decoder import InPlaceBranches  # noqa: PLC0415 - as above
    from completion_engine.target_model.language_model import LanguageModel  # noqa: PLC0415 - as above

    model, bits = random_model(geometry, trial.device, is_file=held == "file"), _bits_of(held)
    decoder = GraphedDecoder(model, trial.capacity, trial.device, bits)
    decoder.rehearse()
    kind = next(kind for kind, num_bits in BITS.items() if num_bits == bits)
    precision = Precision(kind, torch.bfloat16, kind)
    return LanguageModel(decoder, trial.device, precision, trial.capacity, InPlaceBranches(), known=known)


def exactness(trial: Trial) -> Iterator[Facts]:
    """Rows and trees of a random 0.5B, in passes of several widths."""
    from completion_engine.target_model.exactness import rows_are_invariant  # noqa: PLC0415 - as above

    for held in trial.held[-1:] if trial.is_small else trial.held:
        target = loaded(trial, trial.target, held)
        widths = (24,) if trial.is_small else (64, 256)  # small ones have compared 64 at load
        rows = {str(width): rows_are_invariant(target, width) for width in widths}
        ok = target.is_row_invariant and target.verifies_trees and all(rows.values())
        yield {
            "ok": ok, "bits": held, "rows": rows, "trees": target.verifies_trees,
            "exactness": target.exactness,
        }  # fmt: skip


def layers(trial: Trial) -> Iterator[Facts]:
    """The real 0.5B, or random weights in small, layer by layer against float32 torch."""
    from completion_engine.gpu.decoder import GraphedDecoder  # noqa: PLC0415 - as above
    from completion_engine.gpu.passes import PassShape  # noqa: PLC0415 - as above
    from completion_engine.gpu.reference import reference_states  # noqa: PLC0415 - as above
    from completion_engine.target_model.decoder import lay_out  # noqa: PLC0415 - as above
    from completion_engine.target_model.kv_cache import CacheShape, KVCache  # noqa: PLC0415 - as above

    model = real_model(trial.model) if trial.model else random_model(trial.target, trial.device)
    decoder = GraphedDecoder(model, trial.capacity, trial.device)
    sizes = (decoder.num_layers, decoder.num_kv_heads, decoder.head_size, decoder.hidden_size)
    tokens = list(range(3, 19))
    every, errors = decoder.layers, []
    for count, wanted in enumerate(reference_states(model, tokens, trial.device), 1):
        decoder.layers = every[:count]
        at = decoder.buffers(PassShape(16, is_tree=False, wants_logits=False))
        cache = KVCache(CacheShape(*sizes, trial.capacity, torch.bfloat16, trial.device))
        at.inputs.fill(tokens, lay_out(range(-1, len(tokens) - 1)), cache)
        decoder.compute(at, wants_logits=False)
        errors.append(float((at.x[: len(tokens)].float() - wanted).norm() / wanted.norm()))
    facts = [float(f"{error:.2g}") for error in errors]
    yield {"ok": max(errors) < 0.1, "is_real": trial.model is not None, "errors": facts}


def real_model(folder: Path) -> FamilyModel:
    """The model in a folder, in bf16."""
    from completion_engine.target_model.llama_family import read_family_config  # noqa: PLC0415 - as above
    from completion_engine.target_model.model_files import open_weights  # noqa: PLC0415 - as above

    return FamilyModel(read_family_config(folder), open_weights(folder, torch.bfloat16))


def speed(trial: Trial) -> Iterator[Facts]:
    """Passes and synchronised prefill of random weights, and their share of the memory's speed."""
    for size, geometry in trial.timed.items():
        for held in trial.held[-1:] if trial.is_small else trial.held:
            about: Facts = {"model": size, "bits": held}
            try:
                yield about | _speed_of(trial, geometry, held)
            except torch.OutOfMemoryError:
                yield about | {"absent": "it does not fit into this card's memory"}
            release_memory(trial.device)


def _speed_of(trial: Trial, geometry: Geometry, held: Held) -> Facts:
    from completion_engine.target_model.kv_cache import KVCache  # noqa: PLC0415 - as above
    from completion_engine.target_model.language_model import WIDTHS  # noqa: PLC0415 - as above

    flags = True, True, True  # another stage finds them
    known = Findings(*flags, dict.fromkeys(WIDTHS, 1.0), 0.0, {1: 1.0}, are_final=True)
    target = loaded(trial, geometry, held, known)
    cache, rows = KVCache(target.cache_shape), [0] * (64 if trial.is_small else 256)

    def pass_of(width: int) -> Tensor:
        logits: Tensor = target.forward(rows[:width], cache, 1)
        return logits

    widths = {"8 rows": 8, "16 rows": 16, "prefill": len(rows)}
    ms = {name: _quickest_ms(partial(pass_of, width), trial) for name, width in widths.items()}
    decoder = target.decoder
    num_bytes = decoder.head.weight.num_bytes + sum(layer.num_bytes for layer in decoder.layers)
    floor_ms = num_bytes / bytes_per_ms(trial.device)
    return {
        "megabytes": round(num_bytes / 1e6),
        "ms": {name: round(taken, 3) for name, taken in ms.items()},
        "prefill_tokens_per_s": round(len(rows) / ms["prefill"] * 1e3),
        "floor_ms": round(floor_ms, 3),
        "share_of_bandwidth": round(floor_ms / ms["8 rows"], 3),
    }


def _quickest_ms(work: Callable[[], Tensor], trial: Trial) -> float:
    """The quickest of a few runs, each waited for."""
    times = []
    for _ in range(1 if trial.is_small else 6):
        begin = time.perf_counter()
        work()[0, 0].item()
        times.append((time.perf_counter() - begin) * 1e3)
    return min(times)


def chain(trial: Trial) -> Iterator[Facts]:
    """The backends of this machine, and the one on which the real model answers."""
    from completion_engine.loading.backends import plan_here  # noqa: PLC0415 - as above

    plan = plan_here("auto", "auto")
    facts: Facts = {"backends": [str(backend) for backend in plan.backends], "reasons": list(plan.reasons)}
    if trial.model is None:
        yield facts | {"answer": "needs --model"}
        return
    from completion_engine.config import EngineConfig  # noqa: PLC0415 - as above
    from completion_engine.load_engine import load_engine_from  # noqa: PLC0415 - as above
    from completion_engine.request import CompletionRequest  # noqa: PLC0415 - as above

    begin = time.perf_counter()
    engine = load_engine_from(trial.model, EngineConfig(str(trial.model)))
    facts["ready_s"] = round(time.perf_counter() - begin, 2)
    done = engine.complete(CompletionRequest(_TEXT, "\n", "python", deadline_ms=0))
    about = {name: engine.describe()[name] for name in ("backend", "backend_reason", "exactness", "pass_ms")}
    yield facts | about | {"text": done.text, "answer_ms": round(done.stats.ms["total"], 2)}


STAGES: Mapping[str, Callable[[Trial], Iterator[Facts]]] = {
    "machine": machine, "kernels": kernels, "exactness": exactness,
    "layers": layers, "speed": speed, "chain": chain,
}  # fmt: skip


def run(trial: Trial, names: Sequence[str], write: Callable[[str], object]) -> bool:
    """Run stages, each guarded; write one line for each result. Returns whether all went well."""
    is_well = True
    for name in names:
        begin = time.perf_counter()
        try:
            for facts in STAGES[name](trial):
                line = {"stage": name, "ok": True, "seconds": round(time.perf_counter() - begin, 2)} | facts
                is_well &= bool(line["ok"])
                write(json.dumps(line))
                begin = time.perf_counter()
        except Exception as error:  # whatever a card, a driver or a library raises is a finding
            is_well = False
            said = f"{type(error).__name__}: {error}"[:2000]
            write(json.dumps({"stage": name, "ok": False, "error": said}))
        release_memory(trial.device)
    return is_well


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def trial_of(*, is_small: bool, model: Path | None) -> Trial:
    """The trial of a card, or everything in small on the CPU."""
    if is_small:
        timed = {"tiny": _TINY}
        return Trial(torch.device("cpu"), model, _TINY, _TINY, timed, _HELD, 160, is_small=True)
    return Trial(torch.device("cuda", 0), model, *FULL, _HELD, 8192)


def main() -> None:
    """Run what the arguments name; exits with 1 where something is wrong."""
    parser = argparse.ArgumentParser(description="Test a card; print one JSON line a stage.")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--only", action="append", choices=list(STAGES))
    parser.add_argument("--miniature", action="store_true")
    asked = parser.parse_args()
    trial = trial_of(is_small=asked.miniature, model=asked.model)
    sys.exit(not run(trial, asked.only or list(STAGES), _write))


if __name__ == "__main__":
    main()
