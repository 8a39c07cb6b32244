"""Whether a target can run on a GPU by our kernels and fits there. Says why where it cannot."""

from __future__ import annotations

import importlib.util
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from completion_engine.errors import UserError
from completion_engine.gpu.memory import check_fits, plan_memory, read_geometry
from completion_engine.gpu.weights import Bits
from completion_engine.target_model.decoder import Decoder
from completion_engine.target_model.llama_family import is_of_family
from completion_engine.target_model.model_files import Config
from completion_engine.target_model.precision import Precision, WeightKind

if TYPE_CHECKING:
    from completion_engine.gpu.decoder import GraphedDecoder

logger = logging.getLogger(__name__)

BITS: dict[WeightKind, Bits] = {"float": 16, "int8": 8, "int4": 4}
_LEAST_CAPABILITY = (8, 0)  # bf16 matrix instructions and asynchronous copies
_NUM_SLOTS = 4


def check_memory(folder: Path, kind: WeightKind, capacity: int, device: torch.device) -> None:
    """Raises MachineError before anything is loaded that will not fit."""
    geometry = read_geometry(folder)
    if geometry is not None:
        free_bytes, _ = torch.cuda.mem_get_info(device)
        plan = plan_memory(geometry, BITS[kind], capacity, _NUM_SLOTS)
        check_fits(plan, geometry, free_bytes, f"The model in {folder}")


def has_kernels(config: Config, precision: Precision, device: torch.device) -> bool:
    """Whether our kernels run a model of this configuration on `device`; says why where they do not.

    Raises UserError where weights were asked for that only our kernels can read.
    """
    reason = why_not(config, device)
    if not reason:
        from completion_engine.gpu.selftest import fault_of_kernels  # noqa: PLC0415 - needs triton

        fault = fault_of_kernels(device, precision.dtype, BITS[precision.kind], _head_size(config))
        reason = f"the kernels fail: {fault}" if fault else ""
    if reason and precision.kind != "float":
        raise UserError(
            f"Weights in {precision.kind} cannot be used here: {reason}.", advice="Set dtype to auto."
        )
    if reason:
        logger.warning("The GPU is used through plain torch, which is slower: %s.", reason)
    return not reason


def as_graphed(decoder: Decoder) -> GraphedDecoder | None:
    """The decoder, where it is one of our kernels for GPUs."""
    module = sys.modules.get("completion_engine.gpu.decoder")  # importing it needs triton, and takes a second
    return decoder if module is not None and isinstance(decoder, module.GraphedDecoder) else None


def why_not(config: Config, device: torch.device) -> str:
    """Why our kernels cannot run a model of this configuration on `device`; empty where they can."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < _LEAST_CAPABILITY:
        return "the GPU's compute capability is below 8.0"
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    return why_not_model(config)


def why_not_model(config: Config) -> str:
    """Why our kernels cannot run a model of this configuration anywhere; empty where they can."""
    if not is_of_family(config):
        return f"models of the kind {config.get('model_type')!r} have no kernels"
    if config.get("attention_bias") or config.get("mlp_bias"):
        return "the model has biases that the kernels do not add"
    head_size = _head_size(config)
    if head_size < 16 or head_size & (head_size - 1):
        return f"heads of {head_size} numbers do not fill matrix instructions"
    return ""


def _head_size(config: Config) -> int:
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])
