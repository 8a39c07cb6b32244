"""The precision for a dtype's name on a device of this machine."""

from __future__ import annotations

import torch

from completion_engine.cpu.linear import can_pack
from completion_engine.cpu.quantised import can_quantise
from completion_engine.errors import UserError
from completion_engine.target_model.weights import Precision, WeightKind

_HELD: dict[str, WeightKind] = {"int8": "int8", "int4": "int4"}  # dtypes that round weights


def choose_precision(name: str, device: torch.device) -> Precision:
    """Return the precision for a dtype's name on this machine. Raises UserError if it is not supported.

    `auto` is int8 weights if the machine multiplies them fast, else bf16 if it computes that, else float32.
    On a GPU it is int8, because a pass takes about as long as reading its weights.
    """
    if device.type == "cuda" and name in {*_HELD, "auto"}:
        held = "int8" if name == "auto" else name
        return Precision(held, torch.bfloat16, _HELD[held])
    computes_bf16 = device.type == "cuda" or can_pack(torch.empty(1, 1, dtype=torch.bfloat16))
    best = torch.bfloat16 if computes_bf16 else torch.float32
    has_bytes = can_quantise(device)
    if name == "int8" and not has_bytes:
        raise UserError(
            "This processor cannot run int8 (it needs an x86 CPU with AVX2, FMA and F16C, or an "
            "ARM one with FEAT_DotProd).",
            advice="Set dtype to auto.",
        )
    if name == "int4":
        raise UserError("Weights in 4 bits need a GPU.", advice="Set dtype to auto.")
    if name == "int8" or (name == "auto" and has_bytes):
        return Precision("int8", best, "int8")
    known = {"auto": best, "bfloat16": torch.bfloat16, "float32": torch.float32}
    if name not in known:
        raise UserError(f"Unknown dtype {name!r}.", advice="Choose auto, bfloat16, float32, int8 or int4.")
    return Precision(str(known[name]).removeprefix("torch."), known[name])
