"""Finds text that repeats the document after the cursor, or itself."""

from __future__ import annotations

import re
from itertools import pairwise

from completion_engine.cutting.lines import needs_next, opens_block
from completion_engine.cutting.reasons import Stop
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.text_window import indent_width

_WORD_CHAR = re.compile(r"[^\W_]")
_MIN_TELLING = 3  # letters and digits of a line that tells its place
_LONG = 20  # characters of a line that repeats another wherever it stands
_HEAD_CHARS = 20
_END_TAG = re.compile(r"</([A-Za-z][\w.-]*)\s*>")
_MIN_REST = 12
_CLOSING_CHARS = " \t)]}>*_~`$|'\".,;:"
_NUM_BELOW = 4
_RULER = re.compile(r"[-=*#_~.+/\\|<>^\s\u2500-\u257f]*")
_NUMBERS = re.compile(r"\d+")
_SPECIAL = re.compile(r"<\|[\w-]{2,24}\|>")
_ONCE = re.compile(
    r"(?:[\s)\]}>;,:'\"`]*[)\]}][\s)\]};,:]*|pass|break|continue|return;?|\w*end\w*;?|fi|done|esac|#endif"
    r"|else:?|else \{|\} else \{|finally:?|try:|begin|default:|</[\w:.-]+>)\Z"
)
_DATA = re.compile(r".{0,40},|(?=.*\d)[-+\d.,;\s]+|[-+]?[\d.]+|0x[\da-fA-F]+|[\"'][^\"']{0,40}[\"']")
_SEPARATORS = ",;"


def is_telling(line: str) -> bool:
    """Return whether a second copy of a line is a repeat; false for lines such as `}`, `0,` or `end`."""
    stripped = line.strip()
    return (
        len(stripped) >= 4 and len(_WORD_CHAR.findall(stripped)) >= _MIN_TELLING and not _ONCE.match(stripped)
    )


def same_line(line: str, other: str) -> bool:
    """Return whether two lines are the same but for blanks and the separator at their end."""
    return line.strip().rstrip(_SEPARATORS) == other.strip().rstrip(_SEPARATORS)


def repeats_next(around: CursorSurroundings, lines: list[str], index: int) -> bool:
    """Return whether a written line is the next line of the document.

    A long line is wherever it stands, others in the same column. Data such as `0,` may stand twice.
    """
    below = around.lines_below
    if not below or around.cursor.has_rest_of_line:
        return False
    line, following = lines[index], below[0]
    if not line.strip() or not same_line(line, following) or needs_next(around, line):
        return False
    if is_telling(line) and len(line.strip()) >= _LONG:
        return True
    is_placed = indent_width(line) == indent_width(following)
    if is_telling(line) or _ONCE.match(line.strip()):
        return is_placed
    num_above = sum(above.strip() == line.strip() for above in around.lines_above)
    is_ruler = (
        index == 0 and len(line.strip()) > len("```") and not _WORD_CHAR.search(line) and num_above % 2 == 0
    )
    return is_placed and not is_ruler and not _DATA.fullmatch(line.strip()) and not _has_repeats(around)


def _has_repeats(around: CursorSurroundings) -> bool:
    """Return whether the document near the cursor has the same line twice in a row."""
    sides = ([line.rstrip() for line in lines] for lines in (around.lines_above, around.lines_below))
    return any(first == second for lines in sides for first, second in pairwise(lines))


def copy_start(around: CursorSurroundings, text: str) -> int:
    """Return where a text begins to copy the document after the cursor; -1 if it does not.

    Whole lines count where they are the next line, or three of them stand below in the same order. Within a
    line, its end counts if it is the beginning of the text after the cursor.
    """
    lines = text.split("\n")
    at, starts = 0, []
    below = [line.rstrip() for line in around.lines_below[:_NUM_BELOW]]
    for index, line in enumerate(lines[:-1]):
        starts.append(at)
        whole = (around.line_prefix if not index else "") + line
        shown = [around.line_prefix + lines[0], *lines[1:]]
        if repeats_next(around, shown, index):
            return max(0, at - 1)
        if index >= 1 and not around.rest.strip() and len(below) > 1:
            pair = [shown[index - 1].rstrip(), whole.rstrip()]
            if pair == below[:2] and whole.strip():
                return max(0, starts[index - 1] - 1)
        if index >= 2:
            last = [one.rstrip() for one in shown[index - 2 : index + 1]]
            spans = [below[start : start + 3] for start in range(len(below) - 2)]
            if last in spans and sum(map(is_telling, last)) >= 2:
                first = index - 2
                while first > (not around.is_blank_line) and opens_block(shown[first - 1]):
                    first -= 1
                return max(0, starts[first] - 1)
        if (end := _end_before_next(around, shown[index])) > 0:
            return max(0, at + end - (0 if index else len(around.line_prefix)))
        at += len(line) + 1
    return _copied_head(around, text)


def _end_before_next(around: CursorSurroundings, line: str) -> int:
    """Return where a line goes on with all of the next line of the document; 0 if it does not.

    Code counts only if that line closes more than it opens: a statement may hold any other line.
    """
    following = around.lines_below[0].strip() if around.lines_below else ""
    closes = any(following.count(pair[1]) > following.count(pair[0]) for pair in ("()", "[]", "{}"))
    before = line.rstrip().removesuffix(following)
    if len(following) < _LONG or not is_telling(following) or not (closes or around.is_text):
        return 0
    is_copy = before != line.rstrip() and before.strip() and not before[-1].isalnum()
    return len(before.rstrip()) if is_copy else 0


