"""Finds text that repeats the document after the cursor, or itself, and names the rules that end a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from completion_engine.cutting.lines import needs_next, opens_block
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.text_window import indent_width

Reason = Literal[
    "single-line", "end-of-statement", "end-of-block", "end-of-paragraph", "does-not-fit", "repeats-document",
    "repeats-itself", "chat", "undecodable-text", "no-change", "too-short", "blank", "out-of-time",
    "nothing-to-add", "unsure", "unknown-name", "in-comment", "in-string",
]  # fmt: skip

_WORD_CHAR = re.compile(r"[^\W_]")
_MIN_TELLING = 3  # letters and digits of a line that tells its place
_LONG = 20  # characters of a line that repeats another wherever it stands
_HEAD_CHARS, _MIN_REST = 20, 12
_CLOSING = " \t)]}>*_~`$|'\".,;:"
_RULER = re.compile(r"[-=*#_~.+/\\|<>^\s\u2500-\u257f]*")
_DIGIT = re.compile(r"\d|\b[A-Za-z]\b")
_SPECIAL = re.compile(r"<\|[\w-]{2,24}\|>")
_ONCE = re.compile(
    r"(?:[\s)\]}>;,:'\"`]*[)\]}][\s)\]};,:]*|pass|break|continue|return;?|\w*end\w*;?|fi|done|esac|#endif"
    r"|else:?|else \{|\} else \{|finally:?|try:|begin|default:|</[\w:.-]+>)\Z"
)
_DATA = re.compile(r".{0,40},|(?=.*\d)[-+\d.,;\s]+|[-+]?[\d.]+|0x[\da-fA-F]+|[\"'][^\"']{0,40}[\"']")
_LIST_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)]) +\S")
_MAX_ROWS = 100
_MAX_ITEMS = 6  # that follow fewer items
_SIGNS = " \t\n.,;:!?()[]{}<>'\"`"
_ENDS = " \t,;&+\\_\"'`"  # characters at the end of a line that may be the last of a list, or continue


@dataclass(frozen=True, slots=True)
class Stop:
    """End the text after its first `num_chars` characters."""

    rule: Reason
    num_chars: int


def is_telling(line: str) -> bool:
    """Return whether a second copy of a line is a repeat; false for lines such as `}`, `0,` or `end`."""
    stripped = line.strip()
    return (
        len(stripped) >= 4 and len(_WORD_CHAR.findall(stripped)) >= _MIN_TELLING and not _ONCE.match(stripped)
    )


def same_line(line: str, other: str) -> bool:
    """Return whether two lines are the same but for blanks, kinds of quotes and the marks at their ends."""
    line, other = line.strip().replace("'", '"'), other.strip().replace("'", '"')
    return line == other or line.rstrip(_ENDS) == other.rstrip(_ENDS) != ""


def _repeats_next(around: CursorSurroundings, line: str) -> bool:
    """Return whether a written line is the next line of the document.

    A long line is wherever it stands, others in the same column. Data such as `0,` may stand twice.
    """
    below = around.lines_below
    if not below or around.cursor.has_rest_of_line:
        return False
    following, stripped = below[0], line.strip()
    if not stripped or not same_line(line, following) or needs_next(around, line):
        return False
    is_placed = indent_width(line) == indent_width(following)
    if is_telling(line):
        return is_placed or len(stripped) >= _LONG
    return is_placed and (_ONCE.match(stripped) is not None or not _DATA.fullmatch(stripped))


def copy_start(around: CursorSurroundings, text: str) -> int:
    """Return where a text begins to copy the document after the cursor; -1 if it does not.

    Whole lines count where they are the next lines, with the lines before them that begin their block. Within
    a line, its end counts if it is the beginning of the text after the cursor.
    """
    lines, starts = text.split("\n"), [0]
    shown = [line.rstrip() for line in (around.line_prefix + lines[0], *lines[1:])]
    below = [line.rstrip() for line in around.lines_below[:4]]
    for index, line in enumerate(lines[:-1]):
        if _repeats_next(around, shown[index]):
            return max(0, starts[index] - 1)
        first = _first_copied(shown[: index + 1], below)
        if first < index and not around.rest.strip():
            while first > (not around.is_blank_line) and opens_block(shown[first - 1]):
                first -= 1
            return max(0, starts[first] - 1)
        starts.append(starts[-1] + len(line) + 1)
    clause = below[0].strip().rstrip(";") if below and "statements" in around.marks.traits else ""
    if is_telling(clause) and not around.rest.strip() and f" {clause}" in text:
        return text.index(f" {clause}")
    return _copied_head(around, text)


def _first_copied(shown: list[str], below: list[str]) -> int:
    """Return the first of the last lines that are the next two lines, or the three after the next one."""
    if shown[-2:] == below[:2] and len(below) > 1 and shown[-1]:
        return len(shown) - 2
    is_later = shown[-3:] == below[1:] and len(below) == 4 and sum(map(is_telling, below[1:])) >= 2
    return len(shown) - 3 if is_later else len(shown)


def _copied_head(around: CursorSurroundings, text: str) -> int:
    """Return where a text goes on with the beginning of what follows the cursor; -1 if it does not."""
    stripped = around.after_all.lstrip()
    is_line = "\n" in around.after_all[: len(around.after_all) - len(stripped)]
    first = stripped.partition("\n")[0]
    head = (
        stripped[: max(_HEAD_CHARS, min(len(first), 90))] if is_line else first.strip(_CLOSING)[:_HEAD_CHARS]
    )
    if len(head) < (_HEAD_CHARS if is_line else _MIN_REST) or len(set(_WORD_CHAR.findall(head))) < 4:
        return -1
    start = text.find(head)
    while start >= 0 and is_line and (around.line_prefix + text[:start]).rpartition("\n")[2].strip():
        start = text.find(head, start + 1)
    return start


def loop_stop(around: CursorSurroundings, text: str) -> Stop | None:
    """Return the end of a text that repeats itself: after the first round.

    Whole lines and rounds of 20 characters or more count the third time, others the fifth time, as do rounds
    that differ in numbers. Rulers and repeats of the document do not count.
    """
    masked = _DIGIT.sub("0", text)
    return _circle(around, text, text) or (_circle(around, text, masked) if masked != text else None)


def _circle(around: CursorSurroundings, text: str, masked: str) -> Stop | None:
    for end in range(32, len(text) + 1, 4):
        tail = masked[end - 12 : end]
        period = end - 12 - masked.rfind(tail, 0, end - 1)
        has_line = "\n" in masked[end - period : end]
        rounds = 3 - around.is_text if masked is text and (period >= _LONG or has_line) else 5
        start = end - max(32 if has_line else 48, rounds * period)
        if (
            start < 0
            or _RULER.fullmatch(tail)
            or masked[start + period : end] != masked[start : end - period]
        ):
            continue
        while start > 0 and masked[start - 1] == masked[start - 1 + period]:
            start -= 1
        once = masked[start : start + period]
        num_letters = sum(char.isalpha() for char in once)
        document = around.before + around.after
        if masked is not text:
            document = _DIGIT.sub("0", document) if num_letters >= (1 if has_line else 8) else once * 2
        if once * 2 not in document:
            return Stop("repeats-itself", _end_of_round(text, start, start + period))
    return None


def _is_item(row: str) -> bool:
    """Return whether a line is an item of a list, or one of its rows that holds a string."""
    return bool(_LIST_MARK.match(row)) or (row.endswith(",") and ('"' in row or "'" in row))


def _siblings(above: list[str], width: int) -> Iterator[str]:
    """Yield the items above of a list that is indented by `width`, and what stands in them."""
    for line in reversed(above):
        if indent_width(line) < width or (indent_width(line) == width and not _is_item(line)):
            return
        yield line


def list_stop(around: CursorSurroundings, text: str) -> Stop | None:
    """Return the end of a text that writes the line above or an item again, or too many items."""
    lines, start, num_items = text.split("\n"), 0, 0
    above = around.lines_above[-_MAX_ROWS:]
    for index, line in enumerate(lines[:-1]):
        row = (around.line_prefix * (not index) + line).rstrip()
        is_above = index <= text.startswith("\n") and above[-1:] == [row]
        siblings = list(_siblings(above, indent_width(row))) if _is_item(row) else []
        if (is_above or row in siblings) and is_telling(row):
            return Stop("repeats-document" if is_above else "repeats-itself", max(0, start - 1))
        num_items += _is_item(row)
        if num_items == _MAX_ITEMS and 0 < len(siblings) + 1 - num_items < num_items:
            return Stop("end-of-block", start + len(line))
        above += [row] * bool(row)
        start += len(line) + 1
    return None


def _end_of_round(text: str, start: int, end: int) -> int:
    """Return the end of the last whole line of the first round, otherwise of its last word.

    A round without blanks is noise, so its line goes.
    """
    if not any(map(str.isspace, text[start:end])):
        return max(0, text.rfind("\n", 0, start))
    line_end = text.rfind("\n", 0, end + 1)
    if text[: max(line_end, 0)].strip():
        return line_end
    word_end = (
        text.rfind(" ", 0, end) if text[end - 1 : end + 1].strip(_SIGNS) == text[end - 1 : end + 1] else end
    )
    return word_end if text[: max(word_end, 0)].strip() else end


def chat_start(around: CursorSurroundings, text: str) -> int:
    """Return where code ends with a fence or a control marker of a model, as in a chat; -1 elsewhere."""
    found = _SPECIAL.search(text)
    if found and found[0] not in around.before + around.after:
        return found.start()
    if "fences" in around.marks.traits or around.document_language in ("markdown", "asciidoc", "plaintext"):
        if not around.is_part:
            return -1
    elif around.marks.is_prose or around.inside is not None or "```" in around.before + around.after:
        return -1
    at = text.find("```")
    line = (around.line_prefix + text[: max(at, 0)]).rpartition("\n")[2].strip()
    is_comment = any(line.startswith(mark) for mark in (*around.marks.comments, "*")) and bool(line)
    is_literal = any(entry.mark in ("pre", "code", "textarea") for entry in around.stack)
    return -1 if is_comment or is_literal else at
