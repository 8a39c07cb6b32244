"""Repository context as tokens, in the format that the target was taught: its name, then files by path.

Owns the format. Knows nothing of how the pieces were chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import RepositoryContext

_MAX_PATH_CHARS = 200


class RepositoryFormat:
    """Writes contexts for one target, of at most `max_tokens` tokens; none where it has no such format.

    `mask` takes out of each name and text what the target must not see.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, mask: Callable[[str], str] = str) -> None:
        self._tokenizer, self._mask = tokenizer, mask
        self._markers = tokenizer.repository if tokenizer.fim is not None else None
        self._max_tokens = max_tokens
        self._encoded = lru_cache(maxsize=16)(self._encode)

    @property
    def max_tokens(self) -> int:
        """The longest context; 0 where there is none."""
        return self._max_tokens if self._markers is not None else 0

    def tokens(self, context: RepositoryContext | None, path: str) -> tuple[int, ...]:
        """What stands in front of a document of this path; equal for equal contexts, empty without pieces."""
        return self._encoded(context, path) if context is not None and self.max_tokens else ()

    def spell(self, tokens: list[int]) -> bytes:
        """The bytes that tokens spell."""
        return self._tokenizer.spell(tokens)

    def _encode(self, context: RepositoryContext, path: str) -> tuple[int, ...]:
        """`<repo>name`, `<file>path` and its text for each piece that there is room for, `<file>path`."""
        markers = self._markers
        if markers is None:
            return ()
        heads = [self._head(context.repository), self._head(path)]
        texts = [f"{self._head(piece.path)}{self._mask(piece.text)}\n" for piece in context.pieces]
        name, own, *pieces = self._tokenizer.encode_many([*heads, *texts])
        tokens = [markers.repository, *name]
        num_pieces = 0
        for piece in pieces:
            if len(tokens) + len(piece) + len(own) + 2 <= self._max_tokens:
                tokens += [markers.file, *piece]
                num_pieces += 1
        return (*tokens, markers.file, *own) if num_pieces else ()

    def _head(self, name: str) -> str:
        return f"{self._mask(name)[:_MAX_PATH_CHARS]}\n"
