"""Which decoder runs a model that transformers has built: our kernels for GPUs, or its own modules."""

from __future__ import annotations

from typing import Any

import torch

from completion_engine.decoder import Decoder
from completion_engine.errors import UserError
from completion_engine.gpu.branches import InPlaceBranches
from completion_engine.gpu.loading import graphed_decoder
from completion_engine.lanes import Branches
from completion_engine.linear import Kind


def decoder_for(
    model: Any, num_positions: int, kind: Kind, device: torch.device
) -> tuple[Decoder, Branches | None]:
    """The decoder that takes the weights over, and where a tree's branches go.

    Raises UserError for weights of a `kind` that it cannot hold.
    """
    if device.type == "cuda":
        graphed = graphed_decoder(model, num_positions, device, kind)
        if graphed is not None:
            return graphed, InPlaceBranches()
    if kind != "float":
        raise UserError(
            f"Models of the kind {model.config.model_type!r} cannot run in {kind} here.",
            advice="Set dtype to auto.",
        )
    from completion_engine.module_decoder import ModuleDecoder  # noqa: PLC0415 - rarely needed

    return ModuleDecoder(model.to(device), num_positions), None
