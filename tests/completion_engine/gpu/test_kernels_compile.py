"""Every kernel compiles for the GPUs that are promised, to matrix instructions, within shared memory."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CAPABILITIES = {"80": 163_000, "90": 227_000}  # bytes of shared memory that one program may have
ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="triton is not installed: the GPU kernels are NOT compiled",
)
def test_kernels_compile_for_gpus_that_are_not_here(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-W",
        "ignore",
        str(Path(__file__).with_name("compile_kernels.py")),
        *CAPABILITIES,
    ]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 21 * len(CAPABILITIES)
    for kernel in found:
        assert kernel["shared_bytes"] <= CAPABILITIES[str(kernel["capability"])], kernel
        if kernel["name"].split()[0] in {"attend", "product", "gated"}:
            assert {"mma.sync", "wgmma"} & set(kernel["instructions"]), kernel
        if kernel["name"].split()[0] in {"product", "gated"}:
            assert "cp.async.c" in kernel["instructions"], kernel
