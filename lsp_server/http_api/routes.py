"""Which address answers what, and which requests are refused."""

from __future__ import annotations

import hmac
import re

from lsp_server.commands.language_client import ServerGoneError
from lsp_server.http_api.completions import Completions
from lsp_server.http_api.connections import HttpRequest, HttpResponse, RefusedError
from lsp_server.http_api.dialects import DIALECTS, MODEL, Body, read_json, write_json
from lsp_server.protocol.framing import ResponseError
from lsp_server.protocol.reasons import REASONS

_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(rf"https?://{_HOST.pattern}", re.IGNORECASE)
_OLLAMA = {"name": MODEL, "model": MODEL, "modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": ""}
# Addresses at which clients look for models.
_FIXED: dict[str, object] = {
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": MODEL}]},
    "/api/tags": {"models": [{**_OLLAMA, "details": {"family": MODEL}}]},
}
# Reasons that do not depend on the text. Clients keep an empty suggestion for a text, but not an error.
_PASSING = {
    "engine-loading", "engine-error", "unread-folder", "superseded", "document-changed", "out-of-time",
}  # fmt: skip


class Routes:
    """Answers requests that come from this machine, with the token if there is one."""

    def __init__(self, completions: Completions, token: str = "") -> None:
        self._completions, self._token = completions, token

    async def answer(self, request: HttpRequest | RefusedError) -> HttpResponse:
        """Return the response to one request, or to one that could not be read."""
        try:
            if isinstance(request, RefusedError):
                raise request
            self._check(request)
            return await self._find(request)
        except (RefusedError, ServerGoneError, ResponseError) as error:
            status = error.status if isinstance(error, RefusedError) else 503
            body = write_json({"error": {"code": status, "message": str(error)}})
            return HttpResponse(status, body, reason=str(error) if isinstance(error, RefusedError) else "")

    def _check(self, request: HttpRequest) -> None:
        """Raise RefusedError for a request that a web page may have sent, or that lacks the token."""
        if not _HOST.fullmatch(request.headers.get("host", "")):
            raise RefusedError(403, "The Host header must name this machine: use 127.0.0.1 or localhost.")
        origin = request.headers.get("origin")
        if origin is not None and not _ORIGIN.fullmatch(origin):
            raise RefusedError(403, "Web pages of other machines get no answer.")
        given = request.headers.get("authorization", "")
        if self._token and not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            advice = "Send the header 'Authorization: Bearer TOKEN' with the token of --token."
            raise RefusedError(401, advice)

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
        reason = "" if text else found["reason"].encode("ascii", "replace").decode()
        return HttpResponse(200, data, content_type, reason)
