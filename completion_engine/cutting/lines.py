"""The lines of a written text, and what the beginnings and ends of lines mean in most languages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from completion_engine.cutting.lexer import Open, scan
from completion_engine.cutting.surroundings import CursorSurroundings

_MAX_CODE_CHARS = 400
_TOKEN = re.compile(r"</?[\w:.-]*|[#@]?\w+|&&|\|\||\|>|=>|\?\.|\.\w|;;|\S")
_GOES_ON = re.compile(
    r"(?:[,\\(\[{=.]|(?<!\+)\+|(?<!-)-|(?<=\s)[*/%&|^<>?!~]|&&|\|\||\|>|=>|->|<-|%>%|[^:]:|\b(?:and|or|not|then|do))\Z"
)
_OPENER = re.compile(
    r"(?:[^:]:|[{(\[]|=>|->|\b(?:then|do|begin|else|try|of|where|is|loop))\Z"
    r"|^\s*(?:if|unless|while|until|for|case|def|class|module|(?:local )?function|sub|begin)\b"
    r"(?!.*(?:\bend|[;})])\s*\Z)"
)
_LEADING = re.compile(r"\.\w|\?\.|&&|\|\||\|>|=>|[?:+|&=*]|<(?![\w/>!])|,|(?:and|or)\b")
_PRELUDE = re.compile(r"^\s*(?:@[\w.]+(?:\(.*\))?|#!?\[.*\]|template\s*<.*>)\s*\Z")
_PRELUDE_BRACKETS = re.compile(r"^\s*\[[A-Za-z].*\]\s*\Z")
_CLAUSE = re.compile(
    r"(?:else\w*|elif|elsif|except|catch|finally|rescue|ensure|when|case|default|while|until|then|do)\Z"
)
_HEADS = " async case class def elif else except finally for if match try while with "
_CLOSER = re.compile(r"(?:end\w*|fi|done|esac|od|loop|next|wend|\#endif|\#end)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One written line, `text[start:end]`; the first one goes on the cursor's line.

    `depth` is the number of brackets open at its end, `inside` the string or comment open there, and
    `code_end` where the comment at its end begins.
    """

    start: int
    end: int
    is_ended: bool
    depth: int
    inside: Open | None
    code_end: int


def lines_of(around: CursorSurroundings, text: str) -> list[Line]:
    """Return the lines of a text at the cursor."""
    shift, stack = len(around.before), list(around.stack)
    lines: list[Line] = []
    start, code_end = 0, -1
    for event in scan(around.language, around.before + text, stack, shift):
        at = event.start - shift
        if event.kind == "open" and event.entry and event.entry.mark in around.marks.comments:
            code_end = at
        if event.kind == "newline":
            lines.append(Line(start, at, True, *_state(around, stack), code_end if code_end >= start else at))
            start = at + 1
    end = len(text)
    lines.append(Line(start, end, False, *_state(around, stack), code_end if code_end >= start else end))
    return lines


def _state(around: CursorSurroundings, stack: list[Open]) -> tuple[int, Open | None]:
    top = stack[-1] if stack else None
    depth = sum(entry.kind in ("bracket", "tag", "element") for entry in stack)
    return depth, top if around.lasts(top) else None


def code_of(around: CursorSurroundings, text: str, lines: list[Line], index: int) -> str:
    """Return a line's code, without the comment at its end; the first begins before the cursor."""
    line = lines[index]
    code = ("" if index else around.line_prefix[-_MAX_CODE_CHARS:]) + text[
        line.start : line.code_end
    ].rstrip()
    return code.rstrip()[-_MAX_CODE_CHARS:]


def first_token(line: str, *, is_ended: bool) -> str:
    """Return the first word or sign of a line; empty while it may still grow."""
    stripped = line.lstrip()
    found = _TOKEN.match(stripped)
    if found is None or (
        found.end() == len(stripped) and not is_ended and found[0] not in (")", "]", "}", "{")
    ):
        return ""
    return found[0]


def goes_on(code: str) -> bool:
    """Return whether a line's end shows that its statement goes on."""
    return _GOES_ON.search(code) is not None


def opens_block(code: str) -> bool:
    """Return whether a line begins a block."""
    return _OPENER.search(code) is not None


def may_open_block(typed: str) -> bool:
    """Return whether a line that begins so, of a language whose blocks begin after a colon, may begin one."""
    word = typed[: len(typed) - len(typed.lstrip("abcdefghijklmnopqrstuvwxyz"))]
    return f" {word}" in _HEADS if word == typed else f" {word} " in _HEADS


def continues(line: str) -> bool:
    """Return whether a line's beginning shows that it goes on with the statement before it."""
    return _LEADING.match(line.lstrip()) is not None


def needs_next(around: CursorSurroundings, code: str) -> bool:
    """Return whether a line belongs to the definition after it: a decorator or an attribute."""
    if _PRELUDE.match(code):
        return True
    return "prelude-brackets" in around.marks.traits and _PRELUDE_BRACKETS.match(code) is not None


def is_clause(token: str) -> bool:
    """Return whether a word goes on with the block above it, such as `else`."""
    return _CLAUSE.match(token) is not None


def is_closer(token: str) -> bool:
    """Return whether a word ends the block above it, such as `end`."""
    return _CLOSER.match(token) is not None
