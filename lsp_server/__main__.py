"""`python -m lsp_server` is the language server on standard input and output, as `slipstream serve` is.

`--shared` makes it a relay to the process that serves all windows, `--host NAME` makes it that process.
`--stdio`, which some editors add, changes nothing.
"""

from __future__ import annotations

import os
import sys

_KNOWN = {"--shared", "--stdio"}


def serve_alone() -> None:
    """Serve one editor with an engine of its own."""
    from lsp_server.sharing.system import check_home, protect_files  # noqa: PLC0415 - as below

    check_home(os.environ)
    protect_files()
    from lsp_server.app import serve_stdio  # noqa: PLC0415 - the relay goes without all this

    serve_stdio()


def host(name: str) -> None:
    """Become the host of that name, unless there is one already."""
    from lsp_server.sharing import watchdog  # noqa: PLC0415 - as above
    from lsp_server.sharing.address import find_address  # noqa: PLC0415 - as above
    from lsp_server.sharing.listener import open_listener  # noqa: PLC0415 - as above
    from lsp_server.sharing.system import protect_files  # noqa: PLC0415 - as above

    protect_files()
    place = find_address(os.environ)
    if place.name != name:
        sys.exit("slipstream: the editor starts another installation than the one that Python finds.")
    watchdog.start()  # first of all: it shares no file and no thread with the host
    if (listener := open_listener(place)) is not None:
        from lsp_server.app import serve_windows  # noqa: PLC0415 - as above

        serve_windows(listener)


def main(arguments: list[str]) -> None:
    """Serve as the arguments say; exit with a message for an unknown one."""
    if arguments[:1] == ["--host"] and len(arguments) == 2:
        host(arguments[1])
    elif unknown := [argument for argument in arguments if argument not in _KNOWN]:
        sys.exit(f"slipstream: {unknown[0]!r} is not an argument. Run `slipstream --help` for the commands.")
    elif "--shared" in arguments:
        from lsp_server.sharing.relay import serve_shared  # noqa: PLC0415 - as above

        serve_shared(serve_alone)
    else:
        serve_alone()


if __name__ == "__main__":
    main(sys.argv[1:])
