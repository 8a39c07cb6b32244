"""Compile the kernels once for all tests: python -m tests.compiled_kernels

They are compiled in a folder of this tree that nothing else writes to, so that a test can tell what a first
start compiles, and copied into the user's cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from completion_engine.cpu.kernels.kernel_cache import KERNEL_FOLDER, are_compiled

ROOT = Path(__file__).parents[1]
ALONE = ROOT / ".kernels"  # a cache folder


def compile_in(cache: Path) -> None:
    """Compile in a cache folder what it lacks, as a first start does."""
    command = [sys.executable, "-P", "-m", "completion_engine.compile_kernels", "cpu"]
    subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": str(cache)}, check=True)


def main() -> None:
    """Fill both folders."""
    compile_in(ALONE)
    if not are_compiled("cpu"):
        shutil.copytree(
            ALONE / "slipstream" / "kernels" / KERNEL_FOLDER.name, KERNEL_FOLDER, dirs_exist_ok=True
        )


if __name__ == "__main__":
    main()
