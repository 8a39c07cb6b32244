"""Inject faults, and print the table of docs/gpu.md: the backend that answered, the reason, the seconds.

python -m tests.gpu_faults [NAME]...: all faults, or the named ones.
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are imported
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def main() -> None:
    """One row for each fault. Exits with 1 where an answer is wrong, 2 where a name is unknown."""
    from tests.completion_engine.gpu.interpreter import interpreted
    from tests.conftest import write_tiny_model
    from tests.gpu_faults.injected import FAULTS
    from tests.gpu_faults.miniature import outcome_of, write_drafter, written_on

    if unknown := set(sys.argv[1:]) - {fault.name for fault in FAULTS}:
        sys.stderr.write(f"No such fault: {', '.join(sorted(unknown))}\n")
        sys.exit(2)
    written = cache(written_on)
    sys.stdout.write("| fault | backend | reason that is shown | answer |\n| --- | --- | --- | --- |\n")
    is_right = True
    with tempfile.TemporaryDirectory(prefix="slipstream-") as name, interpreted():
        folder = Path(name) / "model"
        write_tiny_model(folder, seed=1, num_layers=1, num_heads=2)
        write_drafter(folder.parent / "drafter", folder)
        for fault in (fault for fault in FAULTS if fault.name in (sys.argv[1:] or [fault.name])):
            found = outcome_of(fault, folder)
            is_same = (found.text, found.tokens) == written(found.backend, found.dtype, folder)
            is_right &= is_same and found.backend == fault.backend and fault.said in found.reason
            reason = f"`{found.reason.replace('`', chr(39))}`" if found.reason else "none"
            answer = f"{'correct' if is_same else 'WRONG'}, {found.seconds:.1f} s"
            sys.stdout.write(f"| {fault.name} | {found.backend} in {found.dtype} | {reason} | {answer} |\n")
            sys.stdout.flush()
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
