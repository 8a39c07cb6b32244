"""The relay as editors start it, whose host has a scripted engine."""

from __future__ import annotations

from lsp_server.__main__ import main
from lsp_server.sharing import relay

relay.HOST_ARGUMENTS = ("-m", "tests.faults.host_main", "--host")

if __name__ == "__main__":
    main(["--shared"])
