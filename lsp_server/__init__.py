"""The language server, its commands, and the process that serves all windows.

`PYTHONPATH` may name folders of the project that the editor was started in: their modules are not imported,
here or in child processes, unless this package itself is found in one of them.
"""

from __future__ import annotations

import os
import site
import sys

_named = {os.path.realpath(name) for name in os.environ.get("PYTHONPATH", "").split(os.pathsep) if name}
_installed = {os.path.realpath(name) for name in (*site.getsitepackages(), site.getusersitepackages())}
if _named and os.path.realpath(os.path.join(__file__, "../..")) not in _named:  # noqa: PTH118
    sys.path[:] = [name for name in sys.path if os.path.realpath(name) not in _named - _installed]
    del os.environ["PYTHONPATH"]
