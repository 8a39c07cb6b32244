"""The errors that a parser finds in the document with a text at its cursor.

The tree of unfinished code is a guess, so its errors are only compared: with a text and without it. After a
parse that takes too long all further answers are unknown, so a completion waits at most once.
"""

from __future__ import annotations

import time
from functools import cache, cached_property

from tree_sitter import Parser, Tree

from completion_engine.grammars import Begun, new_parser, parse_within

_MAX_SPENT_S = 0.006  # for all parses at one cursor; text that is not code takes seconds
_MAX_BEFORE_CHARS = 4_000
_MAX_AFTER_CHARS = 1_000
_MAX_LINE_BYTES = 1_000  # human lines are shorter, and a parser is slow in longer ones
_MISPLACED = frozenset({"erroneous_end_tag"})


@cache
def _parser(language: str) -> Parser | None:
    return new_parser(language)


class SyntaxWindow:
    """The text around the cursor, parsed up to there once; a question parses only what follows."""

    def __init__(self, language: str, before: str, after: str) -> None:
        self._parser = _parser(language)
        start = len(before) - _MAX_BEFORE_CHARS
        before = before[before.find("\n", start) + 1 :] if start > 0 else before
        self._before = before.encode("utf-8", "replace")
        self._after = after
        self._spent_s = 0.0
        self._is_unknown = self._parser is None or any(
            len(line) > _MAX_LINE_BYTES for line in self._before.split(b"\n")
        )

    @cached_property
    def num_errors_before(self) -> int | None:
        """The number of errors without a text."""
        return self.num_errors("")

    @cached_property
    def _base(self) -> Begun | None:
        tree = self._within_time(self._before, None)
        return Begun(tree, len(self._before)) if tree else None

    def num_errors(self, text: str, num_replaced: int = 0) -> int | None:
        """Return the number of errors from the cursor's line to the next line of code after a text.

        The text replaces `num_replaced` characters after the cursor. None if the number is unknown.
        """
        if self._is_unknown or self._spent_s > _MAX_SPENT_S or self._base is None:
            return None
        after = self._after[num_replaced : num_replaced + _MAX_AFTER_CHARS]
        if len(after) == _MAX_AFTER_CHARS:
            after = after[: after.rfind("\n") + 1]
        source = self._before + (text + (after or "\n")).encode("utf-8", "replace")
        tree = self._within_time(source, self._base)
        blanks = after[: len(after) - len(after.lstrip())]
        end = source.find(b"\n", len(self._before) + len((text + blanks).encode("utf-8", "replace")))
        start = self._before.rfind(b"\n") + 1
        return _num_within(tree, start, end if end >= 0 else len(source)) if tree else None

    def _within_time(self, source: bytes, old: Begun | None) -> Tree | None:
        begun_s = time.thread_time()
        left_s = _MAX_SPENT_S - self._spent_s
        tree = parse_within(self._parser, source, left_s, old) if self._parser else None
        self._spent_s += time.thread_time() - begun_s
        self._is_unknown = self._is_unknown or tree is None
        return tree


def _num_within(tree: Tree, start: int, end: int) -> int:
    waiting, num_errors = [tree.root_node], 0
    while waiting:
        node = waiting.pop()
        if node.end_byte >= start and node.start_byte <= end:
            num_errors += node.is_error or node.is_missing or node.type in _MISPLACED
            if node.has_error or node.type in ("document", "element", "fragment"):
                waiting += node.children
    return num_errors


def load_grammar(language: str) -> None:
    """Load the grammar of a language, so that the first completion does not wait 15 to 30 ms for it."""
    if (parser := _parser(language)) is not None:
        parser.parse(b"x")
