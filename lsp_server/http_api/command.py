"""`slipstream serve --http`: the life of the process, its addresses, and the requests that it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import re
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from completion_engine.errors import DataError, MachineError, UserError
from lsp_server.commands.language_client import ServerGoneError
from lsp_server.commands.repository_index import checked_folder
from lsp_server.http_api.completions import Completions
from lsp_server.http_api.connections import LOOPBACK, HttpRequest, HttpResponse, RefusedError, http_server
from lsp_server.http_api.dialects import DIALECTS, MODEL, Body, read_json, write_json
from lsp_server.protocol.framing import ResponseError
from lsp_server.protocol.reasons import REASONS
from lsp_server.sharing.system import make_private_folder, on_terminate
from lsp_server.workspace.usage_by_day import http_token_path

DEFAULT_PORT = 8012  # llama.vim and llama.vscode use it
_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(rf"https?://{_HOST.pattern}", re.IGNORECASE)
_OLLAMA = {"modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": "", "details": {"family": MODEL}}
# Addresses at which clients look for models.
_FIXED: Body = {
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": MODEL}]},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL, **_OLLAMA}]},
}
# Reasons that do not depend on the text. Clients keep an empty suggestion for a text, but not an error.
_PASSING = {
    "engine-loading", "engine-error", "unread-folder", "superseded", "document-changed", "out-of-time",
}  # fmt: skip


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


class Routes:
    """Answers requests that come from this machine, with the token if there is one."""

    def __init__(self, completions: Completions, token: str = "") -> None:
        self._completions, self._token = completions, token

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request.

        Raises RefusedError, also for one that a web page may have sent, or that lacks the token.
        """
        if not _HOST.fullmatch(request.headers.get("host", "")):
            raise RefusedError(403, "The Host header must name this machine: use 127.0.0.1 or localhost.")
        origin = request.headers.get("origin")
        if origin is not None and not _ORIGIN.fullmatch(origin):
            raise RefusedError(403, "Web pages of other machines get no answer.")
        given = request.headers.get("authorization", "")
        if self._token and not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            advice = "Send the header 'Authorization: Bearer TOKEN' with the token of --token."
            raise RefusedError(401, advice)
        try:
            return await self._find(request)
        except (ServerGoneError, ResponseError) as error:
            raise RefusedError(503, str(error)) from error

    async def _find(self, request: HttpRequest) -> HttpResponse:
        path = request.target.partition("?")[0]
        if request.method == "POST" and path in DIALECTS:
            return await self._complete(path, read_json(request.body))
        if request.method == "GET" and path in _FIXED:
            return HttpResponse(200, write_json(_FIXED[path]))
        if request.method != "GET" or path not in {"/health", "/props"}:
            raise RefusedError(404, "There is nothing at this address.")
        stats = await self._completions.stats()
        if path == "/props":
            facts = {"model_path": stats["engine"].get("target", MODEL), "total_slots": 1}
            facts |= {"model_alias": MODEL, "default_generation_settings": {"n_ctx": 0}}
            return HttpResponse(200, write_json(facts))
        if stats["state"] != "ready":
            raise RefusedError(503, stats["message"] or REASONS["engine-loading"])
        return HttpResponse(200, write_json({"status": "ok"}))

    async def _complete(self, path: str, body: Body) -> HttpResponse:
        read, write = DIALECTS[path]
        query = read(body)
        found: Body = {"text": "", "rule": "", "reason": "", "stats": {}}
        if query.is_asked:
            found = await self._completions.complete(query.cursor, query.limits)
        text = str(found["text"])
        if not text and found["rule"] in _PASSING:
            raise RefusedError(503, found["reason"])
        for stop in query.stops if isinstance(query.stops, list) else [query.stops]:
            text = text.partition(stop)[0] if isinstance(stop, str) and stop else text
        content_type, data = write(query, text, found["stats"])
        return HttpResponse(200, data, content_type, reason="" if text else found["reason"])
