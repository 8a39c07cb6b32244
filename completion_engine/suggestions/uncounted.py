"""Owns the brackets that the scan of code does not count: those of prose, strings, comments and regexes.

And angle brackets everywhere, which only what stands around them tells from signs. Knows no rest of the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from completion_engine.suggestions.lexer import Open, Stack
from completion_engine.suggestions.site import Site

_ANGLES = r"<(?![\s=])|(?<![\s=-])>"
_CODE = re.compile(_ANGLES)
_TEXT = re.compile(rf"\\[^\n]|[()\[\]{{}}\"`]|(?<!\w)'|'(?!\w)|{_ANGLES}")
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}
_QUOTES = frozenset("\"'`")
_MAX_CHARS_BEFORE = 1_000  # of the cursor's line


def uncounted_closings(site: Site, text: str) -> Iterator[tuple[int, int]]:
    """Where marks stand in `text` that close what was opened before it, unless the scan has events of them.

    In code these are angle brackets alone. In prose, and in what the cursor stands in, all brackets and
    quotes, as far as they do not pair in the text.
    """
    waiting, in_text, in_code = _open_quotes(site), list[str](), list[str]()
    for start, end, entry in _pieces(site, text):
        is_own = entry is not None and entry.start < 0
        if entry is not None and not is_own:
            continue
        is_text = is_own or not site.language.has_brackets
        opened = in_text if is_text else in_code
        for found in (_TEXT if is_text else _CODE).finditer(text, start, end):
            if _closes_nothing(found[0], opened, waiting):
                yield found.span()


def _closes_nothing(mark: str, opened: list[str], waiting: set[str]) -> bool:
    """Whether a mark closes none of `opened`, which it changes as it does or opens another."""
    opening = _OPENING.get(mark, mark)
    if opening in opened and (opening != mark or mark in _QUOTES):
        del opened[len(opened) - 1 - opened[::-1].index(opening) :]
        return False
    if mark in waiting:
        waiting.remove(mark)
        return True
    if opening == mark:
        opened.append(mark)
        return False
    return True


def _open_quotes(site: Site) -> set[str]:
    """The quotes that are odd in number on the cursor's line, in prose or in what the cursor stands in."""
    line = site.line_prefix[-_MAX_CHARS_BEFORE:]
    if site.inside:
        inside = -site.stack[-1].start - len(site.inside)
        line = line[len(line) - inside :] if inside < len(line) else line
    marks = [found[0] for found in _TEXT.finditer(line)]
    return {mark for mark in _QUOTES if marks.count(mark) % 2}


def _pieces(site: Site, text: str) -> Iterator[tuple[int, int, Open | None]]:
    """The text cut at the ends of its strings and comments, each piece with the one that it stands in."""
    stack = list(site.stack)
    start, inside = 0, _inside(stack)
    for event in site.scanner.scan(text, stack, before=site.line_prefix):
        entered = _inside(stack)
        if entered != inside:
            yield start, event.start, inside
            start, inside = event.end, entered
    yield start, len(text), inside


def _inside(stack: Stack) -> Open | None:
    return stack[-1] if stack and not stack[-1].is_bracket else None
