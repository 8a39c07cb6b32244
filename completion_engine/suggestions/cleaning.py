"""Owns how text is made fit for the editor: characters, indentation, blanks, the joint with the prefix.

Every function takes and returns text and changes nothing on text that is fit already.
"""

from __future__ import annotations

import re

from completion_engine.suggestions.cursor_context import TAB_WIDTH, indent_width, leading_blanks
from completion_engine.suggestions.site import Site

_UNDECODABLE = re.compile("[\ufffd\ud800-\udfff]")
_INDENTS = re.compile(r"^[ \t]", re.MULTILINE)
_DASHES = re.compile(r"[ ]*(?:- +)+")
_SIGN = re.compile(r"[^\w\s]|\s")
_SEPARATORS = (",", ";", "|")
MIN_ECHO_CHARS = 8
MAX_ECHO_CHARS = 1_000


def decodable(text: str) -> str:
    """The text up to the first half of a character or sign of failed decoding."""
    match = _UNDECODABLE.search(text)
    return text[: match.start()] if match else text


def without_echo(site: Site, text: str) -> str:
    """The text without a copy, at its start, of what stands left of the cursor on its line.

    Data repeats itself: what is a row already, waits for its next item or is written twice again is no echo.
    """
    typed = site.line_prefix.strip()
    if not MIN_ECHO_CHARS <= len(typed) <= MAX_ECHO_CHARS or not _SIGN.search(typed):
        return text
    stripped = text.lstrip()
    rest = stripped[len(typed) :]
    if not stripped.startswith(typed) or rest.lstrip().startswith(typed):
        return text
    return text if typed.endswith(_SEPARATORS) or _is_row(typed) else rest


def _is_row(text: str) -> bool:
    """Whether a text is the same over and over, twice at least."""
    return any(text[period:] == text[:-period] for period in range(1, len(text) // 2 + 1))


def without_double_blank(site: Site, text: str) -> str:
    """The text without blanks at its start where the cursor stands behind one already.

    Behind several the line is aligned with others, and more of them are meant.
    """
    is_joint = not site.is_blank_line and site.line_prefix[-1:] in (" ", "\t")
    if site.line_prefix[-2:].isspace():
        return text
    quote = site.inside in site.scanner.quotes and not site.scanner.is_text(site.inside)
    return text.lstrip(" \t") if is_joint and not quote else text


def without_extra_indent(site: Site, text: str) -> str:
    """The text with its first line indented no deeper than the line above allows.

    Only where a model writes the whole indentation again behind a cursor that is indented already: what it
    adds to that is meant.
    """
    blanks = leading_blanks(text)
    is_code = not site.inside and site.language.blocks in ("indent", "brace", "end")
    is_copy = site.is_blank_line and bool(site.line_prefix) and blanks.startswith(site.line_prefix)
    if not is_copy or not is_code or text[len(blanks) :].startswith("\n"):
        return text
    if site.stack and site.stack[-1].mark in ("(", "["):
        return text
    allowed = max(_indent_below(site, site.code_above()), site.indent)
    while blanks and indent_width(site.line_prefix + blanks) > allowed:
        blanks = blanks[:-1]
    return blanks + text[len(leading_blanks(text)) :]


def _indent_below(site: Site, code: str) -> int:
    """The deepest that a line may be indented below a line of code."""
    dashes = _DASHES.match(code) if site.language.has_dashes else None
    begins_block = code.endswith(("{", "(", "[", ":")) or site.language.opener.search(code) is not None
    return (dashes.end() if dashes else indent_width(code)) + site.indent_unit * begins_block


def with_editor_indent(site: Site, text: str) -> str:
    """The text indented as the document is, with tabs or spaces, whichever it uses more.

    Lines that begin inside a string or comment stay as they are, and all where tabs and spaces differ.
    """
    if site.language.blocks == "text" or site.language.has_fixed_indents or site.inside:
        return text
    uses_tabs = _uses_tabs(site)
    if uses_tabs is None or not _INDENTS.search(text):
        return text
    is_code = [not line.inside for line in site.read(text).lines]
    is_code[0] = site.is_blank_line
    lines = text.split("\n")
    blanks = [
        leading_blanks(line) if is_code and line.strip() else ""
        for line, is_code in zip(lines, is_code, strict=True)
    ]
    if uses_tabs:
        unit = _unit_of([indent for indent in blanks if indent])
        fit = [indent.replace(" " * unit, "\t") if unit else indent for indent in blanks]
    else:
        fit = [indent.replace("\t", " " * site.indent_unit) for indent in blanks]
    return "\n".join(new + line[len(old) :] for line, old, new in zip(lines, blanks, fit, strict=True))


def _unit_of(indents: list[str]) -> int:
    """How many spaces stand for a tab in indentation that is to be written with tabs; 0 if none do."""
    widths = [len(indent) for indent in indents if " " in indent]
    if any("\t" in indent and " " in indent for indent in indents):
        return 0
    return next((unit for unit in (TAB_WIDTH, 2) if all(width % unit == 0 for width in widths)), 0)


def _uses_tabs(site: Site) -> bool | None:
    lines = (site.before + site.after).split("\n")
    num_tabs = sum(line.startswith("\t") for line in lines)
    num_spaces = sum(line.startswith("  ") for line in lines)
    if not num_tabs and not num_spaces:
        return True if site.language.indents_with_tabs else None
    is_mixed = min(num_tabs, num_spaces) * 10 > max(num_tabs, num_spaces)
    return None if is_mixed else num_tabs > num_spaces


def without_trailing_blanks(site: Site, text: str) -> str:
    """The text without blanks at the ends of lines of code, and blank lines at its end.

    In strings they are content, in prose two of them break the line. One space stays in front of a rest
    of the line that begins without one.
    """
    lines = zip(text.split("\n"), site.read(text).lines, strict=True)
    stripped = "\n".join(_without_end_blanks(site, line, found.inside_end) for line, found in lines).rstrip()
    needs_space = site.cursor.has_rest_of_line and not site.line_suffix[0].isspace()
    if needs_space and stripped and "\n" not in text and text[-1:] == " ":
        return stripped + " "
    return stripped


def _without_end_blanks(site: Site, line: str, inside_end: str) -> str:
    if inside_end in site.scanner.quotes:
        return line
    stripped = line.rstrip()
    is_break = site.language.blocks == "text" and stripped and line.endswith("  ")
    return stripped + "  " if is_break else stripped
