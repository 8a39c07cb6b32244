"""Whether a name stands anywhere in a request's document or repository. Reads no more than an index tells."""

from __future__ import annotations

from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.suggestions.names import judges_names

# What stands before a name decides with which tokens it begins; the most usual first.
_LEADS = (" ", "", ".", "(", "\n", "@", "[", "{", '"', "'", "`", "_")  # fmt: skip
_MAX_OCCURRENCES = 16  # that are looked at
_MAX_CHARS = 128
_MIN_TOKENS = 8_000  # a smaller repository does not know what is usual


class KnownNames:
    """The names around one request."""

    def __init__(self, request: CompletionRequest, tokenizer: Tokenizer) -> None:
        self._request = request
        self._tokenizer = tokenizer

    @property
    def can_judge(self) -> bool:
        """Whether a name that is not known says anything."""
        index, language = self._request.index, self._request.language
        return index is not None and judges_names(language) and index.num_tokens >= _MIN_TOKENS

    def __contains__(self, name: str) -> bool:
        request = self._request
        if request.index is None or len(name) > _MAX_CHARS:
            return True
        if name in request.prefix or name in request.suffix:
            return True
        own = request.indexed_as or request.document
        spelt = (self._tokenizer.encode(lead + name) for lead in _LEADS)
        return any(
            request.index.find(tokens, max_occurrences=_MAX_OCCURRENCES, exclude=own) for tokens in spelt
        )
