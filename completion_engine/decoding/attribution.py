"""Where the characters of a suggestion came from: pieces of equal origin, down to the file and line.

Knows tokens, their origins and the index they were read from; no model and no rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.stats import Piece
from ngram_cache import NgramIndex

if TYPE_CHECKING:  # brings torch
    from completion_engine.drafting.draft import DraftToken

_PLACES = {"prompt": "this file", "recent": "recent suggestions"}
_IN_CONTEXT = "other files"  # that the target is shown in front of this one


@dataclass(frozen=True, slots=True)
class _Reading:
    """A document of the index, read up to a token; `num_lines` have ended before it."""

    offset: int = 0
    num_lines: int = 0


class Origins:
    """Tells the origin of drafted tokens. Made for one completion: it remembers how far it has read."""

    def __init__(self, tokenizer: Tokenizer, index: NgramIndex | None, num_context: int = 0) -> None:
        """The first `num_context` tokens of the prompt are a repository's."""
        self._tokenizer = tokenizer
        self._num_context = num_context
        self._index = index
        self._readings: dict[int, _Reading] = {}

    def pieces(self, text: str, written: Iterable[tuple[int, DraftToken | None]]) -> tuple[Piece, ...]:
        """`text` cut where its origin changes.

        `written` tells of each token where it ends in the text and which draft it was accepted from.
        Tokens that end beyond the text, and those that add nothing to it, are left out.
        """
        pieces: list[Piece] = []
        start = 0
        for end, origin in written:
            chunk = text[start:end]
            start = end
            if not chunk:
                continue
            piece = self._piece(chunk, origin)
            if pieces and pieces[-1].origin == piece.origin:
                pieces[-1] = pieces[-1].joined(chunk)
            else:
                pieces.append(piece)
        return tuple(pieces)

    def _piece(self, text: str, draft: DraftToken | None) -> Piece:
        if draft is None:
            return Piece(text, "target")
        if draft.origin == "prompt" and 0 < draft.offset < self._num_context:
            return Piece(text, draft.source, _IN_CONTEXT)
        if draft.document < 0 or self._index is None:
            return Piece(text, draft.source, _PLACES.get(draft.origin, ""))
        path = self._index.path_of(draft.document)
        if not path:
            return Piece(text, draft.source)
        return Piece(text, draft.source, path=path, line=self._line(self._index, draft))

    def _line(self, index: NgramIndex, draft: DraftToken) -> int:
        """The line, from 0, on which a draft was read; each document is read once for all its tokens."""
        known = self._readings.get(draft.document, _Reading())
        if known.offset > draft.offset:
            known = _Reading()
        tokens = index.tokens_before(draft.document, draft.offset)[known.offset :]
        num_lines = known.num_lines + self._tokenizer.spell(tokens.tolist()).count(b"\n")
        self._readings[draft.document] = _Reading(draft.offset, num_lines)
        return num_lines
