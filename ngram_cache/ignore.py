"""Applies ignore files: git's rules over nested pattern files. Pure: reads no disk.

The author of a repository writes both patterns and paths, so RE2 matches them: its time is linear in pattern
and path, and its memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import re2  # type: ignore[import-untyped]  # it ships no types

from ngram_cache.construction import never_stop
from ngram_cache.glob import Rule, translate

IGNORE_FILES = (".gitignore", ".ignore")

MAX_RULE_BYTES = 256 << 10
MAX_RULES = 10_000
MAX_LINE_BYTES = 4 << 10
MAX_BYTES_IN_FORCE = 512 << 10  # the rules of one folder and those above it

# One call of the matcher cannot be interrupted; this bounds it to a few tenths of a second for any rules.
_CHUNK_BYTES = 16 << 10
_MAX_MATCHER_BYTES = 8 << 20
_ALWAYS = b".*"


class RulesTooLargeError(Exception):
    """The rules exceed the limits, so the paths that they apply to must be left out."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rules in their order, matched in one call. If `keeps[i]`, rule `i` keeps a path."""

    matcher: re2.Set
    keeps: tuple[bool, ...]

    def judge(self, path: bytes) -> bool | None:
        matched = self.matcher.Match(path)
        if not matched:  # the first rule matches everything, so the matcher ran out of memory
            raise RulesTooLargeError("the rules are too complex")
        last = max(matched)
        return None if last == 0 else not self.keeps[last - 1]


@dataclass(frozen=True, slots=True)
class IgnoreLayer:
    """The patterns of one file, which apply to paths below the folder of that file.

    `base` is that folder relative to the root, empty for the root itself. If the folder is above the root,
    `above` is the root's path below it. `num_bytes` is the size of the rules. A layer that can `only_ignore`
    revokes no other file's rules.
    """

    chunks: tuple[_Chunk, ...]
    base: str = ""
    above: str = ""
    num_bytes: int = 0
    only_ignore: bool = False

    @classmethod
    def parse(
        cls,
        data: bytes,
        base: str = "",
        above: str = "",
        checkpoint: Callable[[], None] = never_stop,
        *,
        ignores_case: bool = False,
    ) -> IgnoreLayer:
        """Lines that are not valid patterns are skipped, as git does. RulesTooLargeError beyond the limits.

        `ignores_case` is what git calls core.ignorecase.

        `checkpoint` is called every some tenths of a second at most, and may raise.
        """
        chunks: list[_Chunk] = []
        rules: list[Rule] = []
        num_bytes = 0
        for line, rule in _rules_in(data):
            if num_bytes + len(line) > _CHUNK_BYTES and rules:
                chunks.append(_compiled(rules, ignores_case))
                rules, num_bytes = [], 0
                checkpoint()
            rules.append(rule)
            num_bytes += len(line)
        if rules:
            chunks.append(_compiled(rules, ignores_case))
        return cls(tuple(chunks), base, above, len(data))

    def verdict(
        self, path: str, *, is_folder: bool, checkpoint: Callable[[], None] = never_stop
    ) -> bool | None:
        """Return True if the patterns ignore `path`, False if they keep it, None if none matches.

        `checkpoint` is called every some tenths of a second at most, and may raise.
        """
        seen = path
        if self.base:
            if not path.startswith(self.base + "/"):
                return None
            seen = path[len(self.base) + 1 :]
        elif self.above:
            seen = f"{self.above}/{path}"
        verdict = self._judge(seen + "/" if is_folder else seen, checkpoint)
        return verdict or (None if self.only_ignore else verdict)

    def ignores_root(self, checkpoint: Callable[[], None] = never_stop) -> bool:
        """Return whether this file, outside of the root, ignores the root or a folder around it."""
        names = self.above.split("/") if self.above else []
        return any(
            self._judge("/".join(names[:depth]) + "/", checkpoint) for depth in range(1, len(names) + 1)
        )

    def _judge(self, path: str, checkpoint: Callable[[], None]) -> bool | None:
        seen = path.encode("utf-8", "surrogateescape")
        for chunk in reversed(self.chunks):
            checkpoint()
            verdict = chunk.judge(seen)
            if verdict is not None:
                return verdict
        return None


def is_ignored(
    layers: Sequence[IgnoreLayer],
    path: str,
    *,
    is_folder: bool,
    checkpoint: Callable[[], None] = never_stop,
) -> bool:
    """Return whether the last layer with a matching rule ignores `path`, if none of its folders is ignored.

    Layers are ordered from outer folders to inner ones.
    """
    for layer in reversed(layers):
        verdict = layer.verdict(path, is_folder=is_folder, checkpoint=checkpoint)
        if verdict is not None:
            return verdict
    return False


def _rules_in(data: bytes) -> Iterator[tuple[bytes, Rule]]:
    """Yield each line of a file that is a rule, and the rule. Raises RulesTooLargeError beyond the limits."""
    if len(data) > MAX_RULE_BYTES:
        raise RulesTooLargeError(f"the rules are larger than {MAX_RULE_BYTES >> 10} kB")
    num_rules = 0
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if len(line) > MAX_LINE_BYTES:
            raise RulesTooLargeError(f"a rule is longer than {MAX_LINE_BYTES >> 10} kB")
        if (rule := translate(line.removesuffix(b"\r"))) is None:
            continue
        num_rules += 1
        if num_rules > MAX_RULES:
            raise RulesTooLargeError(f"there are more than {MAX_RULES:,} rules")
        yield line, rule


def _compiled(rules: Sequence[Rule], ignores_case: bool) -> _Chunk:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # git compares bytes
    options.case_sensitive = not ignores_case
    options.dot_nl = True
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _MAX_MATCHER_BYTES
    matcher = re2.Set.FullMatchSet(options)
    try:
        matcher.Add(_ALWAYS)
        for rule in rules:
            matcher.Add(rule.expression)
        matcher.Compile()
    except re2.error as error:
        raise RulesTooLargeError("the rules are too complex") from error
    return _Chunk(matcher, tuple(rule.keeps for rule in rules))
