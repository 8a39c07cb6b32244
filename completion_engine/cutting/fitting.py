"""Finds the beginning of a text that fits the document, and the rest of the line that it replaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from completion_engine.cutting.lexer import CLOSING, scan
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.cutting.tree import SyntaxWindow

_MAX_TRIMS = 24
_MAX_LINES = 12
_TOKENS = re.compile(r"[\w$]+|[^\w\s]|\n")
_CLOSING_HEAD = re.compile(r"\s*(?:</[\w:.-]*>|[)\]}>\"'`|]|[-~%?*/]+[}>/])")
_ONLY_CLOSES = re.compile(r"(?:\s*(?:</[\w:.-]*>|[)\]};,:]|[-%?*]+[}>/]))*\s*")
_SEPARATOR = re.compile(r"[ ]*[;,:]")
_CELLS = ("|", "&", "\\\\")
_PIPE, _TEX_CELL = re.compile(r"(?<!\\)\|"), re.compile(r"(?<!\\)&|\\\\")
_SYMMETRIC = "*_~`$"
_PROSE_MARKS = re.compile(
    r"\\[^\n]|[()\[\]{}\"]|`+|\*{1,3}(?!\s)|(?<=\S)\*{1,3}|\$|(?<!\w)_(?!\s)|(?<=\w)_(?=[\s.,;:!?]|\Z)"
)
_TEXT_MARKS = re.compile(r"\\[^\n]|[()\[\]{}]")
_GLUED = re.compile(r"[^\W_][^\W_]")
_GLUED_CODE = re.compile(r"(?:[^\W_]|[,;])[^\W_]")
_OWN_LINE = re.compile(r"(?:[\w;,}>\"'`]|(?<!:):)[^\s)\]},;:.]")
_UNMATCHED = 4  # the cost of a mark that closes nothing
_TEXT_CHANGED = 3  # the cost of a string or comment that ends elsewhere


class Fitting:
    """Compares beginnings of a text at one cursor by what each would break."""

    def __init__(self, around: CursorSurroundings, syntax: SyntaxWindow) -> None:
        self._around, self._syntax = around, syntax
        self._rest = around.rest
        self._plain = self._balance("", 0)

    def fitted(self, text: str) -> tuple[str, int]:
        """Return the longest beginning of a text that breaks nothing, and the characters it replaces."""
        if self._around.cursor.has_rest_of_line:
            text = text[: self._slot_end(text)]
        is_code = not (self._around.is_text or self._around.marks.is_markup)
        is_own_line = (_OWN_LINE if is_code else _GLUED).match((" " + text)[-2:] + self._rest[:1], 1)
        if self._around.is_blank_line and is_own_line and not any(self._overlaps(text)):
            return "", 0  # it would need a line end
        fits, loose = list[tuple[str, int]](), list[tuple[int, str, int]]()
        best, fewest = ("", 0), 0
        for shorter in self._beginnings(text):
            num_replaced = min(
                self._overlaps(shorter), key=lambda size: (self._balance(shorter, size), -size)
            )
            loose.append((self._balance(shorter, num_replaced), shorter, num_replaced))
            if self._is_glued(shorter, num_replaced) or loose[-1][0] > self._plain:
                continue
            fits.append((shorter, num_replaced))
            errors = self._syntax.num_errors(shorter, num_replaced)
            base = self._syntax.num_errors_before if errors else None
            if errors == 0:
                return fits[-1]
            is_guess = base and not self._rest.strip() and not shorter.endswith((";", ","))
            if base is None or errors is None or is_guess:
                return best if best[0] else fits[0]
            if errors <= base and (not best[0] or errors < fewest):
                best, fewest = fits[-1], errors
        is_broken_data = self._around.language == "json" and self._syntax.num_errors_before == 0
        if best[0] or self._around.cursor.has_rest_of_line or is_broken_data:
            return best
        _, least, num_replaced = min(loose, key=lambda one: one[0])
        return fits[0] if fits else (least, num_replaced)

    def _is_glued(self, text: str, num_replaced: int) -> bool:
        """Return whether the end of a text and the rest of the line would become one word or comment."""
        glued, rest = _GLUED if self._around.is_text else _GLUED_CODE, self._rest[num_replaced:]
        opened = self._around.scan(text)[1][-1:] if rest.strip() else []
        is_comment = opened != self._around.stack[-1:] and opened and opened[0].kind == "comment"
        return bool(is_comment) or glued.match(text[-1:] + rest[:1]) is not None

    def leaves_open(self, text: str, num_replaced: int) -> bool:
        """Return whether a text leaves more open, or closes more, than the document does without it."""
        return self._balance(text, num_replaced) > self._plain

    def _slot_end(self, text: str) -> int:
        """Return where a text leaves the pair, part or cell that the rest of the line ends."""
        around, rest = self._around, self._rest
        ends = [len(text)]
        closed = self._closing_in(rest) if around.stack else -1
        if _ONLY_CLOSES.fullmatch(rest, max(closed, 0)) or _ONLY_CLOSES.fullmatch(rest.lstrip("|")):
            return min(ends)
        head = rest.lstrip()[:1]
        if head in CLOSING:
            ends.append(_raw_closing(text, head))
        elif rest.lstrip().startswith(_CELLS) and around.marks.is_prose:
            cell = _PIPE if head == "|" else _TEX_CELL
            ends.append(found.start() if (found := cell.search(text)) else -1)
        elif head and head in "\"'|":
            ends.append(text.find(head) if around.line_prefix.count(head) % 2 else -1)
        elif head in _SYMMETRIC and around.marks.is_prose:
            run = "".join(takewhile(head.__eq__, rest.lstrip()))
            is_open = any(mark in run for mark in _partners(around.line_prefix, _PROSE_MARKS)[1])
            closing = re.search(rf"(?<=[^\s\\]){re.escape(run)}(?!\w)", text) if is_open else None
            ends.append(closing.start() if closing else -1)
        return min(end for end in ends if end >= 0)

    def _closing_in(self, text: str) -> int:
        """Return where a text closes the innermost of what is open at the cursor; -1 if it does not."""
        around = self._around
        inner, stack = around.stack[-1], list(around.stack)
        events = scan(around.language, around.before + text, stack, len(around.before))
        found = (event.start for event in events if event.kind == "close" and event.entry is inner)
        return next(found, len(around.before) - 1) - len(around.before)

    def _beginnings(self, text: str) -> Iterator[str]:
        """Yield the text and its beginnings, the longest first: by words on one line, else by lines."""
        text = text.rstrip() + " " * (text.endswith(" ") and bool(self._rest[:1].strip()))
        yield text
        if text.endswith((";", ",")):
            yield text[:-1]  # the statement may go on below
        end = len(text)
        for _ in range(_MAX_LINES):
            end = text.rfind("\n", 0, end)
            if end < 0:
                break
            if text[:end].strip():
                yield text[:end].rstrip()
        line = text.partition("\n")[0]
        if self._rest.strip():
            ends = [found.end() for found in _TOKENS.finditer(line)]
        else:
            events, _ = self._around.scan(line)
            start = len(self._around.before)
            ends = [
                event.start - start
                for event in events
                if event.kind == "unmatched"
                or (event.kind == "close" and event.entry and event.entry.start < start)
            ]
        yield from (line[:end].rstrip() for end in reversed(ends[-_MAX_TRIMS:]) if end < len(line))

    def _overlaps(self, text: str) -> list[int]:
        """Lengths of the heads of the rest of the line that a text may replace."""
        rest, stripped = self._rest, text.rstrip()
        blanks = len(rest) - len(rest.lstrip())
        sizes = {0}
        if not rest.strip():
            return [len(rest)]
        for size in range(blanks + 1, min(len(rest), blanks + len(text)) + 1):
            is_short_word = rest[size - 1].isalnum() and size - blanks < 3 and rest[size:].strip()
            if stripped.endswith(rest[blanks:size]) and not rest[size - 1].isspace() and not is_short_word:
                sizes.add(size)
        at = 0
        while found := _CLOSING_HEAD.match(rest, at) or (at and _SEPARATOR.match(rest, at)):
            at = found.end()
            if found[0].strip() not in text:
                break
            sizes.add(at)
        if max(sizes) >= len(rest.rstrip()):
            sizes.add(len(rest))
        return sorted(sizes)

    def _balance(self, text: str, num_replaced: int) -> int:
        """Return how many marks the document has open or closed too often, from the cursor's line on."""
        around = self._around
        joined = text + self._rest[num_replaced:]
        if around.marks.is_prose:
            return _loose(around.line_prefix + joined, _PROSE_MARKS)
        start, stack, cost = len(around.before), list(around.stack), 0
        if around.marks.is_markup:
            cost = _loose(around.line_prefix + joined.partition("\n")[0], _TEXT_MARKS)
        source, string_end = around.before + joined + "\n", start + len(joined)
        for event in scan(around.language, source, stack, start):
            if around.inside and event.kind == "close" and event.entry is around.inside:
                string_end = event.start
            if event.kind == "newline" and event.entry and not around.lasts(event.entry):
                cost += event.entry.kind == "string"
            if event.kind == "unmatched":
                cost += _UNMATCHED
        if around.inside:
            cost += _loose(source[max(around.inside.start, around.line_start) : string_end], _TEXT_MARKS)
        cost += _TEXT_CHANGED * (around.lasting != [entry for entry in stack if around.lasts(entry)])
        return cost + around.num_unmatched(stack, source)


def _raw_closing(text: str, mark: str) -> int:
    """Return where a bracket closes more than the text has opened; -1 if none does."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == CLOSING[mark]) - (char == mark)
        if depth < 0:
            return at
    return -1


def _loose(text: str, marks: re.Pattern[str]) -> int:
    """Return the number of marks of a line of text that have no partner."""
    cost, opened = _partners(text, marks)
    return cost + len(opened)


def _partners(text: str, marks: re.Pattern[str]) -> tuple[int, list[str]]:
    """Return how many marks of a text close nothing, and those that it leaves open."""
    opened: list[str] = []
    cost = 0
    for found in marks.finditer(text):
        mark = found[0]
        if mark.startswith("\\"):
            continue
        if mark in CLOSING:
            if CLOSING[mark] in opened:
                while opened.pop() != CLOSING[mark]:
                    cost += 1
            else:
                cost += 1
        elif mark in "([{":
            opened.append(mark)
        elif mark in opened:
            while opened.pop() != mark:
                cost += 1
        else:
            opened.append(mark)
    return cost, opened
