"""What a team's servers are asked, in vLLM's words.

Owns the shape of requests. Knows no network.
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
# Grouped, so that grammars of vLLM share what they know of it: else each takes ten times as long to compile.
_ANYTHING = r"([\s\S])*"


@dataclass(frozen=True, slots=True)
class Question:
    """Go on behind `prompt`, with text that begins with `healed`, until one of `end_ids` or `max_tokens`.

    Only what is asked with the same `salt` shares what the servers cached of it. Questions of one `session`
    are best answered by one server. With `scores` the answer holds the probability of each token, and of its
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
        """The request's JSON."""
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
    """A regular expression for text that begins with these bytes; empty where none can say so."""
    try:
        text = healed.decode()
    except UnicodeDecodeError:  # a character cut in two
        return ""
    if not text or "\0" in text:  # vLLM takes no NUL
        return ""
    # No other character is escaped: vLLM's log would get a line for each that needs it not.
    return _META.sub(r"\\\g<0>", text) + _ANYTHING


def tokenize_body(model: str, text: str) -> bytes:
    """How the servers cut a text into tokens is asked so."""
    return json.dumps({"model": model, "prompt": text, "add_special_tokens": False}).encode()


class Names:
    """What a window's questions are called: nothing that tells whose they are, nor of which file."""

    def __init__(self, token: str) -> None:
        self._window = secrets.token_bytes(32)
        # A user's windows share what is cached of them; nobody else knows the token, so nobody else does.
        owner = token.encode() or self._window
        self.salt = hmac.new(owner, b"slipstream cache salt", hashlib.sha256).hexdigest()

    def session(self, document: str) -> str:
        """A document's name in this window."""
        return hmac.new(self._window, document.encode(errors="replace"), hashlib.sha256).hexdigest()[:32]
