"""A parser's view of a bounded text around the cursor.

Answers questions about text, and answers "unknown" for languages without a grammar. Does not depend on rules.
"""

from __future__ import annotations

import time
from functools import cache, cached_property

from tree_sitter import Node, Parser, Tree

from completion_engine.grammars import Begun, new_parser, parse_within

_DEFINITION_SUFFIXES = ("_definition", "_declaration", "_item", "_specifier")
_MAX_SPENT_S = 0.03  # for all parses at one cursor
_MAX_PARSE_S = (
    0.02  # a parser needs seconds for text that is not code of its language, and a hundredth for code
)
_MAX_AFTER_CHARS = 1_000
_MAX_LINE_BYTES = 1_000  # human lines are shorter, and a parser is slow in longer ones
_DEFINITIONS = frozenset({"method", "singleton_method", "class", "module", "rule_set"})


@cache
def _parser(language: str) -> Parser | None:
    """Return the engine's parser for an LSP language id, loaded on first use; None without a grammar."""
    return new_parser(language)


class SyntaxWindow:
    """The text around the cursor, parsed up to there once on first use; a question parses only what follows.

    The tree of unfinished code is a guess. So rules may use the answers to end a suggestion well, but not to
    prove that it is correct. After one parse that takes too long, all further answers are unknown, so a
    completion waits at most once.
    """

    def __init__(self, language: str, before: str, after: str = "") -> None:
        self._language = language
        self._after = after[:_MAX_AFTER_CHARS]
        self._before = before.encode("utf-8", "replace")
        self._is_too_slow = any(len(line) > _MAX_LINE_BYTES for line in self._before.split(b"\n"))
        self._spent_s = 0.0

    @property
    def is_too_slow(self) -> bool:
        """Whether the parser has used up the time for one suggestion, so that all further answers are
        unknown.
        """
        return self._is_too_slow or self._spent_s > _MAX_SPENT_S

    @cached_property
    def _base(self) -> Tree | None:
        parser = _parser(self._language)
        return self._within_time(parser, self._before) if parser else None

    def ends_with_definition(self, text: str) -> bool:
        """Return whether `text`, written at the cursor, ends with a complete definition that began in it."""
        tree, source = self._parse(text)
        if tree is None:
            return False
        start, end = len(self._before), len(source.rstrip())
        node = tree.root_node.descendant_for_byte_range(max(end - 1, 0), end)
        while node is not None and node.parent is not None and _first_byte(node, source) >= start:
            if node.end_byte >= end and _is_definition(node):
                return True
            node = node.parent
        return False

    def has_error(self, text: str, num_replaced: int = 0, *, to_next_line: bool = False) -> bool | None:
        """Return whether the lines of `text` have an error, if it replaces characters after the cursor.

        None if unknown. With `to_next_line` the lines up to the next one of code count too: an error of what
        `text` leaves open may be there.
        """
        after = self._after[num_replaced:]
        tree, source = self._parse(text + after)
        if tree is None:
            return None
        start = self._before.rfind(b"\n") + 1
        judged = text + after[: len(after) - len(after.lstrip())] if to_next_line else text
        end = source.find(b"\n", len(self._before) + len(judged.encode("utf-8", "replace")))
        return _has_error_within(tree.root_node, start, len(source) if end < 0 else end)

    def _parse(self, text: str) -> tuple[Tree | None, bytes]:
        parser = _parser(self._language)
        source = self._before + text.encode("utf-8", "replace")
        base = None if parser is None or self.is_too_slow else self._base
        if parser is None or base is None or self.is_too_slow:
            return None, source
        return self._within_time(parser, source, Begun(base, len(self._before))), source

    def _within_time(self, parser: Parser, source: bytes, old: Begun | None = None) -> Tree | None:
        begun_s = time.thread_time()
        tree = parse_within(parser, source, _MAX_PARSE_S, old)
        self._spent_s += time.thread_time() - begun_s
        self._is_too_slow = tree is None
        return tree


def _is_definition(node: Node) -> bool:
    if node.type in _DEFINITIONS:
        return node.is_named
    return node.type.endswith(_DEFINITION_SUFFIXES) and node.child_by_field_name("body") is not None


def _first_byte(node: Node, source: bytes) -> int:
    return (
        node.start_byte
        + len(source[node.start_byte : node.end_byte])
        - len(source[node.start_byte : node.end_byte].lstrip())
    )


def _has_error_within(root: Node, start: int, end: int) -> bool:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.has_error and node.start_byte <= end and node.end_byte >= start:
            if node.is_error or node.is_missing:
                return True
            waiting += node.children
    return False
