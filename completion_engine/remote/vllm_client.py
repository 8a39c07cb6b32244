"""A client of a team's vLLM servers at one address: whole answers, streamed ones, and the tokenizer's proof.

Owns the connections, and the form of the requests on them, which is vLLM's. Used on one thread. Does not
depend on documents.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from completion_engine.errors import RemoteError
from completion_engine.probability import NUM_RIVALS
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.answer import Answer, Request, Wait, invalid_answer
from completion_engine.remote.connections import Connections, silent
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.token_stream import TokenStream, fault_of

COMPLETIONS, MODELS, TOKENIZE = "/v1/completions", "/v1/models", "/tokenize"
_META = re.compile(r"[\\.^$*+?()\[\]{}|]")
# The group lets vLLM's grammars share its compiled form; without it each takes ten times as long to compile.
_ANYTHING = r"([\s\S])*"
# Tokenizers differ in words, runs of blanks, digits, signs, and characters of one to four bytes.
PROBE = (
    "def naïve_sum(values: list[int]) -> int:\n\t    return sum(v ** 2 for v in values if v >= 1_024)\n"
    "        print(f'{total:>8.3f} %', 3.14159)\n"
    "\r\n  const größe = `${münze}…`;\n\n\n// 你好, мир! \U0001f9ee ÿ\u00a0\u2028 don't\n"
)
_MIN_POSITIONS, _MAX_POSITIONS = 512, 1 << 20
_USUAL_POSITIONS = 4096
_MAX_WHOLE_BYTES = 1 << 20
_MAX_MODELS, _MAX_NAME_CHARS = 1000, 200


@dataclass(frozen=True, slots=True)
class CompletionQuery:
    """Write after `prompt`, beginning with `healed`, up to one of `end_ids` or `max_tokens`.

    Only queries with the same `salt` share the servers' cache. Queries of one `session` are answered best by
    one server. With `scores` the answer holds the probability of each token, and of its
    rivals.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    end_ids: tuple[int, ...] = ()
    healed: bytes = b""
    temperature: float = 0.0
    seed: int = 0
    salt: str = ""
    session: str = ""
    scores: bool = False

    def body(self, model: str) -> bytes:
        """Return the request's JSON."""
        fields: dict[str, object] = {
            "model": model,
            "prompt": self.prompt,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
            "stop_token_ids": self.end_ids,
        }
        if self.temperature:
            fields["seed"] = self.seed
        if self.scores:
            fields |= {"logprobs": NUM_RIVALS, "return_tokens_as_token_ids": True}
        if self.salt:
            fields["cache_salt"] = self.salt
        if pattern := healing_pattern(self.healed):
            fields["structured_outputs"] = {"regex": pattern}
        return json.dumps(fields, separators=(",", ":")).encode()


def healing_pattern(healed: bytes) -> str:
    """Return a regular expression for text that begins with these bytes; empty where there is not one."""
    try:
        text = healed.decode()
    except UnicodeDecodeError:  # a character cut in two
        return ""
    if not text or "\0" in text:  # vLLM takes no NUL
        return ""
    # No other character is escaped: vLLM would log a line for each needless escape.
    return _META.sub(r"\\\g<0>", text) + _ANYTHING


def tokenize_body(model: str, text: str) -> bytes:
    """Return the JSON of a request for the tokens of a text."""
    return json.dumps({"model": model, "prompt": text, "add_special_tokens": False}).encode()


class QueryNames:
    """QueryNames in a window's queries, which reveal neither the user nor the file."""

    def __init__(self, token: str) -> None:
        self._window = secrets.token_bytes(32)
        # A user's windows share the servers' cache of their prompts. Others do not have the token.
        owner = token.encode() or self._window
        self.salt = hmac.new(owner, b"slipstream cache salt", hashlib.sha256).hexdigest()

    def session(self, document: str) -> str:
        """Return a document's name in this window."""
        return hmac.new(self._window, document.encode(errors="replace"), hashlib.sha256).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Served:
    """The servers' name of a model, and its limit for the tokens of prompt and answer together."""

    name: str
    num_positions: int = _USUAL_POSITIONS


