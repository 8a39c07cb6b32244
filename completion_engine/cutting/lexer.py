"""Finds the brackets, strings, comments and elements of a text that is not finished, in any language.

A parser guesses what unfinished text means; this reads only marks, so that a longer text never changes what
was found before. Does not depend on documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from completion_engine.cutting.marks import Marks, marks_of

CLOSING = {")": "(", "]": "[", "}": "{"}
_MAX_OPEN = 200
_VOID_NAMES = "area base br col embed hr img input link meta param source track wbr !doctype !element !entity"
_VOID = frozenset(_VOID_NAMES.split())
_REGEX = (
    r"(?:(?<=[(,=:\[!&|?{};~>])|(?<=[(,=:\[!&|?{};~>][ ])|(?<=return )|(?<=split ))"
    r"/(?![/*\s>])(?:\\[^\n]|\[(?:\\[^\n]|[^\]\n\\])*\]|[^/\\\n\[])+/"
)
_TEMPLATES = (("<!--", "-->"), ("{{", "}}"), ("{%", "%}"), ("<%", "%>"), ("<?", "?>"))
_TAG_END = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|(?P<empty>/>)|(?P<end>>)|(?P<newline>\n)|\{\{.*?\}\}")
_TAG_NAME = re.compile(r"[A-Za-z!][\w:.-]*")
_NEWLINE = re.compile("\n")
_DIRECTIVES = r"(?<!\S)\#[^\S\n]*(?:(?P<begins>if\w*|region)|(?P<finishes>endif|endregion))\b"
_HASH = r"(?<![^\s;,()\]}])#"
_LINE_START = frozenset({'"', "*", "rem", "::"})


class Open(NamedTuple):
    """A mark that is still open: a bracket, `<` and a tag's name, an element's, `#if`, a quote, a comment."""

    mark: str
    start: int
    kind: Literal["bracket", "tag", "element", "directive", "string", "comment"]


class Event(NamedTuple):
    """A mark at `text[start:end]`; `entry` is what it opens or closes, or what a newline stands in."""

    kind: Literal["open", "close", "unmatched", "newline"]
    start: int
    end: int
    entry: Open | None = None


Stack = list[Open]


@lru_cache(maxsize=64)
def _code(language: str) -> re.Pattern[str]:
    """The marks that count in code; closed strings and escapes are skipped as a whole."""
    marks = marks_of(language)
    parts = [r"(?P<newline>\n)"]
    if marks.is_markup:
        parts.append(_either("block", [first for first, _ in (*marks.blocks, *_TEMPLATES)]))
        parts.append(r"</(?P<ends>[A-Za-z][\w:.-]*)\s*>|<(?P<tag>[A-Za-z!][\w:.-]*)")
        return re.compile("|".join(parts))
    parts.append(
        r"(?P<skip>\\[^\n\w\s(]" + (r"|\\\(|(?<=\n)[ \t]*[^\s()\"'$]+\)" if "shell" in marks.traits else "")
    )
    if "'" not in marks.quotes:
        parts[-1] += r"|'(?:\\[^\n']{1,10}|\\'|[^\\'\n]{1,2})'"
    else:
        parts[-1] += r"|(?<=\w)'(?=\w)"
    parts[-1] += r"|\br(?P<raw>#+)\"[^\n]*?\"(?P=raw)"
    parts[-1] += f"|{_REGEX})" if "regex" in marks.traits else ")"
    parts.append(_either("block", [first for first, _ in marks.blocks]))
    parts.append(_either("line", list(marks.comments), at_start=_LINE_START))
    quotes = sorted((quote for quote in marks.quotes if quote != "c"), key=len, reverse=True)
    parts.append(_either("quote", quotes))
    parts.append(_DIRECTIVES if "directives" in marks.traits else "")
    parts.append(r"(?P<opening>[(\[{])|(?P<closing>[)\]}])")
    return re.compile("|".join(part for part in parts if part), re.IGNORECASE)


def _either(name: str, marks: list[str], at_start: frozenset[str] = frozenset()) -> str:
    found = []
    for mark in marks:
        expression = re.escape(mark)
        if mark == "#":
            expression = _HASH
        elif mark == "//":
            expression = "(?<!:)//"
        elif mark in at_start:
            expression = rf"(?:(?<=\n)|\A)[ \t]*{expression}"
        found.append(expression)
    return f"(?P<{name}>{'|'.join(found)})" if found else ""


@lru_cache(maxsize=256)
def _text(language: str, mark: str) -> re.Pattern[str]:
    """The marks that count within a string or comment."""
    marks = marks_of(language)
    ends = {**dict(marks.blocks), **(dict(_TEMPLATES) if marks.is_markup else {})}
    if mark in ends:
        return re.compile(rf"(?P<newline>\n)|(?P<end>{re.escape(ends[mark])})")
    if mark in marks.quotes:
        holes = "|".join(map(re.escape, marks.holes))
        hole = f"|(?P<hole>{holes})" if holes and (mark != "'" or "{" in marks.holes) else ""
        return re.compile(rf"(?P<newline>\n)|(?P<skip>\\[^\n]|\{{\{{)|(?P<end>{re.escape(mark)}){hole}")
    return re.compile(r"(?P<newline>\n)")


def end_mark(language: str, mark: str) -> str:
    """Return the mark that ends what another one begins."""
    return {**dict(_TEMPLATES), **dict(marks_of(language).blocks)}.get(mark, mark)


def scan(language: str, text: str, stack: Stack, at: int = 0) -> Iterator[Event]:
    """Yield the events of `text[at:]`; `stack` holds what is open before it, and changes with each event."""
    marks, code = marks_of(language), _code(language)
    if marks.is_prose:
        yield from (Event("newline", *found.span()) for found in _NEWLINE.finditer(text, at))
        return
    while True:
        top = stack[-1] if stack else None
        if top and top.kind == "tag":
            at, event = _tag_end(text, at, stack)
            if event is None:
                return
            yield event
            continue
        is_text = top is not None and top.kind in ("string", "comment")
        found = (_text(language, top.mark) if top and is_text else code).search(text, at)
        if found is None:
            return
        at = found.end()
        event = _in_text(marks, found, stack) if is_text else _in_code(found, stack)
        if event is not None:
            yield event


def _in_text(marks: Marks, found: re.Match[str], stack: Stack) -> Event | None:
    start, end = found.span()
    top = stack[-1]
    if found.lastgroup == "end":
        return Event("close", start, end, stack.pop())
    if found.lastgroup == "hole" and (
        found[0] != "{" or found.string[top.start - 1 : top.start] in ("f", "F", "$")
    ):
        return _push(stack, Open(found[0], start, "bracket"), end)
    if found.lastgroup == "newline":
        lasts = top.mark in marks.long or any(top.mark == first for first, _ in (*marks.blocks, *_TEMPLATES))
        if not lasts:
            stack.pop()
        return Event("newline", start, end, top)
    return None


def _in_code(found: re.Match[str], stack: Stack) -> Event | None:  # noqa: PLR0911 - one for each mark
    (start, end), kind = found.span(), found.lastgroup
    if kind == "newline":
        return Event("newline", start, end)
    if kind == "opening":
        return _push(stack, Open(found[0], start, "bracket"), end)
    if kind == "closing":
        return close(found[0], start, stack)
    if kind == "begins":
        return _push(stack, Open("#", start, "directive"), end)
    if kind == "finishes":
        return _finish_directive(start, end, stack)
    if kind == "tag":
        return _push(stack, Open("<" + found["tag"].lower(), start, "tag"), end)
    if kind == "ends":
        return _close_element(found["ends"].lower(), start, end, stack)
    if kind in ("quote", "line", "block"):
        is_string = kind == "quote" or found[0] in ("{{", "{%", "<%", "<?")
        return _push(stack, Open(found[0], start, "string" if is_string else "comment"), end)
    return None


def _push(stack: Stack, entry: Open, end: int) -> Event:
    stack.append(entry)
    del stack[:-_MAX_OPEN]
    return Event("open", entry.start, end, entry)


def close(mark: str, start: int, stack: Stack) -> Event:
    """Take what a closing bracket closes off the stack, if it is on top of it."""
    if stack and stack[-1].kind == "bracket" and stack[-1].mark[-1] == CLOSING[mark]:
        return Event("close", start, start + 1, stack.pop())
    return Event("unmatched", start, start + 1)


def _close_element(name: str, start: int, end: int, stack: Stack) -> Event:
    if stack and stack[-1].kind == "element" and stack[-1].mark == name:
        return Event("close", start, end, stack.pop())
    return Event("unmatched", start, end)


def _finish_directive(start: int, end: int, stack: Stack) -> Event:
    """Take the innermost directive off the stack, whatever its branches left open."""
    for at in range(len(stack) - 1, -1, -1):
        if stack[at].kind == "directive":
            return Event("close", start, end, stack.pop(at))
    return Event("unmatched", start, end)


def _tag_end(text: str, at: int, stack: Stack) -> tuple[int, Event | None]:
    """Read a tag to its `>`: it becomes an element, unless it has no content."""
    found = _TAG_END.search(text, at)
    while found and found.lastgroup is None:
        found = _TAG_END.search(text, found.end())
    if found is None:
        return len(text), None
    start, end = found.span()
    if found.lastgroup == "newline":
        return end, Event("newline", start, end)
    tag = stack.pop()
    named = _TAG_NAME.match(text, tag.start + 1) if tag.start >= 0 else None
    name = (named[0] if named else tag.mark[1:]).lower()
    if found.lastgroup == "end" and name not in _VOID:
        return end, _push(stack, Open(name, tag.start, "element"), end)
    return end, Event("close", start, end, tag)
