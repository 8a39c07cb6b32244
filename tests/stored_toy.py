"""The toy target as a folder with safetensors."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

from completion_engine.compile_kernels import TARGET, WEIGHTS, write_toy_model
from completion_engine.models.gguf_layout import LAYOUT
from completion_engine.target_model.model_files import open_weights


def write_stored_toy(folder: Path) -> Path:
    """Write the toy models into `folder`. Returns the target's folder, whose weights are safetensors."""
    write_toy_model(folder)
    target = folder / TARGET
    weights = open_weights(target, torch.bfloat16)
    save_file({name: weights[name] for name in weights}, target / "model.safetensors")
    (target / LAYOUT).unlink()
    (folder / WEIGHTS).unlink()
    return target
