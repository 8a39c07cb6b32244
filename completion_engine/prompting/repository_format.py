"""The front of a prompt, before the document: snippets of its repository, and the path of its file.

Both are written as the target was trained to read them. A target without such a format gets neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from completion_engine.cutting.language_names import ENDINGS, UNKNOWN, language_of_path
from completion_engine.prompting.tokenizer import Tokenizer

if TYPE_CHECKING:
    from completion_engine.request import RepositoryContext

_MAX_PATH_CHARS = 200
_MAX_OWN_BYTES = 60  # the end of the document's path: each token makes a cold prompt longer
_MAX_OWN_TOKENS = _MAX_OWN_BYTES + 2  # with the marker and the line end
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class RepositoryFormat:
    """Formats the front of a prompt; empty if the target has no such format.

    `mask` removes secrets from each name and text.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, mask: Callable[[str], str] = str) -> None:
        self._tokenizer, self._mask = tokenizer, mask
        self._markers = tokenizer.repository if tokenizer.fim is not None else None
        self._max_tokens = max_tokens
        self._encoded = lru_cache(maxsize=16)(self._encode)
        self._own_path = lru_cache(maxsize=64)(self._encode_path)

    @property
    def max_tokens(self) -> int:
        """The most tokens of a context; 0 without a format."""
        return self._max_tokens if self._markers is not None else 0

    @property
    def max_front_tokens(self) -> int:
        """The most tokens in front of a document."""
        return max(self.max_tokens, _MAX_OWN_TOKENS) if self._markers is not None else 0

    def tokens(self, context: RepositoryContext | None, path: str) -> tuple[int, ...]:
        """Return the tokens in front of a document of this path; equal contexts have equal tokens.

        Without snippets that fit they name the file alone, and without a path there are none.
        """
        found = self._encoded(context, path) if context is not None and self.max_tokens else ()
        return found or self._own_path(path)

    def forget(self) -> None:
        """Drop all cached snippets and paths, after a document was closed."""
        self._encoded.cache_clear()
        self._own_path.cache_clear()

    def spell(self, tokens: list[int]) -> bytes:
        """Return the bytes that tokens spell."""
        return self._tokenizer.spell(tokens)

    def _encode(self, context: RepositoryContext, path: str) -> tuple[int, ...]:
        """`<repo>name`, then `<file>path` and its text for each snippet that fits, then `<file>path`."""
        markers = self._markers
        if markers is None:
            return ()
        own = self._own_path(path)
        texts = [f"{self._head(snippet.path)}{self._mask(snippet.text)}\n" for snippet in context.snippets]
        name, *snippets = self._tokenizer.encode_many([self._head(context.repository), *texts])
        tokens = [markers.repository, *name]
        num_snippets = 0
        for snippet in snippets:
            if len(tokens) + len(snippet) + len(own) + 1 <= self._max_tokens:
                tokens += [markers.file, *snippet]
                num_snippets += 1
        return (*tokens, *own) if num_snippets else ()

    def _encode_path(self, path: str) -> tuple[int, ...]:
        """`<file>path`, without the first folders of a long one."""
        if self._markers is None or not path:
            return ()
        whole = self._mask(path).encode("utf-8", "replace")
        end = whole[-_MAX_OWN_BYTES:]
        if len(end) < len(whole):
            end = end.partition(b"/")[2] or end
        return (self._markers.file, *self._tokenizer.encode(end.decode("utf-8", "ignore") + "\n"))

    def _head(self, name: str) -> str:
        return f"{self._mask(name)[:_MAX_PATH_CHARS]}\n"


@lru_cache(maxsize=64)
def shown_path(name: str, language: str) -> str:
    """Return the path that a prompt shows for a document's path or URI.

    A URI is shown as the name of its file. A name that does not show the language, as that of an unsaved
    document or of a cell's notebook, gets an ending that does.
    """
    if _SCHEME.match(name):
        path = name.partition("#")[0].partition("?")[0].rstrip("/")
        name = unquote(path.rpartition("/")[2].rpartition(":")[2])
    name = name.removesuffix(".ipynb")
    if language_of_path(name) == UNKNOWN:
        ending = next((ending for ending, known in ENDINGS.items() if known == language), "")
        name = f"{name}.{ending}" if ending else name
    return name
