"""The tokens of one answer as they come, with their probabilities: server-sent events with vLLM's JSON.

Owns what an answer may be. The server is hostile: each field is checked before it is used. Only `[DONE]` ends
an answer; one that ends without it is truncated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from completion_engine.errors import RemoteError
from completion_engine.probability import NOT_SCORED, NUM_RIVALS, TokenProbability
from completion_engine.remote.answer import Answer, Wait, invalid_answer, truncated

MAX_EVENT_BYTES = 256 << 10
_DONE = "[DONE]"
_FINISHED = frozenset({"", "stop", "length"})
_MAX_REASON_BYTES = 64 << 10
_MAX_RETRY_S = 60.0
_ID_PREFIX = "token_id:"  # and the token's number, by return_tokens_as_token_ids
_LEAST_LOGPROB = -20.0  # a token that was written is not impossible
_UNKNOWN_TOKEN = (
    "does not accept the token",
    "Check the setting remote.tokenFile, or ask the administrator of the servers for a token.",
)
_REFUSALS = {
    401: _UNKNOWN_TOKEN,
    403: _UNKNOWN_TOKEN,
    404: ("has no such model or address", "Check the settings remote.url and remote.model."),
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Token ids that were written, and why the server stopped after them, if it did.

    `probabilities` has one for each token; it is empty where the server sends none.
    """

    tokens: tuple[int, ...]
    finish_reason: str = ""
    probabilities: tuple[TokenProbability, ...] = ()


class EventStreamError(ValueError):
    """The bytes are not a stream of events."""


class EventParser:
    """Server-sent events from bytes, which may be cut anywhere: the values of the `data:` lines of each."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the events that these bytes complete. Raises EventStreamError."""
        # A return can only be a part of a line's end: JSON has no other ones.
        *events, self._rest = (self._rest + data.replace(b"\r", b"")).split(b"\n\n")
        if max(map(len, [*events, self._rest])) > MAX_EVENT_BYTES:
            raise EventStreamError("an event has no end")
        values = ([line[5:] for line in event.split(b"\n") if line.startswith(b"data:")] for event in events)
        return [
            b"\n".join(line.removeprefix(b" ") for line in lines).decode("utf-8", errors="replace")
            for lines in values
            if lines
        ]


class TokenStream:
    """One answer of at most `max_tokens` tokens; the server had `num_cached` prompt tokens in its cache."""

    def __init__(self, answer: Answer, authority: str, max_tokens: int) -> None:
        self._answer, self._authority = answer, authority
        self._num_left = max_tokens
        self._parser = EventParser()
        self._chunks: list[Chunk] = []
        self._fault: RemoteError | None = None  # after these chunks
        self.has_ended = False
        self.num_cached = 0

    def read(self, wait: Wait) -> Chunk | None:
        """Return the next tokens; None when time is up or it `has_ended`. Raises RemoteError."""
        if not self._check_head(wait):
            return None
        while not self._chunks:
            if self._fault is not None:
                raise self._fault
            if self.has_ended:
                return None
            data = self._answer.read(wait)
            if data is None:
                return None
            if not data:
                raise truncated(self._authority)
            self._take(data)
            if not (self._chunks or self._fault) and wait.is_over:
                return None  # data without tokens may arrive without end
        return self._chunks.pop(0)

    def close(self) -> None:
        """Stop the server, unless it has stopped."""
        if self.has_ended:
            self._answer.finish()
        else:
            self._answer.close()

    def _check_head(self, wait: Wait) -> bool:
        """Return whether the answer's head has arrived, and check it."""
        status = self._answer.wait_for_status(wait)
        if not status:
            return False
        if status != 200:
            raise fault_of(self._answer, self._authority, wait)
        if not self._answer.headers.get("content-type", "").startswith("text/event-stream"):
            raise self._invalid("it is not a stream of events")
        return True

    def _take(self, data: bytes) -> None:
        try:
            for event in self._parser.feed(data):
                if event == _DONE:
                    self.has_ended = True
                    return
                self._take_chunk(_parsed(event))
        except EventStreamError as error:
            self._fault = self._invalid(str(error))
        except RemoteError as fault:
            self._fault = fault

    def _take_chunk(self, fields: dict[str, Any] | None) -> None:
        if fields is None:
            raise self._invalid("an event is not a JSON object")
        if "error" in fields:
            raise truncated(self._authority, _reason_of(fields["error"]))
        usage = fields.get("usage")
        details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        if type(cached) is int and cached >= 0:
            self.num_cached = cached
        choices = fields.get("choices")
        if not isinstance(choices, list) or len(choices) > 1:
            raise self._invalid("an event has no choice")
        if choices:
            self._take_choice(choices[0])

    def _take_choice(self, choice: object) -> None:
        fields = choice if isinstance(choice, dict) else {}
        tokens, reason = fields.get("token_ids"), fields.get("finish_reason") or ""
        if tokens is None and not fields.get("text"):
            tokens = []
        if not isinstance(tokens, list) or not all(type(token) is int and token >= 0 for token in tokens):
            raise self._invalid(
                "its text has no token ids, so the servers must run a vLLM with return_token_ids"
            )
        if not isinstance(reason, str) or reason not in _FINISHED:
            raise truncated(self._authority)
        self._num_left -= len(tokens)
        if self._num_left < 0:
            raise self._invalid("it has more tokens than requested")
        if tokens or reason:
            self._chunks.append(
                Chunk(tuple(tokens), reason, probabilities_of(fields.get("logprobs"), tokens))
            )

    def _invalid(self, what: str) -> RemoteError:
        self.close()
        return invalid_answer(self._authority, what)


