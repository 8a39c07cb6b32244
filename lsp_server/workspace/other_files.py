"""Files of a workspace folder that are not open, found by a name in their text.

The index finds the files that hold the name, and its rules exclude files from being read. Bounded in files
and bytes. Used on any thread.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from completion_engine.cutting.language_names import language_of_path
from completion_engine.next_edit.edits import EditDocument
from lsp_server.workspace.index_types import TokenSource
from ngram_cache import NgramIndex
from ngram_cache.repository import Repository, RepositoryOptions, SkippedFileError

MAX_FILES = 6
MAX_BYTES = 300_000  # a larger file is left out
_MAX_OCCURRENCES = 512
# A name has other tokens after each of these characters.
_BEFORE_NAMES = ("", " ", "(", ".", "{", ",", ":", "[", "\t", "<", "*", "&", '"')


@dataclass(frozen=True, slots=True)
class OtherFiles:
    """The files of `folder` that are not open: `index` holds them, under `options`, without those in `open`.

    The files nearest to the path `near` come first.
    """

    folder: Path
    options: RepositoryOptions
    index: NgramIndex
    tokens: TokenSource
    open: frozenset[str]
    near: str

    def holding(self, names: Sequence[str], modules: Sequence[str] = ()) -> Iterator[EditDocument]:
        """Yield files that hold one of the names as they are on the disk now; none that a rule excludes.

        Files that are named as one of the modules come first.
        """
        repository = Repository(self.folder, self.options)
        paths = [path for path in self._paths(names) if path not in self.open]
        ordered = sorted(paths, key=lambda path: (not _is_named(path, modules), self._distance(path)))
        for path in ordered[:MAX_FILES]:
            try:
                found = repository.find(path)
                text = repository.read(found) if found.size <= MAX_BYTES else ""
            except SkippedFileError:
                continue
            if any(name in text for name in names):
                uri, language = (self.folder / path).as_uri(), language_of_path(path)
                yield EditDocument(uri, path, language, tuple(text.split("\n")))

    def _paths(self, names: Sequence[str]) -> Counter[str]:
        found = Counter[str]()
        for tokens in self.tokens.encode_many([f"{mark}{name}" for name in names for mark in _BEFORE_NAMES]):
            if tokens:
                found += self.index.find(tokens, max_occurrences=_MAX_OCCURRENCES)
        return found

    def _distance(self, path: str) -> tuple[int, str]:
        common = os.path.commonpath([f"/{path}", f"/{self.near}"]).count("/")
        return self.near.count("/") - common, path


def _is_named(path: str, modules: Sequence[str]) -> bool:
    """Return whether a file or its folder has one of the names."""
    file = PurePosixPath(path)
    return file.name.partition(".")[0] in modules or file.parent.name in modules
