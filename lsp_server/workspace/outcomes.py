"""What people wrote where the target had foretold something: which of its tokens were right.

A forecast is judged by the document itself, once the cursor has gone on to a later line: so it does not
matter whether text was taken or typed, nor which editor tells what. Owns the forecasts that wait. Must not
know what is made of a judgement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from completion_engine.stats import Forecast
from lsp_server.workspace.documents import Document, DocumentSnapshot

NUM_AWAITED = 32
_MAX_CHARS = 4_096  # of a forecast, and of what was written behind its place


@dataclass(frozen=True, slots=True)
class Token:
    """The share of a token that was foretold behind right ones, and whether it was written."""

    share: float
    is_right: bool


@dataclass(frozen=True, slots=True)
class Awaited:
    """A forecast of a target, and the place that it was made for: a line with what stood before and after it.

    The whole document had `num_chars`.
    """

    target: str
    forecast: Forecast
    uri: str
    line: int
    before: str
    after: str
    num_chars: int


class Outcomes:
    """The last forecasts of a window that have not been judged."""

    def __init__(self) -> None:
        self._awaited: deque[Awaited] = deque(maxlen=NUM_AWAITED)

    def expect(self, target: str, now: DocumentSnapshot, forecast: Forecast) -> None:
        """Judge a weighed forecast later, unless it only goes on with one that waits."""
        before, after = now.text_before(), now.text_after()
        is_short = max(len(forecast.text), len(before), len(after)) <= _MAX_CHARS
        if (
            forecast.text
            and forecast.is_weighed
            and is_short
            and not self._is_known(now.uri, now.line, before)
        ):
            self._awaited.append(Awaited(target, forecast, now.uri, now.line, before, after, now.num_chars))

    def judged(self, document: Document, now: DocumentSnapshot) -> Iterator[tuple[str, Token]]:
        """The tokens of what can be judged now that the cursor stands at `now`, each with its target.

        What the document has left behind in any other way is forgotten.
        """
        for awaited in [awaited for awaited in self._awaited if awaited.uri == now.uri]:
            if now.line == awaited.line:
                continue
            self._awaited.remove(awaited)
            for token in _tokens(awaited.forecast, _written_since(awaited, document, now)):
                yield awaited.target, token

    def forget(self, uri: str) -> None:
        """A document is open no more."""
        self._awaited = deque((awaited for awaited in self._awaited if awaited.uri != uri), NUM_AWAITED)

    def _is_known(self, uri: str, line: int, before: str) -> bool:
        """Whether somebody who typed along a forecast that waits stands at this place."""
        return any(
            awaited.uri == uri
            and awaited.line == line
            and before.startswith(awaited.before)
            and awaited.forecast.text.startswith(before[len(awaited.before) :])
            for awaited in self._awaited
        )


def _written_since(then: Awaited, document: Document, now: DocumentSnapshot) -> str:
    """What stands between the place of `then` and the cursor if all of it was written since, else nothing."""
    num_new = now.num_chars - then.num_chars
    if not 0 < now.line - then.line <= num_new <= _MAX_CHARS:
        return ""
    lines = [document.content(line) for line in range(then.line, now.line)]
    if not lines[0].startswith(then.before):
        return ""
    written = "\n".join([lines[0][len(then.before) :], *lines[1:], now.text_before()])
    is_new = len(written) <= num_new + len(then.after)
    return written if is_new else ""


def _tokens(forecast: Forecast, written: str) -> Iterator[Token]:
    """The tokens of a forecast up to the first wrong one, as far as what was written decides about them."""
    start = 0
    if not written:
        return
    for end, share in zip(forecast.ends, forecast.shares, strict=True):
        token = forecast.text[start:end]
        if token:
            meant = written[start:end]
            if len(meant) < len(token) and token.startswith(meant):
                return
            yield Token(share, token == meant)
            if token != meant:
                return
        start = end
