"""Encodes the texts of files as tokens: many at once, or one by one if the tokenizer fails."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

from ngram_cache.repository import FoundFile

EncodeMany = Callable[[list[str]], Sequence[Sequence[int]]]


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
