"""Every processor computes the same bits: these digests come from an x86 one with AVX-512."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch

from completion_engine.cpu.linear import can_quantise
from tests.completion_engine.cpu.golden import FILE, cases

WANTED = json.loads(FILE.read_text(encoding="ascii"))

pytestmark = pytest.mark.skipif(
    not can_quantise(torch.device("cpu")), reason="this machine does not multiply bytes fast"
)


@pytest.mark.parametrize(("name", "case"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_bits_are_those_that_another_processor_wrote(name: str, case: Callable[[], str]) -> None:
    assert case() == WANTED[name]
