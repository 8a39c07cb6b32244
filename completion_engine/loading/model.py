"""A target out of a model folder: what it computes in, and what runs it.

transformers builds the model only where no kernels of our own take the weights from the folder itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from completion_engine.cpu import int8_decoder
from completion_engine.cpu.float_decoder import FloatDecoder
from completion_engine.cpu.int8_decoder import Int8Decoder
from completion_engine.cpu.packed_file import packed_path
from completion_engine.errors import DataError, MachineError, UserError
from completion_engine.gpu.branches import InPlaceBranches
from completion_engine.gpu.loading import BITS, check_memory, has_kernels
from completion_engine.loading.findings_file import findings_path, read_findings, store_findings
from completion_engine.loading.precision import choose_device, choose_precision
from completion_engine.target_model import llama_family
from completion_engine.target_model.branch_caches import BranchStorage
from completion_engine.target_model.decoder import Decoder
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel, is_of_family, read_family_config
from completion_engine.target_model.model_files import Config, StoredWeights, weight_files
from completion_engine.target_model.model_shape import num_positions
from completion_engine.target_model.precision import Precision, WeightKind
from completion_engine.target_model.threads import take_free_threads

CAPACITY = {"cpu": 2368, "cuda": 8192}  # positions of a KV slot


def load_language_model(folder: Path, device: str, dtype: str, capacity: int = 0) -> LanguageModel:
    """Load a model folder (config.json, safetensors). Seconds. `capacity` 0 takes what suits the device.

    Raises MachineError when it does not fit into memory, DataError when the files are damaged, UserError
    for a `dtype` that it cannot have here.
    """
    place = choose_device(device)
    precision = choose_precision(dtype, place)
    if place.type == "cuda":
        check_memory(folder, precision.kind, capacity or CAPACITY["cuda"], place)
    else:
        take_free_threads()
    try:
        with _read(folder):
            config = read_family_config(folder)
        capacity = capacity or CAPACITY[place.type]
        capacity = min(capacity, num_positions(config) or capacity)
        with _read(folder):
            family = _family(folder, config, precision, place)
        if dtype == "auto" and not (family and Int8Decoder.serves(family)):
            precision = Precision(str(precision.dtype).removeprefix("torch."), precision.dtype)
        if family and precision.kind == "int8" and place.type == "cpu":
            return _packed_model(family, folder, precision, capacity)
        if family:
            decoder, branches = family_decoder(family, capacity, precision.kind, place)
        else:
            decoder, branches = _module_decoder(folder, config, capacity, precision, place), None
        return LanguageModel(decoder, place, precision, capacity, branches)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise MachineError(
            f"The model in {folder} does not fit into the memory of {place}.",
            advice="Choose a smaller target or another device.",
        ) from error
    except (OSError, KeyError, SafetensorError) as error:
        raise _damaged(folder, error) from error


def _packed_model(family: FamilyModel, folder: Path, precision: Precision, capacity: int) -> LanguageModel:
    """A model whose packed weights are mapped from disk, with what earlier loads found out about it."""
    packed = packed_path(weight_files(folder), precision.dtype, (int8_decoder, llama_family))
    decoder = Int8Decoder(family, capacity, packed)
    path = findings_path(packed, capacity)
    known = read_findings(path, time.time())
    model = LanguageModel(decoder, torch.device("cpu"), precision, capacity, known=known)
    if model.findings is not known:
        store_findings(path, model.findings)
    return model


@contextlib.contextmanager
def _read(folder: Path) -> Iterator[None]:
    """Where values come straight out of files, a bad one is damage; elsewhere it is a bug of ours."""
    try:
        yield
    except ValueError as error:
        raise _damaged(folder, error) from error


def _damaged(folder: Path, error: Exception) -> DataError:
    return DataError(
        f"The model in {folder} cannot be loaded: {error}",
        advice="Download it again with `slipstream models pull`.",
    )


def family_decoder(
    model: FamilyModel, num_positions: int, kind: WeightKind, device: torch.device
) -> tuple[Decoder, BranchStorage | None]:
    """What runs a model by kernels of our own, and where a tree's branches go.

    On a GPU the caller has asked `has_kernels`. Raises UserError for weights of a `kind` that it cannot hold.
    """
    if device.type == "cuda":
        from completion_engine.gpu.decoder import GraphedDecoder  # noqa: PLC0415 - needs triton

        graphed = GraphedDecoder(model, num_positions, device, BITS[kind])
        return graphed, InPlaceBranches(graphed.move)
    if kind == "int8":
        return Int8Decoder(model, num_positions), None
    return FloatDecoder(model, num_positions), None


def _family(folder: Path, config: Config, precision: Precision, device: torch.device) -> FamilyModel | None:
    """The parts of a model that kernels of our own run on `device`; None of any other."""
    is_ours = has_kernels(config, precision, device) if device.type == "cuda" else is_of_family(config)
    return FamilyModel(config, StoredWeights(folder, precision.dtype)) if is_ours else None


def _module_decoder(
    folder: Path, config: Config, num_positions: int, precision: Precision, device: torch.device
) -> Decoder:
    """What runs any other model. Raises UserError for rounded weights."""
    if precision.kind != "float":
        raise UserError(
            f"Models of the kind {config.get('model_type')!r} cannot run in {precision.kind} here.",
            advice="Set dtype to auto.",
        )
    from completion_engine.transformers_decoder import TransformersDecoder  # noqa: PLC0415 - loads transformers

    return TransformersDecoder(_built(folder, precision.dtype).to(device), num_positions)


def _built(folder: Path, dtype: torch.dtype) -> Any:
    """The model in transformers' modules."""
    from transformers import AutoModelForCausalLM  # noqa: PLC0415 - seconds that our kernels need not pay
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415 - as above

    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers is untyped
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # as above
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, local_files_only=True, trust_remote_code=False, use_safetensors=True
        )
    except (MemoryError, OSError):
        raise
    except Exception as error:  # whatever its checks and those of the libraries below raise
        raise DataError(
            f"The model in {folder} cannot be built: {error}",
            advice="Download it again with `slipstream models pull`, or choose another target.",
        ) from error
    return model.eval().requires_grad_(False)
