"""A repository as its index has it: files by the names that occur in them, and their texts.

Whatever may not be indexed is in no index, and secrets are taken out of what is: what is read here is what
may be drafted. Reads no disk and no open document. Knows no languages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ngram_cache import NgramIndex

_LEADS = (" ", ".", "(", "")  # what stands before a name decides with which tokens it begins
_MAX_OCCURRENCES = 48  # of a name that are looked at, for each of these; a name in more places says little


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
        """For each name the files in which it seems to occur, and how often of what was looked at."""
        wanted = list(names)
        encoded = self.encode_many([lead + name for name in wanted for lead in _LEADS])
        found: dict[str, Counter[str]] = {}
        for at, tokens in enumerate(encoded):
            here = self.index.find(tokens, max_occurrences=_MAX_OCCURRENCES, exclude=self.own_path)
            found.setdefault(wanted[at // len(_LEADS)], Counter()).update(here)
        return found

    def read(self, path: str, max_tokens: int) -> str:
        """A file's text as it may be drafted, the first `max_tokens` of it; empty when it is unknown."""
        tokens = self.index.tokens_of(path)[:max_tokens]
        return self.spell(tokens.tolist()).decode("utf-8", "replace")
