"""A repository through its index: files by the names that occur in them, and their texts.

Excluded files are not in the index, and secrets are removed from it: all text here may be drafted. Reads
neither disks nor open documents. Does not depend on languages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ngram_cache import NgramIndex

_LEADS = (" ", ".", "(", "")  # the text before a name decides with which tokens it begins
# occurrences of a name to read, for each lead; a name with more is not specific
_MAX_OCCURRENCES = 48


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """The files of an index but for the document `own_path`.

    `encode_many` and `spell` are those of the index's tokens.
    """

    index: NgramIndex
    encode_many: Callable[[list[str]], list[list[int]]]
    spell: Callable[[list[int]], bytes]
    name: str = ""
    own_path: str = ""

    def files_with(self, names: Iterable[str]) -> dict[str, Counter[str]]:
        """Return for each name the files that seem to hold it, and how often."""
        wanted = list(names)
        encoded = self.encode_many([lead + name for name in wanted for lead in _LEADS])
        found: dict[str, Counter[str]] = {}
        for at, tokens in enumerate(encoded):
            here = self.index.find(tokens, max_occurrences=_MAX_OCCURRENCES, exclude=self.own_path)
            found.setdefault(wanted[at // len(_LEADS)], Counter()).update(here)
        return found

    def read(self, path: str, max_tokens: int) -> str:
        """Return the first `max_tokens` of a file's text without secrets; empty for an unknown file."""
        tokens = self.index.tokens_of(path)[:max_tokens]
        return self.spell(tokens.tolist()).decode("utf-8", "replace")
