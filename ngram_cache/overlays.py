"""Texts as tokens for the index: files in batches, and open buffers, which replace their files.

`Overlays.set`, `drop` and `is_shared` may be called from any thread; `follow_rules` belongs to the indexing
thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ngram_cache.index import NgramIndex
from ngram_cache.redaction import blank_secrets
from ngram_cache.repository import FoundFile, Repository, SkippedFileError

EncodeMany = Callable[[list[str]], Sequence[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A tokenizer: ids of texts, and bytes of ids. Equal fingerprints mean equal ids."""

    fingerprint: str
    encode_many: Callable[[list[str]], list[list[int]]]
    spell: Callable[[list[int]], bytes] = lambda _: b""


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


def digest(text: str) -> bytes:
    """Return a 16-byte digest of a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class FileEncoder:
    """Encodes the files of one run; `failure` is the first error of the tokenizer."""

    def __init__(self, encode_many: EncodeMany, checkpoint: Callable[[], None]) -> None:
        self._encode_many = encode_many
        self._checkpoint = checkpoint
        self.failure: BaseException | None = None

    def encode(
        self, batch: list[tuple[FoundFile, str]]
    ) -> Iterator[tuple[FoundFile, str, Sequence[int] | None]]:
        """Return each file with its text and tokens; None for a file on which the tokenizer fails."""
        if not batch:
            return
        encoded: Sequence[Sequence[int] | None]
        try:
            encoded = self._encode_many([text for _, text in batch])
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if len(batch) == 1:
                self.failure = self.failure or error
                encoded = [None]
            else:
                for one in batch:
                    self._checkpoint()
                    yield from self.encode([one])
                return
        for (file, text), tokens in zip(batch, encoded, strict=True):
            yield file, text, tokens


def num_tokens_of(documents: Sequence[tuple[str, Sequence[int]]]) -> int:
    """Return the total number of tokens of the documents."""
    return sum(len(tokens) for _, tokens in documents)