class VllmClient:
    """The servers at `endpoint`."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Connect at the first request, and whenever there is not a usable connection."""
        self.endpoint = endpoint
        self._connections = Connections(endpoint)

    @property
    def num_connections(self) -> int:
        """Number of connections that were opened so far."""
        return self._connections.num_opened

    def models(self, wait: Wait) -> dict[str, int]:
        """Return the servers' models by name, with the tokens that each takes. Raises RemoteError."""
        entries = self._whole("GET", MODELS, b"", wait).get("data")
        if not isinstance(entries, list):
            raise invalid_answer(self.endpoint.authority, "it is not a list of models")
        models: dict[str, int] = {}
        for entry in entries[:_MAX_MODELS]:
            fields = entry if isinstance(entry, dict) else {}
            name, num_positions = fields.get("id"), fields.get("max_model_len")
            if isinstance(name, str) and 0 < len(name) <= _MAX_NAME_CHARS and name.isprintable():
                models[name] = num_positions if type(num_positions) is int else 0
        return models

    def tokenize(self, model: str, text: str, wait: Wait) -> list[int]:
        """Return the servers' tokens of a text. Raises RemoteError."""
        tokens = self._whole("POST", TOKENIZE, tokenize_body(model, text), wait).get("tokens")
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise invalid_answer(self.endpoint.authority, "it has no token ids")
        return tokens

    def complete(self, question: CompletionQuery, model: str) -> TokenStream:
        """Send a query and return its streamed answer, without waiting for it."""
        more = {"accept": "text/event-stream"}
        if question.session:
            more["x-session-id"] = question.session
        answer = self.request("POST", COMPLETIONS, question.body(model), more)
        return TokenStream(answer, self.endpoint.authority, question.max_tokens)

    def request(self, method: str, path: str, body: bytes, more: Mapping[str, str]) -> Answer:
        """Send a request with these headers and the user's token."""
        headers = {"user-agent": "slipstream", **more}
        if body:
            headers["content-type"] = "application/json"
        if self.endpoint.token:
            headers["authorization"] = f"Bearer {self.endpoint.token}"
        return Answer(self._connections, Request(method, self.endpoint.path + path, headers, body))

    def close(self) -> None:
        """Close the connections that no answer uses."""
        self._connections.close()

    def _whole(self, method: str, path: str, body: bytes, wait: Wait) -> dict[str, Any]:
        authority = self.endpoint.authority
        answer = self.request(method, path, body, {"accept": "application/json"})
        try:
            if not answer.wait_for_status(wait):
                raise silent(authority)
            if answer.status != 200:
                raise fault_of(answer, authority, wait)
            value = json.loads(answer.whole(wait, _MAX_WHOLE_BYTES))
        except (ValueError, RecursionError) as error:
            raise invalid_answer(authority, "it is not JSON") from error
        finally:
            answer.close()
        if not isinstance(value, dict):
            raise invalid_answer(authority, "it is not a JSON object")
        return value


def prove(servers: VllmClient, wanted: str, tokenizer: Tokenizer, wait: Wait) -> Served:
    """Return the served model that is `wanted`, or the first, once its tokens are known to be ours.

    Raises RemoteError.
    """
    served = _served(servers, wanted, wait)
    if servers.tokenize(served.name, PROBE, wait) != tokenizer.encode(PROBE):
        raise RemoteError(
            "tokenizer",
            f"{servers.endpoint.authority} serves {served.name!r}, which has another tokenizer.",
            advice="Set remote.tokenizer to a folder with that model's tokenizer.json, or remote.model.",
        )
    return served


def _served(servers: VllmClient, wanted: str, wait: Wait) -> Served:
    models = servers.models(wait)
    if wanted and wanted not in models:
        names = ", ".join(list(models)[:5])
        raise RemoteError(
            "refused",
            f"{servers.endpoint.authority} has no model {wanted!r}.",
            advice=f"Set remote.model to one of: {names or 'none is there'}.",
        )
    if not models:
        raise RemoteError(
            "unavailable",
            f"{servers.endpoint.authority} serves no model.",
            advice="Ask the servers' administrator.",
        )
    name = wanted or next(iter(models))
    num_positions = models[name] or _USUAL_POSITIONS
    return Served(name, max(_MIN_POSITIONS, min(num_positions, _MAX_POSITIONS)))
