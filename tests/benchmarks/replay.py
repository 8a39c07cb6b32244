"""`slipstream replay` on modules younger than the models: `python -m tests.benchmarks.replay`.

Takes the options of that command; `--released` adds three modules of recent releases, which are fetched once.
"""

from __future__ import annotations

import sys

from lsp_server.cli import main
from tests.benchmarks.released_sources import released_modules

if __name__ == "__main__":
    given = sys.argv[1:]
    released = map(str, released_modules()) if "--released" in given else ()
    sys.argv[1:] = ["replay", *released, *(argument for argument in given if argument != "--released")]
    main()
