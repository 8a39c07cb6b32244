"""Every kernel compiles for the GPUs that are promised, and its machine code wastes none of what they have.

Read off the code, without a GPU: matrix instructions, copies that go on while others compute, no loads of
one number at a time, next to nothing spilled.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.timeout(3600),  # compiles all kernels where nothing has: minutes of a core
    pytest.mark.skipif(not importlib.util.find_spec("triton"), reason="triton is missing: NO GPU kernels"),
]
CAPABILITIES = (80, 90, 120)
NUM_VARIANTS = 26
SHARED_BYTES = 99_000  # that one program may have on 8.6, 8.9 and 12.0, the least of all
SPILLED_BYTES = 32
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "requirements-torch.lock", "requirements-test.lock", "docs/gpu.md"]
)
def test_one_version_of_triton_is_named_everywhere(name: str) -> None:
    """The one that compiles and interprets the kernels in these tests."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = set(re.findall(r"\btriton(?:==| )(\d+\.\d+(?:\.\d+)?)", text, re.IGNORECASE))
    assert found == {importlib.metadata.version("triton")}


@pytest.fixture(scope="module")
def compiled() -> list[dict[str, Any]]:
    """Facts about the machine code of each kernel for each capability.

    Triton keeps what it compiles, by source, compiler and options, and the next run reads that code.
    """
    compiler = str(Path(__file__).with_name("compile_kernels.py"))
    program = [sys.executable, "-W", "ignore", compiler, *map(str, CAPABILITIES)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_variant_is_compiled_for_one_gpu_at_least(compiled: list[dict[str, Any]]) -> None:
    assert len({kernel["name"] for kernel in compiled}) == 38


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_kernels_compile_for_gpus_that_are_not_here(compiled: list[dict[str, Any]], capability: int) -> None:
    found = [kernel for kernel in compiled if kernel["capability"] == capability]
    assert len(found) == NUM_VARIANTS
    for kernel in found:
        family = kernel["name"].split()[0]
        assert kernel["shared_bytes"] <= SHARED_BYTES, kernel
        assert kernel["stack_bytes"] <= SPILLED_BYTES, kernel
        assert kernel["num_narrow_loads"] == 0, kernel
        if family in {"attend", "product", "gated"}:
            assert {"mma.sync", "wgmma"} & set(kernel["instructions"]), kernel
            assert "cp.async.c" in kernel["instructions"], kernel
        has_blocks = "Q" in kernel["name"]  # there, shorter copies bring the rows and scales of a step
        assert has_blocks or kernel["num_short_copies"] == 0, kernel
        if family in {"product", "gated"}:  # one kind for all widths of a pass, or their bits might differ
            assert "wgmma" not in kernel["instructions"], kernel
