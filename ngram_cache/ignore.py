"""Owns what ignore files mean: git's rules over nested pattern files. Pure: reads no disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILES = (".gitignore", ".ignore")


@dataclass(frozen=True, slots=True)
class IgnoreLayer:
    """The patterns of one file, which speak of paths below the folder that the file lies in.

    `base` is a folder relative to the root (empty for the root itself); `above` is the root's own path
    below the folder that holds the file.
    """

    spec: GitIgnoreSpec
    base: str = ""
    above: str = ""

    @classmethod
    def parse(cls, text: str, base: str = "", above: str = "") -> IgnoreLayer:
        """Lines that are no valid pattern are passed over, as git does."""
        patterns: list[GitIgnoreSpecPattern] = []
        for line in text.removeprefix("\ufeff").splitlines():
            try:
                patterns += GitIgnoreSpec.from_lines([line]).patterns
            except ValueError:
                continue
        return cls(GitIgnoreSpec(patterns), base, above)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether this file's patterns ignore `path` (True), keep it (False) or say nothing (None)."""
        seen = path
        if self.base:
            if not path.startswith(self.base + "/"):
                return None
            seen = path[len(self.base) + 1 :]
        elif self.above:
            seen = f"{self.above}/{path}"
        return self.spec.check_file(seen + "/" if is_folder else seen).include


def is_ignored(layers: Sequence[IgnoreLayer], path: str, *, is_folder: bool) -> bool:
    """Whether the last layer that has an opinion ignores `path`, given that none of its folders is ignored.

    Layers go from the general to the special: outer folders first.
    """
    for layer in reversed(layers):
        verdict = layer.verdict(path, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False
