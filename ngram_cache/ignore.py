"""Owns what ignore files mean: git's rules over nested pattern files. Pure: reads no disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".ignore")


@dataclass(frozen=True, slots=True)
class IgnoreLayer:
    """The patterns of one file, which speak of paths below the folder that the file lies in.

    `rules` are expressions with what they say of a path that matches: ignored or kept. `base` is that
    folder relative to the root (empty for the root itself); `above` is the root's own path below the
    folder where that one lies outside.
    """

    rules: tuple[tuple[re.Pattern[str], bool], ...]
    base: str = ""
    above: str = ""

    @classmethod
    def parse(cls, text: str, base: str = "", above: str = "") -> IgnoreLayer:
        """Lines that are no valid pattern are passed over, as git does."""
        rules = []
        for line in text.removeprefix("\ufeff").splitlines():
            try:
                patterns = GitIgnoreSpec.from_lines([line]).patterns
            except ValueError:
                continue
            rules += [
                (_of_the_path_itself(pattern.regex), pattern.include)
                for pattern in patterns
                if pattern.regex is not None and pattern.include is not None
            ]
        return cls(tuple(rules), base, above)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether this file's patterns ignore `path` (True), keep it (False) or say nothing (None)."""
        seen = path
        if self.base:
            if not path.startswith(self.base + "/"):
                return None
            seen = path[len(self.base) + 1 :]
        elif self.above:
            seen = f"{self.above}/{path}"
        return self._judge(seen + "/" if is_folder else seen)

    def ignores_root(self) -> bool:
        """Whether this file, lying outside of the root, ignores the root or a folder that it lies in."""
        names = self.above.split("/") if self.above else []
        return any(self._judge("/".join(names[:depth]) + "/") for depth in range(1, len(names) + 1))

    def _judge(self, path: str) -> bool | None:
        for expression, is_ignored_by_it in reversed(self.rules):
            if expression.search(path):
                return is_ignored_by_it
        return None


def is_ignored(layers: Sequence[IgnoreLayer], path: str, *, is_folder: bool) -> bool:
    """Whether the last layer that has an opinion ignores `path`, given that none of its folders is ignored.

    Layers go from the general to the special: outer folders first.
    """
    for layer in reversed(layers):
        verdict = layer.verdict(path, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _of_the_path_itself(expression: re.Pattern[str]) -> re.Pattern[str]:
    """The library's expression, narrowed to the path that a pattern names.

    The library's also match all that lies below that path, so that `!a` would bring back `a/b` after a
    plain `b`. Folders are judged one by one here, and git judges `a/b` by its own name.
    """
    if expression.groupindex:  # the group marks the end of a folder's name
        return re.compile(f"(?:{expression.pattern})\\Z")
    return re.compile(expression.pattern + ".") if expression.pattern.endswith("/") else expression
