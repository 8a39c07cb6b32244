"""The groups of tests that belong together, and their order.

Owns the units of work and their order.
"""

from __future__ import annotations

import re

NEOVIM = re.compile(r"tests/editors/neovim/.*\[(0\.\d+)")
# One workbench is started for all of these but one test, which starts its own and installs a server.
VSCODE = "tests/editors/vscode/"
FRESH = "tests/editors/vscode/test_fresh_profile.py"
# One interpreted target, whose check at load takes as long as most of its tests; compiling needs none.
GPU = "tests/completion_engine/gpu/"
COMPILING = "tests/completion_engine/gpu/test_kernels_compile.py"
# All of these share two real replicas.
REPLICAS = "tests/fleet/replicas/"
# The longest tests begin first: otherwise the run would wait for them in the end.
FIRST = (
    VSCODE,
    GPU,
    "tests/gpu_faults/",
    "tests/scripts/test_gpu_first.py",
    "tests/editors/",
    "tests/e2e/",
    "tests/faults/",
    "tests/ngram_cache/test_redaction_bounds.py",
    "tests/completion_engine/loading/test_warmup.py",
    "tests/completion_engine/models/",
    "tests/completion_engine/cutting/test_bounds.py",
    "tests/fleet/",
)


def unit_of(nodeid: str) -> str:
    """The unit that a test belongs to: mostly its file."""
    file = nodeid.split("::", maxsplit=1)[0]
    if file.startswith(VSCODE) and file != FRESH:
        return VSCODE
    if file.startswith(GPU) and file != COMPILING:
        return GPU
    if file.startswith(REPLICAS):
        return REPLICAS
    if found := NEOVIM.match(nodeid):
        return f"tests/editors/neovim/ {found[1]}"
    return file


def urgency(unit: str) -> int:
    """Sorts units: the long ones first."""
    return next((rank for rank, start in enumerate(FIRST) if unit.startswith(start)), len(FIRST))
