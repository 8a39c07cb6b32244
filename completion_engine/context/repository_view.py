"""A repository as seen through its index: which files contain a name, and the text of a file.

The index holds no excluded files and no secrets, so all text here may be shown to the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ngram_cache import NgramIndex

_LEADS = (" ", ".", "(", "")  # a name has other tokens after other text
# occurrences of a name to read, for each lead; a name with more is not specific
_MAX_OCCURRENCES = 48


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """The files of an index without the document `own_path`.

    `encode_many` and `spell` convert to and from the index's tokens.
    """

    index: NgramIndex
    encode_many: Callable[[list[str]], list[list[int]]]
    spell: Callable[[list[int]], bytes]
    name: str = ""
    own_path: str = ""

    def files_with(self, names: Iterable[str]) -> dict[str, Counter[str]]:
        """Return for each name the files that probably contain it, with the number of occurrences."""
        wanted = list(names)
        encoded = self.encode_many([lead + name for name in wanted for lead in _LEADS])
        found: dict[str, Counter[str]] = {}
        for at, tokens in enumerate(encoded):
            here = self.index.find(tokens, max_occurrences=_MAX_OCCURRENCES, exclude=self.own_path)
            found.setdefault(wanted[at // len(_LEADS)], Counter()).update(here)
        return found

    def read(self, path: str, max_tokens: int) -> str:
        """Return the text of the first `max_tokens` tokens of a file; empty for an unknown file."""
        tokens = self.index.tokens_of(path)[:max_tokens]
        return self.spell(tokens.tolist()).decode("utf-8", "replace")
