"""Owns which names a text uses in code, and which of them every file of a language knows.

Knows no repository. Only for languages in which it was measured that an unknown name is nearly always wrong.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from completion_engine.suggestions.site import Site

_MAX_CHARS_BEFORE = 128  # that are looked at, of a line and of what a name is a part of
_CHAIN = re.compile(r"(?<![\w$.])([\w$]+)\.(?:[\w$]+\.)*\Z")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t][^\n]*", re.MULTILINE)
_WORD = re.compile(r"[\w$]+")
_MIN_CHARS = 3  # shorter ones are made up as they are needed
_NAME = re.compile(r"(?<![\w$])(?:[^\W\d]|\$)[\w$]*")

_PYTHON = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *sys.stdlib_module_names, "self", "cls"}
)
_JAVASCRIPT = frozenset({
    "abstract", "any", "Array", "arguments", "as", "async", "await", "BigInt", "bigint", "boolean",
    "Boolean", "break", "case", "catch", "class", "clearTimeout", "console", "const", "constructor",
    "continue", "Date", "debugger", "declare", "decodeURIComponent", "default", "delete", "document",
    "else", "encodeURIComponent", "enum", "Error", "export", "exports", "extends", "false", "fetch",
    "finally", "for", "from", "function", "get", "globalThis", "if", "implements", "import", "in", "infer",
    "Infinity", "instanceof", "interface", "Intl", "is", "JSON", "keyof", "length", "let", "log", "Map",
    "Math", "module", "namespace", "NaN", "never", "new", "null", "number", "Number", "object", "Object",
    "of", "package", "parseFloat", "parseInt", "private", "process", "Promise", "protected", "Proxy",
    "prototype", "public", "push", "RangeError", "readonly", "Reflect", "RegExp", "require", "return",
    "satisfies", "set", "Set", "setInterval", "setTimeout", "static", "string", "String", "super", "switch",
    "symbol", "Symbol", "then", "this", "throw", "true", "try", "type", "TypeError", "typeof", "undefined",
    "unknown", "URL", "var", "void", "WeakMap", "WeakSet", "while", "window", "with", "yield",
})  # fmt: skip
_KNOWN = {
    "python": _PYTHON,
    **dict.fromkeys(("javascript", "javascriptreact", "typescript", "typescriptreact"), _JAVASCRIPT),
}


@dataclass(frozen=True, slots=True)
class Name:
    """A name that ends behind `end` characters of a text; where `start` < 0 it begins before the text.

    It is a part of `root`, as in `root.part.name`, if that is not empty.
    """

    start: int
    end: int
    text: str
    root: str = ""


def judges_names(language: str) -> bool:
    """Whether it is known what an unknown name says in a language."""
    return language in _KNOWN


def names_in(site: Site, text: str, *, is_ended: bool) -> Iterator[Name]:
    """The whole names of `text`, written at the cursor, but those in comments, in strings and known anywhere.

    `is_ended` says that a name at the text's end does not go on.
    """
    known = _KNOWN.get(site.cursor.language, frozenset())
    before = site.line_prefix[-_MAX_CHARS_BEFORE:]
    joined, num_before = before + text, len(before)
    spans = list(_without_code(site, text))
    for found in _NAME.finditer(joined):
        start, end = found.start() - num_before, found.end() - num_before
        is_whole = 0 < end < len(text) + is_ended
        is_code = not any(first < end and start < last for first, last in spans)
        if is_whole and is_code and len(found.group()) >= _MIN_CHARS and found.group() not in known:
            chain = _CHAIN.search(joined, max(0, found.start() - _MAX_CHARS_BEFORE), found.start())
            yield Name(start, end, found.group(), chain[1] if chain else "")


def is_imported(name: str, text: str) -> bool:
    """Whether a line of `text` imports a name: what that has, another repository says."""
    return any(name in _WORD.findall(line) for line in _IMPORT.findall(text) if name in line)


def _without_code(site: Site, text: str) -> Iterator[tuple[int, int]]:
    """The strings and comments of a text."""
    stack = list(site.stack)
    start = 0 if site.inside else None
    for event in site.scanner.scan(text, stack, before=site.line_prefix):
        is_inside = bool(stack) and not stack[-1].is_bracket
        if is_inside and start is None:
            start = event.start
        elif not is_inside and start is not None:
            yield start, event.end
            start = None
    if start is not None:
        yield start, len(text)
