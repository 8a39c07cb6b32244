"""`slipstream serve --http`: its arguments, its token, and the life of the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from completion_engine.errors import DataError, MachineError, UserError
from lsp_server.commands.repository_index import checked_folder
from lsp_server.http_api.completions import Completions
from lsp_server.http_api.connections import LOOPBACK, http_server
from lsp_server.http_api.routes import Routes
from lsp_server.sharing.system import make_private_folder, on_terminate
from lsp_server.workspace.usage_by_day import http_token_path

DEFAULT_PORT = 8012  # llama.vim and llama.vscode use it


def serve_http(places: Sequence[str], *, needs_token: bool) -> None:
    """Serve on a port and for folders, `[PORT] [FOLDER]...`, until Ctrl+C. Raises SlipstreamError."""
    names = list(places)
    port = int(names.pop(0)) if names and names[0].isdecimal() else DEFAULT_PORT
    if port >= 1 << 16:
        raise UserError(f"{port} is not a port.", advice="Use a number from 1024 to 65535.")
    folders = [checked_folder(Path(name)) for name in names]
    try:
        asyncio.run(_serve(port, folders, needs_token=needs_token))
    except KeyboardInterrupt:
        sys.exit(130)


def read_token() -> str:
    """Return the token of HTTP clients, a new one if there is none. Raises DataError for an unusable one."""
    path = http_token_path()
    make_private_folder(path.parent)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="latin-1") as file:
        if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & 0o077:
            raise DataError(f"{path} is open to other users. Delete it, or run `chmod 600` on it.")
        token = file.read(1024).strip()
        if not token:
            token = secrets.token_urlsafe(32)
            file.write(token)
        return token


async def _serve(port: int, folders: Sequence[Path], *, needs_token: bool) -> None:
    stopping = asyncio.Event()
    on_terminate(asyncio.get_running_loop(), stopping.set)
    token = read_token() if needs_token else ""
    async with contextlib.aclosing(Completions(folders)) as completions:
        await completions.stats()
        try:
            async with http_server(port, Routes(completions, token).answer) as bound:
                names = ", ".join(map(str, folders)) or "no folder: name one, so that files are found"
                needs = f" Clients need the token in {http_token_path()}." if token else ""
                address = f"http://{LOOPBACK}:{bound}"
                sys.stderr.write(f"Slipstream answers at {address} for {names}.{needs} Ctrl+C ends it.\n")
                sys.stderr.flush()
                await stopping.wait()
        except OSError as error:
            advice = f"Another program may use it. Run `slipstream serve --http {port + 1}`."
            raise MachineError(f"Port {port} cannot be opened: {error.strerror}.", advice=advice) from error
