"""`python -m lsp_server.history.remove_after FOLDER`: removes a folder when the process that started it ends.

Standard input ends then, also when that process was killed.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from pathlib import Path

_MAX_WAIT_S = 10.0


def main(folder: Path) -> None:
    """Wait for the end of standard input, then remove `folder`.

    A server that still writes into the folder gets some time to end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _MAX_WAIT_S
    while folder.is_dir() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
