"""The predicted times of a GPU server, calculated and not measured.

Every step reads all weights once; a prompt's new tokens cost two sums for each weight. GPUs reach a part of
what their makers say. What the network takes is added.
"""

from __future__ import annotations

from dataclasses import dataclass

# Shares of the makers' figures, without sparsity; the shares are what servers of such models usually reach.
_SHARE_OF_BANDWIDTH = 0.6
_SHARE_OF_SUMS = 0.4
_OVERHEAD_MS = 3.0  # a step's bookkeeping, HTTP and TLS on both sides


@dataclass(frozen=True, slots=True)
class Gpu:
    """Bytes a second and sums a second (bf16, dense), in units of 10^9 and 10^12."""

    name: str
    gb_per_s: float
    tera_sums_per_s: float


@dataclass(frozen=True, slots=True)
class Model:
    """Weights in 10^9, and bytes for each."""

    name: str
    giga_weights: float
    bytes_per_weight: float


GPUS = (Gpu("L4", 300, 121), Gpu("A100 80 GB", 2039, 312), Gpu("H100 SXM", 3350, 989))
MODELS = (Model("0.5B, bf16", 0.49, 2), Model("7B, bf16", 7.6, 2))


def step_ms(gpu: Gpu, model: Model) -> float:
    """One pass over few tokens."""
    return 1e3 * model.giga_weights * model.bytes_per_weight / (gpu.gb_per_s * _SHARE_OF_BANDWIDTH)


def suggestion_ms(
    gpu: Gpu, model: Model, num_new_prompt_tokens: float, num_passes: float, round_trip_ms: float
) -> float:
    """From the key to the whole text."""
    sums = 2 * model.giga_weights * num_new_prompt_tokens
    prompt_ms = max(sums / (gpu.tera_sums_per_s * _SHARE_OF_SUMS), step_ms(gpu, model))
    return round_trip_ms + _OVERHEAD_MS + prompt_ms + max(0.0, num_passes - 1) * step_ms(gpu, model)
