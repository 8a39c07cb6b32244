"""Repairs the indentation and the blanks of a text, and removes characters that a reader cannot see."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from completion_engine.cutting.lines import Line, opens_block
from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.text_window import TAB_WIDTH, indent_width, leading_blanks

DASHES = re.compile(r"[ ]*(?:- +)+")  # the marks of a list in YAML
_RULE = re.compile(r"[^\s#:=][^#:=]*::?(?![:=])")
_MAYBE_UNSAFE = re.compile(r"[^\t\n\x20-\x7e]")
_JOINERS = "\u200c\u200d"  # they shape letters and emoji
_JOINER_RUNS = re.compile(f"[{_JOINERS}]+")
_LINE_SEPARATORS = "\u2028\u2029"
# Invisible characters that are neither blanks nor controls: fillers and a joiner of marks.
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f]+")
_SHORT_SELECTORS, _KEYCAP = "\ufe0e\ufe0f", "\u20e3"
_LETTERS_WITH_VARIANTS = "\u2139\u3030"
# Code points that are not characters, and those that Unicode reserves for invisible ones.
_RESERVED = (range(0xFDD0, 0xFDF0), range(0x2065, 0x2066), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))
_ESCAPE_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # colours, movements
    "|\x1b[\\]PX^_][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\\\)"  # titles, links
    "|\x1b[ -/][0-~]"  # alphabets
)
_UNDECODABLE = re.compile("[\ufffd\ud800-\udfff]")


def without_double_blank(around: CursorSurroundings, text: str) -> str:
    """Return the text without blanks at its start after a blank; aligned columns and strings keep theirs."""
    before = around.line_prefix
    is_joint = not around.is_blank_line and before[-1:] in (" ", "\t") and not before[-2:].isspace()
    is_string = around.inside is not None and around.inside.kind == "string"
    is_aligned = text.lstrip().startswith(around.marks.comments)  # a comment after code
    return text.lstrip(" \t") if is_joint and not is_string and not is_aligned else text


def without_extra_indent(around: CursorSurroundings, text: str) -> str:
    """Return the text with its first line no deeper than the line above allows; its other lines move along.

    A model often writes the whole indentation again after an indented cursor.
    """
    blanks = leading_blanks(text)
    prefix = around.line_prefix
    is_copy = around.is_blank_line and bool(prefix) and bool(blanks) and blanks.startswith(prefix)
    if not is_copy or around.is_text or text[len(blanks) :].startswith("\n"):
        return text
    if around.stack and around.stack[-1].mark in ("(", "["):
        return text
    above = re.sub(r"\s+#.*", "", around.lines_above[-1]) if around.lines_above else ""
    dashes = DASHES.match(above) if "data" in around.marks.traits else None
    allowed = (dashes.end() if dashes else indent_width(above)) + indent_unit(around) * opens_block(above)
    kept = blanks
    while kept and indent_width(prefix + kept) > max(allowed, around.indent):
        kept = kept[:-1]
    first, *lines = text[len(blanks) :].split("\n")
    old, new = prefix + blanks, prefix + kept
    if old == new or any(line.strip() and not line.startswith(old) for line in lines):
        return kept + text[len(blanks) :]
    return kept + "\n".join([first, *(new + line[len(old) :] if line.strip() else line for line in lines)])


def indent_unit(around: CursorSurroundings) -> int:
    """The columns of one step of indentation: the most common one before the cursor."""
    widths = [indent_width(line) for line in around.lines_above[-100:]]
    steps = Counter(b - a for a, b in pairwise(widths) if 0 < b - a <= 8)
    num_deeper = around.indent - (widths[-1] if widths else 0)
    return steps.most_common(1)[0][0] if steps else num_deeper if 0 < num_deeper <= 8 else TAB_WIDTH


def with_document_indent(around: CursorSurroundings, text: str, lines: list[Line]) -> str:
    """Return the text indented with tabs or spaces, whichever the document uses more."""
    if around.is_text or not re.search(r"^[ \t]", text, re.MULTILINE):
        return text
    is_code = [around.is_blank_line, *(line.inside is None for line in lines)]
    split = text.split("\n")
    blanks = [
        leading_blanks(line) if code and line.strip() else ""
        for line, code in zip(split, is_code, strict=False)
    ]
    if "tabs" in around.marks.traits:
        new = [_recipe_indent(around, split, index, old) for index, old in enumerate(blanks)]
    elif (uses_tabs := _uses_tabs(around)) is None:
        return text
    elif uses_tabs:
        widths = [len(blank) for blank in blanks if blank]
        unit = next((unit for unit in (TAB_WIDTH, 2) if all(width % unit == 0 for width in widths)), 0)
        new = [blank.replace(" " * unit, "\t") if unit and "\t" not in blank else blank for blank in blanks]
    else:
        new = [blank.replace("\t", " " * indent_unit(around)) for blank in blanks]
    return "\n".join(to + line[len(old) :] for line, old, to in zip(split, blanks, new, strict=True))


def _recipe_indent(around: CursorSurroundings, lines: list[str], index: int, old: str) -> str:
    above = [*([around.line_prefix + lines[0], *lines[1:]][:index] or around.lines_above[-1:])]
    if not old or "\t" in old or (index == 0 and around.line_prefix):
        return old
    is_recipe = bool(above) and (above[-1].startswith(("\t", "    ")) or _RULE.match(above[-1]) is not None)
    return "\t" if is_recipe else old


def _uses_tabs(around: CursorSurroundings) -> bool | None:
    lines = (around.before + around.after).split("\n")
    num_tabs = sum(line.startswith("\t") for line in lines)
    num_spaces = sum(line.startswith("  ") for line in lines)
    if not num_tabs and not num_spaces:
        return True if around.language in ("go", "templ") else None
    is_mixed = min(num_tabs, num_spaces) * 10 > max(num_tabs, num_spaces)
    return None if is_mixed else num_tabs > num_spaces


def without_trailing_blanks(around: CursorSurroundings, text: str, lines: list[Line]) -> str:
    """Return the text without blanks at the ends of lines and blank lines at its end.

    Blanks in strings and the two of a line break in prose are content. A blank before the rest of the line
    is kept.
    """
    kept = []
    for line in lines:
        content = text[line.start : line.end]
        is_string = line.inside is not None and line.inside.kind == "string"
        is_break = around.marks.is_prose and content.strip() and content.endswith("  ") and line.is_ended
        kept.append(content if is_string else content.rstrip() + "  " * bool(is_break))
    stripped = "\n".join(kept).rstrip()
    rest = around.rest[:1]
    is_apart = rest.strip() and rest not in "$*_~`" and "\n" not in text and text[-1:] == " " and stripped
    return stripped + " " * bool(is_apart and (around.cursor.has_rest_of_line or around.kind == "string"))


def decodable(text: str) -> str:
    """Return the text up to the first incomplete character or replacement character."""
    match = _UNDECODABLE.search(text)
    return text[: match.start()] if match else text


def without_controls(text: str) -> str:
    """Return the text without control, bidirectional and invisible characters; `\r\n` becomes `\n`.

    A terminal sequence is removed as a whole. Up to one joiner or variation selector in a row is kept where
    it shapes a letter or a sign with variants.
    """
    if not _MAYBE_UNSAFE.search(text):
        return text
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = _MAYBE_UNSAFE.sub(lambda match: "" if _is_unsafe(match[0]) else match[0], text)
    text = _SELECTORS.sub(_fitting_selector, text)
    return _JOINER_RUNS.sub(_fitting_joiner, text)


@lru_cache(maxsize=1024)
def _is_unsafe(char: str) -> bool:
    if char in _JOINERS:
        return False
    kind, code = unicodedata.category(char), ord(char)
    # A character that this Python does not know may be a new emoji, unless Unicode reserves it as invisible.
    is_never_seen = kind == "Cn" and (code & 0xFFFE == 0xFFFE or any(code in run for run in _RESERVED))
    return kind in ("Cc", "Cf", "Cs") or is_never_seen or char in _LINE_SEPARATORS or char in _UNSEEN


def _fitting_selector(match: re.Match[str]) -> str:
    """Return the first of a run of variation selectors if the character beside it may have variants."""
    first = match[0][0]
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    kind = unicodedata.category(before) if before else ""
    if first in _SHORT_SELECTORS:
        is_sign = kind in ("So", "Sm", "Sk", "Po", "Cn") and not before.isascii()
        return first if is_sign or after == _KEYCAP or (before and before in _LETTERS_WITH_VARIANTS) else ""
    return first if kind == "Lo" else ""


def _fitting_joiner(match: re.Match[str]) -> str:
    """Return one joiner of a run between two characters that are not ASCII; empty elsewhere."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    is_between = bool(before and after) and not before.isascii() and not after.isascii()
    return match[0][0] if is_between and not before.isspace() and not after.isspace() else ""
