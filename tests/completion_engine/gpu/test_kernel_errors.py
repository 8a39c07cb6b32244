"""The comparison of each kernel with torch passes right kernels, and names the kernel that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from completion_engine.gpu.weights import Bits
from completion_engine.target_model.llama_family import FamilyModel

CAPACITY = 300


@pytest.fixture(scope="module")
def decoder_in(device: torch.device, random_model: Callable[..., FamilyModel]) -> Callable[..., Any]:
    """Makes decoders of random models whose layers hold this number of bits."""
    from completion_engine.gpu.decoder import GraphedDecoder

    def make(kind: str = "qwen2", bits: Bits = 16) -> Any:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        return GraphedDecoder(random_model(kind, dtype), CAPACITY, device, bits)

    return make


@pytest.mark.parametrize(("kind", "bits"), [("qwen2", 16), ("qwen3", 16), ("qwen2", 8)])
def test_right_kernels_pass(kind: str, bits: Bits, decoder_in: Callable[..., Any]) -> None:
    from scripts.gpu_kernel_errors import kernel_errors

    errors = dict(kernel_errors(decoder_in(kind, bits)))
    limit = 1e-2 if torch.cuda.is_available() else 1e-5
    assert max(errors.values()) < limit
    kernels = {name.split()[0] for name in errors}
    assert kernels == {
        "product", "gated_product", "embed", "norm", "place_heads", "attention", "add_and_norm",
        "store_hidden",
    }  # fmt: skip


def swapped(buffer: Tensor) -> None:
    """Exchange the first two rows."""
    buffer[..., :2, :] = buffer[..., [1, 0], :].clone()


FAULTS: dict[str, tuple[str, Callable[..., None], str]] = {
    "gate and up exchanged": ("run_gated_product", lambda *a: a[-1].mul_(-1), "gated_product"),
    "swapped rows of a product": ("run_product", lambda *a: swapped(a[-1]), "product qkv"),
    "a part of a product left out": ("run_product", lambda *a: a[-1][-1].zero_(), "product"),
    "swapped rows of an embedding": ("run_embed", lambda *a: swapped(a[-1]), "norm"),
    "values instead of NaN": ("run_add_and_norm", lambda *a: a[-1].fill_(1.0), "add_and_norm"),
    "swapped heads": ("run_place_heads", lambda *a: swapped(a[-1]), "place_heads (queries)"),
    "swapped rows of attention": ("run_attention", lambda *a: swapped(a[-1].flatten(1)[None]), "attention"),
    "nothing kept": ("run_store_hidden", lambda *a: a[-1].add_(1.0), "store_hidden"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_kernel_is_named(
    fault: str, decoder_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from completion_engine.gpu import launch
    from scripts.gpu_kernel_errors import MAX_ERROR, kernel_errors

    name, damage, said = FAULTS[fault]
    right = getattr(launch, name)

    def wrong(*values: Any, **options: Any) -> None:
        right(*values, **options)
        damage(*values)

    decoder = decoder_in()
    monkeypatch.setattr(launch, name, wrong)
    assert said in next(kernel for kernel, error in kernel_errors(decoder) if not error < MAX_ERROR)


def test_a_kernel_that_writes_nothing_is_wrong(
    decoder_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unwritten memory counts as infinitely wrong."""
    from completion_engine.gpu import launch
    from scripts.gpu_kernel_errors import kernel_errors

    decoder = decoder_in()
    monkeypatch.setattr(launch, "run_gated_product", lambda *_: None)
    assert dict(kernel_errors(decoder))["gated_product of 16 rows"] == float("inf")
