"""Cuts a completion before a name that probably does not exist, because no file of the repository holds it.

This applies to languages in which such names were measured to be nearly always wrong. Names are looked up in
the index; no file is read.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.lexer import scan
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.cutting.units import UnitEnd, longest_likely
from completion_engine.probability import SHIPPED, Calibration
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest, Forecast

_UNKNOWN_FACTOR = 0.1  # multiplies p / (1 - p) of a name that is in neither the file nor the repository
# A name has other tokens after other text, so it is looked up after each text here, the most usual first.
_LEADS = (" ", "", ".", "(", "\n", "@", "[", "{", '"', "'", "`", "_")  # fmt: skip
_MAX_OCCURRENCES = 16  # per lookup
_MAX_CHARS = 128
_MIN_TOKENS = 8_000  # in a smaller index a missing name says little

_MAX_CHARS_BEFORE = 128  # characters of a line, and of a chain of names, that are searched
_CHAIN = re.compile(r"(?<![\w$.])([\w$]+)\.(?:[\w$]+\.)*\Z")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t][^\n]*", re.MULTILINE)
_WORD = re.compile(r"[\w$]+")
_MIN_CHARS = 3  # shorter names are usually new local variables
_NAME = re.compile(r"(?<![\w$])(?:[^\W\d]|\$)[\w$]*")

IsKnown = Callable[[str], bool]

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


class KnownNames:
    """The names in a request's document and repository."""

    def __init__(self, request: CompletionRequest, tokenizer: Tokenizer) -> None:
        self._request = request
        self._tokenizer = tokenizer

    @property
    def can_judge(self) -> bool:
        """Whether a name that is not found is probably wrong in this language and repository."""
        index, language = self._request.index, self._request.language
        return index is not None and language in _KNOWN and index.num_tokens >= _MIN_TOKENS

    def __contains__(self, name: str) -> bool:
        request = self._request
        if request.index is None or len(name) > _MAX_CHARS:
            return True
        if name in request.prefix or name in request.suffix:
            return True
        own = request.indexed_as or request.document
        spelt = (self._tokenizer.encode(lead + name) for lead in _LEADS)
        return any(
            request.index.find(tokens, max_occurrences=_MAX_OCCURRENCES, exclude=own) for tokens in spelt
        )


def num_confident_chars(
    rules: Cutter,
    forecast: Forecast,
    eagerness: float,
    calibration: Calibration = SHIPPED,
    is_known: IsKnown | None = None,
) -> int:
    """Return how many characters of a forecast to show, before polishing.

    That is up to the forecast's own end, or to the longest unit before it that is likely enough. Without
    `is_known`, all names count as known.
    """
    confidences = [calibration.of(probability) for probability in forecast.probabilities]
    if is_known is not None:
        _lower_unknown(confidences, rules, forecast, is_known)
    num_chars = forecast.num_chars
    units = [unit for unit in rules.units(forecast.text) if unit.num_chars < num_chars]
    units.append(UnitEnd(num_chars, "line"))
    return longest_likely(units, forecast.ends, confidences, 1 - eagerness)


def _lower_unknown(confidences: list[float], rules: Cutter, forecast: Forecast, is_known: IsKnown) -> None:
    """Lower the confidence of each unknown name, at its first token, so that the cut is before the name."""
    is_ended = forecast.num_chars == len(forecast.text)
    for name in names_in(rules.around, forecast.text, is_ended=is_ended):
        if name.start >= forecast.num_chars:
            return
        if is_known(name.text) or (name.root and is_imported(name.root, rules.around.cursor.prefix)):
            continue
        first = bisect_right(forecast.ends, max(0, name.start))
        last = min(bisect_right(forecast.ends, name.end - 1), len(confidences) - 1)
        confidence = math.prod(confidences[first : last + 1])
        lowered = _UNKNOWN_FACTOR * confidence
        # q / confidence, where q / (1 - q) = _UNKNOWN_FACTOR * confidence / (1 - confidence)
        confidences[first] *= lowered / (lowered + 1 - confidence) / confidence


@dataclass(frozen=True, slots=True)
class Name:
    """A name from character `start` to `end` of a text; a negative `start` is before the text.

    `root` is the first name of its chain, as in `root.part.name`; empty for a name by itself.
    """

    start: int
    end: int
    text: str
    root: str = ""


def names_in(around: CursorSurroundings, text: str, *, is_ended: bool) -> Iterator[Name]:
    """Yield the complete names in the code of `text`, which is written at the cursor.

    Names in comments and strings and names of the language itself are left out. With `is_ended`, a name at
    the end of the text is complete.
    """
    known = _KNOWN.get(around.cursor.language, frozenset())
    before = around.line_prefix[-_MAX_CHARS_BEFORE:]
    joined, num_before = before + text, len(before)
    spans = list(_without_code(around, text))
    for found in _NAME.finditer(joined):
        start, end = found.start() - num_before, found.end() - num_before
        is_complete = 0 < end < len(text) + is_ended
        is_code = not any(first < end and start < last for first, last in spans)
        if is_complete and is_code and len(found.group()) >= _MIN_CHARS and found.group() not in known:
            chain = _CHAIN.search(joined, max(0, found.start() - _MAX_CHARS_BEFORE), found.start())
            yield Name(start, end, found.group(), chain[1] if chain else "")


def is_imported(name: str, text: str) -> bool:
    """Return whether a line of `text` imports a name, so that its members may be defined elsewhere."""
    return any(name in _WORD.findall(line) for line in _IMPORT.findall(text) if name in line)


def _without_code(around: CursorSurroundings, text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each string and comment of a text."""
    shift, stack = len(around.before), list(around.stack)
    start = 0 if around.inside else None
    for event in scan(around.language, around.before + text, stack, shift):
        is_inside = bool(stack) and stack[-1].kind in ("string", "comment")
        if is_inside and start is None:
            start = event.start - shift
        elif not is_inside and start is not None:
            yield start, event.end - shift
            start = None
    if start is not None:
        yield start, len(text)
