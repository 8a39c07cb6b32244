"""Loads a target from a model folder, on each backend that can run it, and stores what the load measured.

transformers builds the model only if our own kernels cannot use the weights in the folder directly. Findings
are stored beside the packed weights for a week. A file of them is valid for one set of weights, kernels and
libraries and for one processor, which its name identifies; without it, they are measured again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from contextlib import suppress
from dataclasses import fields
from functools import cache, partial
from pathlib import Path

import numba
import torch
from safetensors import SafetensorError

from completion_engine.checksum import with_checksum, without_checksum
from completion_engine.cpu import int8_decoder
from completion_engine.cpu.int8_decoder import Int8Decoder
from completion_engine.cpu.kernels.dot import instruction_sets
from completion_engine.cpu.kernels.kernel_cache import flaw_of, folder_for, machine_mark
from completion_engine.cpu.packed_file import packed_path
from completion_engine.errors import MachineError
from completion_engine.loading.backends import Backend, BackendChain, plan_here
from completion_engine.loading.gpu_target import LoadOptions, load_on_gpu
from completion_engine.runtime import whole_file
from completion_engine.target_model import llama_family
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel, is_of_family, read_family_config
from completion_engine.target_model.model_files import (
    damaged,
    num_positions,
    open_weights,
    reading,
    weight_files,
)
from completion_engine.target_model.passes import Findings
from completion_engine.target_model.threads import take_free_threads, thread_counts
from completion_engine.target_model.weights import Precision

CAPACITY = {"cpu": 2368, "cuda": 8192}  # positions of a KV slot
logger = logging.getLogger(__name__)
_VALID_S = 7 * 86_400
# parts of the engine whose code influences the findings
_PARTS = ("cpu", "target_model")
_TABLES = ("pass_ms", "thread_paces")


def load_language_model(folder: Path, device: str, dtype: str, capacity: int = 0) -> LanguageModel:
    """Load a model folder (see `model_files`) on its best backend. Takes seconds.

    `capacity` 0 takes the default of the device. Raises MachineError if the model does not fit into memory,
    DataError for damaged files, UserError for a `dtype` that is not supported here.
    """
    return chain_for(LoadOptions(folder, capacity), device, dtype).run_on_best(lambda target: target)


def chain_for(options: LoadOptions, device: str, dtype: str) -> BackendChain:
    """Return the chain of a target for the settings `device` and `dtype`; loads nothing yet."""
    return BackendChain(plan_here(device, dtype), partial(load_on, options))


def load_on(options: LoadOptions, backend: Backend) -> LanguageModel:
    """Load a target on one backend; errors as in `load_language_model` on the CPU, any error on a GPU."""
    return _load_on_cpu(backend, options) if backend.name == "CPU" else load_on_gpu(backend, options)


def _load_on_cpu(backend: Backend, options: LoadOptions) -> LanguageModel:
    folder, precision = options.folder, backend.precision
    take_free_threads()
    try:
        with reading(folder):
            config = read_family_config(folder)
        capacity = options.capacity or CAPACITY["cpu"]
        capacity = min(capacity, num_positions(config) or capacity)
        with reading(folder):
            weights = open_weights(folder, precision.dtype) if is_of_family(config) else None
            family = FamilyModel(config, weights) if weights else None
        if backend.dtype == "auto" and not (family and Int8Decoder.serves(family)):
            precision = Precision(str(precision.dtype).removeprefix("torch."), precision.dtype)
        if family and precision.kind == "int8":
            return _packed_model(family, folder, precision, capacity)
        from completion_engine.transformers_decoder import module_decoder  # noqa: PLC0415 - takes seconds

        decoder = module_decoder(folder, config, capacity, precision, backend.device)
        return LanguageModel(decoder, backend.device, precision, capacity)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise MachineError(
            f"The model in {folder} does not fit into the memory of {backend.device}.",
            advice="Choose a smaller target or another device.",
        ) from error
    except (OSError, KeyError, SafetensorError) as error:
        raise damaged(folder, error) from error


def _packed_model(family: FamilyModel, folder: Path, precision: Precision, capacity: int) -> LanguageModel:
    """Return a model with packed weights mapped from disk, and the stored findings of earlier loads."""
    packed = packed_path(weight_files(folder), precision.dtype, (int8_decoder, llama_family))
    decoder = Int8Decoder(family, capacity, packed)
    path = findings_path(packed, capacity)
    known = read_findings(path, time.time())
    model = LanguageModel(decoder, torch.device("cpu"), precision, capacity, known=known)
    if model.findings is not known:
        store_findings(path, model.findings)
    return model


def findings_path(packed: Path, capacity: int) -> Path:
    """Return the path of the findings for the weights at `packed`, with caches of `capacity` positions."""
    facts = (
        packed.name, capacity, _code(), machine_mark(), instruction_sets(), thread_counts(),
        torch.__version__, numba.__version__,
    )  # fmt: skip
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return packed.with_name(f"{packed.stem}-{digest}.json")


def read_findings(path: Path, now: float) -> Findings | None:
    """Return findings that are at most a week old; None without any. `now` in seconds."""
    try:
        status = path.lstat()
        if flaw_of(status) or not 0 <= now - status.st_mtime < _VALID_S:
            return None
        values = json.loads(without_checksum(path.read_bytes()))
        tables = {name: {int(number): ms for number, ms in values[name].items()} for name in _TABLES}
        return Findings(**(values | tables))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("Findings in %s are damaged and made anew: %s", path, error)
        return None


def store_findings(path: Path, findings: Findings) -> None:
    """Store findings for later loads. If this fails, they are measured again."""
    if not path.parent.is_dir():
        return
    values = {field.name: getattr(findings, field.name) for field in fields(Findings)}
    with suppress(OSError), whole_file(path) as file:
        file.write(with_checksum(json.dumps(values).encode("ascii")))


@cache
def _code() -> str:
    """Return a hash of the code that computes a pass, and that compares and times passes."""
    package = Path(__file__).parents[1]
    return folder_for([file for part in _PARTS for file in (package / part).rglob("*.py")]).name
