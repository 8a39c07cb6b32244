"""A target out of a model folder: what it computes in, and what runs it.

transformers builds the model only where no kernels of our own take the weights from the folder itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from completion_engine.byte_decoder import ByteDecoder
from completion_engine.decoder import Decoder, FusedDecoder
from completion_engine.decoders import decoder_for
from completion_engine.errors import DataError, MachineError
from completion_engine.gpu.loading import check_memory
from completion_engine.lanes import Branches
from completion_engine.language_model import LanguageModel
from completion_engine.llama_family import FamilyModel, is_of_family, read_family_config
from completion_engine.model_files import StoredWeights
from completion_engine.precision import Precision, choose_device, choose_precision
from completion_engine.threads import take_free_threads

CAPACITY = {"cpu": 2048, "cuda": 8192}  # positions of a KV slot


def load_language_model(folder: Path, device: str, dtype: str, capacity: int = 0) -> LanguageModel:
    """Load a model folder (config.json, safetensors). Seconds. `capacity` 0 takes what suits the device.

    Raises MachineError when it does not fit into memory, DataError when the files are damaged.
    """
    place = choose_device(device)
    precision = choose_precision(dtype, place)
    if place.type == "cuda":
        check_memory(folder, precision.kind, capacity or CAPACITY["cuda"], place)
    else:
        take_free_threads()
    try:
        config = read_family_config(folder)
        capacity = capacity or CAPACITY[place.type]
        capacity = min(capacity, config.get("max_position_embeddings") or capacity)
        family = None
        if place.type == "cpu" and is_of_family(config):
            family = FamilyModel(config, StoredWeights(folder, precision.dtype))
        if dtype == "auto" and not (family and ByteDecoder.serves(family)):
            precision = Precision(str(precision.dtype).removeprefix("torch."), precision.dtype)
        decoder, branches = _decoder_for(
            family or _built(folder, precision.dtype), capacity, precision, place
        )
        return LanguageModel(decoder, place, precision, capacity, branches)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise MachineError(
            f"The model in {folder} does not fit into the memory of {place}.",
            advice="Choose a smaller target or another device.",
        ) from error
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise DataError(
            f"The model in {folder} cannot be loaded: {error}",
            advice="Fetch it again with `slipstream models pull`.",
        ) from error


def _decoder_for(
    model: Any, capacity: int, precision: Precision, device: torch.device
) -> tuple[Decoder, Branches | None]:
    """What runs a model, as its folder has it or as transformers built it, and where a tree's branches go."""
    if not isinstance(model, FamilyModel):
        return decoder_for(model, capacity, precision.kind, device)
    return (ByteDecoder if precision.kind == "int8" else FusedDecoder)(model, capacity), None


def _built(folder: Path, dtype: torch.dtype) -> Any:
    """The model in transformers' modules."""
    from transformers import AutoModelForCausalLM  # noqa: PLC0415 - seconds that our kernels need not pay
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415 - as above

    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers is untyped
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # as above
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, local_files_only=True, trust_remote_code=False, use_safetensors=True
    )
    return model.eval().requires_grad_(False)