def probabilities_of(logprobs: object, tokens: Sequence[int]) -> tuple[TokenProbability, ...]:
    """Return the probabilities of `tokens` by a choice's field `logprobs`; empty where it does not fit."""
    fields = logprobs if isinstance(logprobs, dict) else {}
    own, tops = fields.get("token_logprobs"), fields.get("top_logprobs")
    if not isinstance(own, list) or len(own) != len(tokens):
        return ()
    rivals = tops if isinstance(tops, list) and len(tops) == len(tokens) else [None] * len(tokens)
    return tuple(map(_probability, tokens, own, rivals))


def _probability(token: int, own: object, top: object) -> TokenProbability:
    value = _value(own)
    if value is None:
        return NOT_SCORED
    rivals = (
        dict(_rival(name, logprob) for name, logprob in list(top.items())[: NUM_RIVALS + 1])
        if isinstance(top, dict)
        else {}
    )
    return TokenProbability(value, tuple(pair for pair in rivals.items() if pair[0] not in {token, -1}))


def _rival(name: str, logprob: object) -> tuple[int, float]:
    """Return a token and its probability; the token -1 where the server sent something else."""
    number, value = name.removeprefix(_ID_PREFIX), _value(logprob)
    is_token = name.startswith(_ID_PREFIX) and number.isascii() and number.isdigit() and len(number) < 10
    return (int(number), value) if is_token and value is not None else (-1, 0.0)


def _value(logprob: object) -> float | None:
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or not logprob <= 0:
        return None
    return math.exp(max(logprob, _LEAST_LOGPROB))


def fault_of(answer: Answer, authority: str, wait: Wait) -> RemoteError:
    """Return the error for an answer other than 200."""
    status = answer.status
    try:
        body = answer.whole(wait, _MAX_REASON_BYTES)
    except RemoteError:
        body = b""
    if status in _REFUSALS:
        what, advice = _REFUSALS[status]
        return RemoteError("refused", f"{authority} {what} ({status}).", advice=advice)
    if status == 429:
        wait_s = answer.headers.get("retry-after", "")
        is_number = wait_s.isascii() and wait_s.isdigit() and len(wait_s) < 6
        return RemoteError(
            "busy",
            f"{authority} has no room for more requests (429).",
            advice="Slipstream asks it again in a moment.",
            retry_s=min(float(wait_s), _MAX_RETRY_S) if is_number else 0.0,
        )
    if 400 <= status < 599:
        who = "refuses the request" if status < 500 else "is not ready"
        reason = _reason_of((_parsed(body.decode("utf-8", errors="replace")) or {}).get("error"))
        return RemoteError(
            "unavailable",
            f"{authority} {who} ({status}{f': {reason}' if reason else ''}).",
            advice="Meanwhile, Slipstream uses the model of this machine. Ask the servers' administrator.",
        )
    return invalid_answer(authority, f"its status is {status}")


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _reason_of(error: object) -> str:
    """Return a server's words about an error, bounded; they hold no part of a prompt."""
    message = error.get("type") if isinstance(error, dict) else error
    return "".join(c for c in message[:80] if c.isprintable()) if isinstance(message, str) else ""
