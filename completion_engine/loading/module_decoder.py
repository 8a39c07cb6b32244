"""Runs a model folder through transformers' modules, and defines the error for unreadable folders."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from completion_engine.errors import DataError, UserError
from completion_engine.models.gguf_layout import read_layout
from completion_engine.target_model.decoder import Decoder
from completion_engine.target_model.model_files import Config, open_weights
from completion_engine.target_model.weights import Precision


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn a ValueError in the block into a DataError, because it comes from a model's damaged files."""
    try:
        yield
    except ValueError as error:
        raise damaged(folder, error) from error


def damaged(folder: Path, error: Exception) -> DataError:
    """Return the error for a folder whose files cannot be loaded."""
    return DataError(
        f"The model in {folder} cannot be loaded: {error}",
        advice="Download it again with `slipstream models pull`.",
    )


def module_decoder(
    folder: Path, config: Config, num_positions: int, precision: Precision, device: torch.device
) -> Decoder:
    """Return a decoder for any causal model. Raises UserError for a dtype that rounds weights."""
    if precision.kind != "float":
        raise UserError(
            f"Models of the kind {config.get('model_type')!r} cannot run in {precision.kind} here.",
            advice="Set dtype to auto.",
        )
    from completion_engine.transformers_decoder import TransformersDecoder  # noqa: PLC0415 - loads transformers

    return TransformersDecoder(build_modules(folder, precision.dtype).to(device), num_positions)


def build_modules(folder: Path, dtype: torch.dtype) -> Any:
    """Return the model as transformers' modules. Raises DataError, MemoryError, OSError."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig  # noqa: PLC0415 - seldom needed seconds
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415 - as above

    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers is untyped
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # as above
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        weights = open_weights(folder, dtype) if read_layout(folder) else None
        kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
        model: Any = kind.from_pretrained(
            None if weights else folder,
            config=config,
            dtype=dtype,
            state_dict=weights and {name: weights[name] for name in weights},
            local_files_only=True,
            use_safetensors=True,
        )
    except (MemoryError, OSError):
        raise
    except Exception as error:  # its checks and those of other libraries raise many kinds
        raise DataError(
            f"The model in {folder} cannot be built: {error}",
            advice="Download it again with `slipstream models pull`, or choose another target.",
        ) from error
    return model.eval().requires_grad_(False)
