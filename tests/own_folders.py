"""Folders of a test run's own, so that no test sees or changes what belongs to the user who runs it.

Downloaded models are linked and compiled kernels stay shared: both are read by their hash, and cost minutes.
Run as `python -m tests.own_folders`, compiles the kernels: in a folder that nothing else writes to, so that a
test sees what a first start compiles, and from there into the user's cache.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from completion_engine.cpu.kernels.kernel_cache import KERNEL_FOLDER, are_compiled
from completion_engine.models.storage import default_root

VARIABLE = "SLIPSTREAM_TEST_FOLDERS"
COMPILED_ALONE = Path(__file__).parents[1] / ".kernels"  # a cache folder


def use_own_folders() -> None:
    """Let this process and all that it starts use new folders; workers of a run share those of the run."""
    if VARIABLE in os.environ:
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # the folders of tests are kept
    own = Path(tempfile.mkdtemp(prefix="slip-"))  # the path of a socket must be short
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    _link_models(default_root(), own / "models")
    folders = {
        "TMPDIR": own,
        "XDG_RUNTIME_DIR": own / "runtime",
        "XDG_CONFIG_HOME": own / "config",
        "XDG_STATE_HOME": own / "state",
        "SLIPSTREAM_INDEX_DIR": own / "index",
        "SLIPSTREAM_MODEL_DIR": own / "models",
    }
    for folder in folders.values():
        folder.mkdir(mode=0o700, exist_ok=True)
    os.environ |= {VARIABLE: str(own), **{name: str(folder) for name, folder in folders.items()}}
    tempfile.tempdir = None  # read again


def _link_models(store: Path, links: Path) -> None:
    links.mkdir()
    for model in store.glob("*/*.gguf"):
        (links / model.parent.name).symlink_to(model.parent)


def compile_kernels(cache: Path) -> None:
    """Compile in a cache folder what it lacks, as a first start does."""
    command = [sys.executable, "-P", "-m", "completion_engine.compile_kernels", "cpu"]
    subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": str(cache)}, check=True)


if __name__ == "__main__":
    compile_kernels(COMPILED_ALONE)
    if not are_compiled("cpu"):
        compiled = COMPILED_ALONE / "slipstream" / "kernels" / KERNEL_FOLDER.name
        shutil.copytree(compiled, KERNEL_FOLDER, dirs_exist_ok=True)
