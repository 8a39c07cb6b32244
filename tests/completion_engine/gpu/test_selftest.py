"""The kernels are tried before a target trusts them, and a wrong result is seen."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from completion_engine.gpu.weights import Bits


@pytest.mark.parametrize(("bits", "head_size"), [(16, 64), (8, 128), (4, 64)])
def test_right_kernels_are_trusted(bits: Bits, head_size: int, device: torch.device) -> None:
    from completion_engine.gpu.selftest import fault_of_kernels

    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    assert not fault_of_kernels(device, dtype, bits, head_size)


def test_wrong_kernels_are_seen(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    from completion_engine.gpu import launch, selftest

    attend = launch.run_attention

    def shifted(inputs: Any, *others: Any) -> None:
        inputs.start.sub_(1)
        attend(inputs, *others)

    monkeypatch.setattr(launch, "run_attention", shifted)
    assert "off by" in selftest.fault_of_kernels(device, torch.float32, 16, 64)


def test_kernels_that_cannot_be_run_are_seen(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    from completion_engine.gpu import launch, selftest

    def refuse(*_: Any) -> None:
        raise RuntimeError("no kernel image is available")

    monkeypatch.setattr(launch, "run_product", refuse)
    assert "no kernel image" in selftest.fault_of_kernels(device, torch.float32, 16, 64)
