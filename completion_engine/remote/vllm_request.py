"""Requests to a team's servers in vLLM's format.

Owns the shape of requests. Does not depend on the network.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass

from completion_engine.probability import NUM_RIVALS

COMPLETIONS, MODELS, TOKENIZE = "/v1/completions", "/v1/models", "/tokenize"
_META = re.compile(r"[\\.^$*+?()\[\]{}|]")
# The group lets vLLM's grammars share its compiled form; without it each takes ten times as long to compile.
_ANYTHING = r"([\s\S])*"


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