def _copied_head(around: CursorSurroundings, text: str) -> int:
    stripped = around.after_all.lstrip()
    is_line = "\n" in around.after_all[: len(around.after_all) - len(stripped)]
    first = stripped.partition("\n")[0]
    size = max(_HEAD_CHARS, min(len(first), 60)) if is_line else _HEAD_CHARS
    head = stripped[:size]
    if (at := _find_head(around, text, head, is_line=is_line)) >= 0:
        return at
    if (at := _find_head(around, text, _joined(around), is_line=False)) >= 0:
        return at
    rest = "" if is_line else around.rest.strip(_CLOSING_CHARS)[:_HEAD_CHARS]
    return _find_head(around, text, rest, is_line=False) if len(rest) >= _MIN_REST else -1


def _joined(around: CursorSurroundings) -> str:
    """Return the next line and the beginning of the one after it, as a model may write them on one line."""
    first, second = [*(line.strip() for line in around.lines_below[:2]), "", ""][:2]
    between = "" if second.startswith((".", "?", ")", "]", "}")) else " "
    return f"{first}{between}{second[:_HEAD_CHARS]}" if is_telling(first) and len(second) >= 4 else ""


def _find_head(around: CursorSurroundings, text: str, head: str, *, is_line: bool) -> int:
    if len(head) < (_HEAD_CHARS if is_line else _MIN_REST) or len(set(_WORD_CHAR.findall(head))) < 4:
        return -1
    start = text.find(head)
    while start >= 0:
        line = (around.line_prefix + text[:start]).rpartition("\n")[2]
        if not (is_line and line.strip()):
            return start
        start = text.find(head, start + 1)
    return -1


def loop_stop(around: CursorSurroundings, text: str) -> Stop | None:
    """Return the end of a text that repeats itself: after the first round."""
    lines = text.split("\n")
    whole = [around.line_prefix + lines[0], *lines[1:-1]] if len(lines) > 1 else []
    kept = [(index, line.rstrip()) for index, line in enumerate(whole) if line.strip()]
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line) + 1)
    for last in range(2, len(kept) + 1):
        for period in range(1, 5):
            span = [line for _, line in kept[max(0, last - 3 * period) : last]]
            if len(span) == 3 * period and span[period:] == span[:-period] and any(map(is_telling, span)):
                return Stop("repeats-itself", ends[kept[last - 2 * period - 1][0] + 1] - 1)
        words = [line.split() for _, line in kept[max(0, last - 4) : last]]
        is_comment = len(words) == 4 and all(line[0] in (*around.marks.comments, "*", "-") for line in words)
        begins = {tuple(line[:4]) for line in words}
        near = [tuple(line.split()[:4]) for line in (*around.lines_above[-40:], *around.lines_below[:40])]
        is_new = not any(one == other for one, other in pairwise(near))
        if is_comment and len(begins) == 1 and min(map(len, words)) > 4 and is_new:
            return Stop("repeats-itself", ends[kept[last - 4][0] + 1] - 1)
        masked = [_NUMBERS.sub("0", line) for _, line in kept[max(0, last - 5) : last]]
        if len(masked) == 5 and len(set(masked)) == 1 and not _is_numbered(around, masked[0]):
            return Stop("repeats-itself", ends[kept[last - 5][0] + 1] - 1)
    masked_text = _NUMBERS.sub(lambda found: "0" * len(found[0]), text)
    return _circle(around, text, 3) or (_circle(around, masked_text, 5) if masked_text != text else None)


def _is_numbered(around: CursorSurroundings, masked: str) -> bool:
    near = [*around.lines_above[-40:], *around.lines_below[:40]]
    alike = [_NUMBERS.sub("0", line.rstrip()) == masked for line in near]
    return any(first and second for first, second in pairwise(alike))


def _circle(around: CursorSurroundings, text: str, num_long: int) -> Stop | None:
    """Find text that has the same period five times, or three times a long one; rulers do not count."""
    for end in range(48, len(text) + 1, 8):
        tail = text[end - 12 : end]
        before = text.rfind(tail, 0, end - 1)
        period = end - 12 - before
        if before < 0 or _RULER.fullmatch(tail):
            continue
        rounds = num_long if period >= _LONG else 5
        start = end - max(48, rounds * period)
        if start >= 0 and text[start + period : end] == text[start : end - period]:
            while start > 0 and text[start - 1] == text[start - 1 + period]:
                start -= 1
            num_letters = sum(char.isalpha() for char in text[start : start + period])
            if text[start : start + period] * 2 in around.before or (num_long > 3 and num_letters < 8):
                continue
            cut = text.rfind("\n", 0, start + period)
            keep = start + period
            if text[keep - 1 : keep + 1].isalnum() and " " in text[start:keep]:  # within a word
                keep = text.rfind(" ", 0, keep)
            return Stop("repeats-itself", cut if cut > 0 and text[:cut].strip() else keep)
    return None


def stray_end_tag(around: CursorSurroundings, text: str) -> int:
    """Return where a text ends an element that nothing begins; -1 if it does not."""
    for tag in _END_TAG.finditer(text):
        document = (around.cursor.before + text[: tag.start()] + around.after_all).lower()
        if f"<{tag[1]}".lower() not in document and f"</{tag[1]}".lower() not in document:
            return tag.start()
    return -1


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
