"""Open buffers, which are searched instead of their files.

`set`, `drop` and `is_shared` may be called from any thread; `follow_rules` belongs to the indexing thread.
"""

from __future__ import annotations

from ngram_cache.encoding import EncodeMany
from ngram_cache.index import NgramIndex
from ngram_cache.redaction import blank_secrets
from ngram_cache.repository import Repository, SkippedFileError


class Overlays:
    """The open buffers over documents of `index`, as far as the rules of `repository` allow them."""

    def __init__(self, index: NgramIndex, repository: Repository, encode_many: EncodeMany) -> None:
        self._index = index
        self._repository = repository
        self._encode_many = encode_many
        self._is_allowed: dict[str, bool] = {}

    def set(self, name: str, text: str) -> None:
        """Search a buffer's text, without secrets; ignored files are left out, as for files on disk."""
        if not self._may_be_shown(name):
            return
        try:
            self._repository.check_text(text)
        except SkippedFileError:
            self._index.drop_overlay(name)
            return
        self._index.set_overlay(name, self._encode_many([blank_secrets(text)])[0])

    def drop(self, name: str) -> None:
        """Search the document's stored text again."""
        self._is_allowed.pop(name, None)
        self._index.drop_overlay(name)

    def is_shared(self, name: str) -> bool:
        """Return whether other documents may be drafted from the buffer; False until it was first set."""
        return self._is_allowed.get(name, False)

    def follow_rules(self) -> None:
        """Hide the buffers that the changed rules exclude."""
        before, self._is_allowed = self._is_allowed, {}
        for name in {*before, *self._index.overlaid}:
            if not self._may_be_shown(name):
                self._index.drop_overlay(name)

    def _may_be_shown(self, name: str) -> bool:
        if name not in self._is_allowed:
            self._is_allowed[name] = self._repository.allows(name)
        return self._is_allowed[name]
