"""Whether our GPU kernels can run a model of a configuration, and in how many bits they hold weights."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from completion_engine.gpu.weights import Bits
from completion_engine.target_model.decoder import Decoder
from completion_engine.target_model.llama_family import is_of_family
from completion_engine.target_model.model_files import Config
from completion_engine.target_model.weights import WeightKind

if TYPE_CHECKING:
    from completion_engine.gpu.decoder import GraphedDecoder

BITS: dict[WeightKind, Bits] = {"float": 16, "int8": 8, "int4": 4}


def as_graphed(decoder: Decoder) -> GraphedDecoder | None:
    """The decoder, where it is one of our kernels for GPUs."""
    module = sys.modules.get("completion_engine.gpu.decoder")  # importing it needs triton, and takes a second
    return decoder if module is not None and isinstance(decoder, module.GraphedDecoder) else None


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
