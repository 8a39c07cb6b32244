"""`slipstream serve --http`: who is let in, which address answers what, and the life of the process."""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import platformdirs

from completion_engine.errors import DataError, MachineError, UserError
from lsp_server.commands.language_client import ServerGoneError
from lsp_server.commands.repository_index import checked_folder
from lsp_server.commands.server_process import SERVER_COMMAND
from lsp_server.http_door.completions import Answer, Completions
from lsp_server.http_door.dialects import DIALECTS, JSON, MODEL, QueryError, read_json, write_json, written
from lsp_server.http_door.server import LOOPBACK, HttpRequest, HttpResponse, http_server
from lsp_server.sharing.system import make_private_folder, on_terminate

DEFAULT_PORT = 8012  # where llama.vim and llama.vscode look
REASON_HEADER = "X-Slipstream-Reason"
_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(rf"https?://{_HOST.pattern}", re.IGNORECASE)
_MODEL_ROW = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
_OLLAMA_ROW = {
    "name": f"{MODEL}:latest",
    "model": f"{MODEL}:latest",
    "modified_at": "1970-01-01T00:00:00Z",
    "size": 0,
    "digest": "",
    "details": {"family": MODEL, "families": [MODEL], "parameter_size": "", "quantization_level": ""},
}
# Addresses at which clients look what the server can do.
_FIXED: dict[tuple[str, str], object] = {
    ("GET", "/v1/models"): {"object": "list", "data": [_MODEL_ROW]},
    ("GET", "/api/tags"): {"models": [_OLLAMA_ROW]},
    ("GET", "/api/version"): {"version": "0.0.0"},
    ("POST", "/api/show"): {
        "template": "{{ .Prompt }}{{ .Suffix }}",
        "details": _OLLAMA_ROW["details"],
        "model_info": {},
        "capabilities": ["completion", "insert"],
    },
}


class Door:
    """Answers requests that come from this machine, with the token if there is one."""

    def __init__(self, completions: Completions, token: str = "") -> None:
        self._completions, self._token = completions, token

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request."""
        if (refusal := self._refusal(request)) is not None:
            return refusal
        path = request.target.partition("?")[0]
        try:
            if request.method == "POST" and path in DIALECTS:
                return await self._complete(path, request.body)
            if request.method == "GET" and path in {"/health", "/props"}:
                return await self._state(path)
        except QueryError as error:
            return refuse(400, str(error))
        except ServerGoneError as error:
            return refuse(503, str(error))
        found = _FIXED.get((request.method, path))
        return (
            HttpResponse(200, write_json(found))
            if found
            else refuse(404, "There is nothing at this address.")
        )

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Return the response for a request that a web page may have sent, or that lacks the token."""
        origin = request.headers.get("origin")
        if not _HOST.fullmatch(request.headers.get("host", "")):
            return refuse(403, "The Host header must name this machine: use localhost or 127.0.0.1.")
        if origin is not None and not _ORIGIN.fullmatch(origin):
            return refuse(403, "Web pages of other machines get no answer.")
        given = request.headers.get("authorization", "")
        if self._token and not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return refuse(401, "Send the header 'Authorization: Bearer TOKEN' with the token of --token.")
        return None

    async def _complete(self, path: str, body: bytes) -> HttpResponse:
        dialect = DIALECTS[path]
        query = dialect.read(read_json(body))
        answer = Answer("")
        if not query.only_shown:
            answer = await self._completions.complete(query.cursor)
        elif query.cursor.prefix or query.cursor.suffix:
            await self._completions.show(query.cursor)
        content_type, data = written(dialect, query, answer)
        reason = answer.reason.encode("ascii", "replace").decode()
        headers = ((REASON_HEADER, reason),) if reason and not answer.text else ()
        return HttpResponse(200, data, content_type, headers)

    async def _state(self, path: str) -> HttpResponse:
        stats = await self._completions.stats()
        if path == "/props":
            name = str(stats["engine"].get("target", MODEL))
            facts: dict[str, Any] = {"model_path": name, "model_alias": MODEL, "total_slots": 1, "n_ctx": 0}
            return HttpResponse(200, write_json({**facts, "default_generation_settings": {"n_ctx": 0}}))
        if stats["state"] == "ready":
            return HttpResponse(200, write_json({"status": "ok"}))
        return refuse(503, stats["message"] or "Loading the model.")


def refuse(status: int, message: str) -> HttpResponse:
    """Return a response with an error as llama-server and OpenAI write it."""
    return HttpResponse(status, write_json({"error": {"code": status, "message": message}}), JSON)


def serve_http(arguments: Sequence[str], *, needs_token: bool) -> None:
    """Serve on the port and for the folders of the command line until Ctrl+C. Raises SlipstreamError."""
    port, folders = parse_arguments(arguments)
    token = read_token() if needs_token else ""
    try:
        asyncio.run(_serve(port, folders, token))
    except KeyboardInterrupt:
        sys.exit(130)


def parse_arguments(arguments: Sequence[str]) -> tuple[int, list[Path]]:
    """Return the port and the folders of `[PORT] [FOLDER]...`. Raises UserError."""
    port, names = DEFAULT_PORT, list(arguments)
    if names and names[0].isdecimal():
        port = int(names.pop(0))
    if not 0 <= port < 1 << 16:
        raise UserError(f"{port} is not a port.", advice="Use a number from 1024 to 65535.")
    return port, [checked_folder(Path(name)) for name in names]


def token_file() -> Path:
    """The file that holds the token of HTTP clients."""
    return platformdirs.user_state_path("slipstream", appauthor=False) / "http-token"


def read_token() -> str:
    """Return the token of HTTP clients, a new one if there is none. Raises DataError for an unusable one."""
    path = token_file()
    if not path.exists():
        make_private_folder(path.parent)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32) + "\n", "ascii")
    if sys.platform != "win32" and path.stat().st_mode & 0o077:
        raise DataError(f"{path} is open to other users. Delete it, or run `chmod 600` on it.")
    with path.open("rb") as file:
        token = file.read(1024).strip().decode("latin-1")
    if len(token) < 16:
        raise DataError(f"{path} holds no token. Delete it, and Slipstream makes a new one.")
    return token


async def _serve(port: int, folders: Sequence[Path], token: str) -> None:
    stopping = asyncio.Event()
    on_terminate(asyncio.get_running_loop(), stopping.set)
    async with Completions((*SERVER_COMMAND, "--shared"), folders) as completions:
        try:
            async with http_server(port, Door(completions, token).handle, refuse) as bound:
                names = ", ".join(map(str, folders)) or "no folder: name one, so that files are found"
                sys.stderr.write(
                    f"Slipstream answers at http://{LOOPBACK}:{bound} for {names}. Ctrl+C ends it.\n"
                )
                if token:
                    sys.stderr.write(f"Clients need the token in {token_file()}.\n")
                sys.stderr.flush()
                await stopping.wait()
        except OSError as error:
            advice = f"Another program may use it. Run `slipstream serve --http {port + 1}`."
            raise MachineError(f"Port {port} cannot be opened: {error.strerror}.", advice=advice) from error
