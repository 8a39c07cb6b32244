"""Loads a target on a GPU: checks that it fits and agrees with plain torch, and compiles all kernels.

Any failure is raised, so that the chain tries the next backend.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import torch

from completion_engine.errors import UserError
from completion_engine.gpu import machine
from completion_engine.gpu.memory import BITS, MemoryPlan, plan_memory, read_geometry, why_not_model
from completion_engine.gpu.reference import reference_logits
from completion_engine.loading.backends import Backend, BackendError
from completion_engine.target_model.decoder import InPlaceBranches
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel, is_of_family, read_family_config
from completion_engine.target_model.model_files import Config, num_positions, open_weights, reading

_CAPACITIES = (8192, 4096, 2048)  # positions of a cache, the first that fits
NUM_MORE_CACHES = 2  # besides the slots: for next edits and the timed passes
# error of logits, relative as a norm: 28 layers in bf16 differ from float32 by a few hundredths
_MAX_ERROR = 0.1
_NUM_TOKENS = 264  # tokens of the compared text
_NUM_FIRST, _NUM_LAST = 40, 8  # tokens of the two passes whose logits are compared


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """A target to load: `num_slots` caches with `capacity` positions each (0 for as many as fit).

    The logits of `text`, token ids, are compared with float32 torch before a GPU is used.
    """

    folder: Path
    capacity: int = 0
    num_slots: int = 6
    text: Sequence[int] = ()


def load_on_gpu(backend: Backend, options: LoadOptions) -> LanguageModel:
    """Load the target on a GPU backend. Raises BackendError, or any error of the libraries."""
    try:
        with reading(options.folder):
            config = read_family_config(options.folder)
        load = _on_kernels if backend.name == "GPU kernels" else _on_torch
        return load(backend, options, config)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise BackendError("GPU memory ran out while the model was loaded.") from error
    except UserError as error:
        raise BackendError(str(error)) from error
    except BackendError:
        raise
    except Exception as error:
        flaw = machine.compiler_flaw() if backend.name == "GPU kernels" else None
        if flaw is None:
            raise
        raise BackendError(str(flaw)) from error


def _on_kernels(backend: Backend, options: LoadOptions, config: Config) -> LanguageModel:
    if why_not := why_not_model(config):
        raise BackendError(f"{why_not}.")
    precision, plan = backend.precision, _fitting(backend, options)
    # In our cache folder, which `slipstream uninstall` removes; a folder that the user sets is not changed.
    kernel_folder = platformdirs.user_cache_path("slipstream", appauthor=False) / "triton"
    os.environ.setdefault("TRITON_CACHE_DIR", str(kernel_folder))
    from completion_engine.gpu import launch  # noqa: PLC0415 - needs triton
    from completion_engine.gpu.decoder import GraphedDecoder  # noqa: PLC0415 - as above

    # A compiler that fails shows before weights are read.
    row = torch.zeros(1, 64, dtype=precision.dtype, device=backend.device)
    launch.run_add_and_norm(row[None].float(), row[0], 1.0, row, row.clone())
    with reading(options.folder):
        family = FamilyModel(config, open_weights(options.folder, precision.dtype))
    capacity = _capacity(config, plan, options)
    decoder = GraphedDecoder(family, capacity, backend.device, BITS[precision.kind])
    decoder.rehearse()
    branches = InPlaceBranches()
    target = LanguageModel(decoder, backend.device, precision, capacity, branches)
    _check_logits(target, family, options.text)
    return target


def _on_torch(backend: Backend, options: LoadOptions, config: Config) -> LanguageModel:
    from completion_engine.transformers_decoder import module_decoder  # noqa: PLC0415 - takes seconds

    plan = _fitting(backend, options)
    capacity = _capacity(config, plan, options)
    decoder = module_decoder(options.folder, config, capacity, backend.precision, backend.device)
    target = LanguageModel(decoder, backend.device, backend.precision, capacity)
    if is_of_family(config):
        with reading(options.folder):
            family = FamilyModel(config, open_weights(options.folder, backend.precision.dtype))
        _check_logits(target, family, options.text)
    return target


def _check_logits(target: LanguageModel, family: FamilyModel, text: Sequence[int]) -> None:
    """Raise BackendError if the logits of a text differ from those of float32 torch.

    The text is repeated until it has more keys than one program of attention sums. The last logits of a wide
    pass and those of a narrow one after it are compared.
    """
    if not text:
        return
    tokens = (list(text) * _NUM_TOKENS)[: min(_NUM_TOKENS, target.capacity // 2)]
    first, last = tokens[:-_NUM_LAST], tokens[-_NUM_LAST:]
    cache, num_first = KVCache(target.cache_shape), min(_NUM_FIRST, len(first))
    found = target.forward(first, cache, num_first)
    cache.keep(first)
    found = torch.cat([found, target.forward(last, cache, _NUM_LAST)])
    wanted = reference_logits(family, tokens, target.device, BITS[target.precision.kind], len(found))
    error = float((found.float() - wanted).norm() / wanted.norm())
    if not error < _MAX_ERROR:  # also true for NaN
        raise BackendError(f"Its logits of a text differ from float32 torch by {error:.1%}.")


def _fitting(backend: Backend, options: LoadOptions) -> MemoryPlan | None:
    """Return the memory plan with the longest caches that fit; None if the target's size is unknown.

    Raises BackendError if nothing fits.
    """
    geometry = read_geometry(options.folder)
    if geometry is None:
        return None
    num_free = machine.num_free_bytes(backend.device)
    share = max(1, backend.precision.dtype.itemsize // 2)  # float32 takes twice what the plan says
    bits, num_caches = BITS[backend.precision.kind], options.num_slots + NUM_MORE_CACHES
    capacities = (options.capacity,) if options.capacity else _CAPACITIES
    plans = [plan_memory(geometry, bits, capacity, num_caches) for capacity in capacities]
    shortages = [plan.shortage(num_free // share) for plan in plans]
    fitting = next((plan for plan, shortage in zip(plans, shortages, strict=True) if not shortage), None)
    if fitting is None:
        raise BackendError(shortages[0])
    return fitting


def _capacity(config: Config, plan: MemoryPlan | None, options: LoadOptions) -> int:
    wanted = plan.capacity if plan else options.capacity or _CAPACITIES[0]
    return min(wanted, num_positions(config) or wanted)
