"""Owns how text is made fit for the editor: characters, indentation, blanks, the joint with the prefix.

Every function takes and returns text and changes nothing on text that is fit already.
"""

from __future__ import annotations

import re

from completion_engine.suggestions.cursor_context import TAB_WIDTH, indent_width, leading_blanks
from completion_engine.suggestions.site import Site

_UNDECODABLE = re.compile("[\ufffd\ud800-\udfff]")
_BLANKS_AT_LINE_END = re.compile(r"[^\S\n]+$", re.MULTILINE)
_INDENTS = re.compile(r"^[ \t]+(?=\S)", re.MULTILINE)
_SIGN = re.compile(r"[^\w\s]|\s")
MIN_ECHO_CHARS = 8


def decodable(text: str) -> str:
    """The text up to the first half of a character or sign of failed decoding."""
    match = _UNDECODABLE.search(text)
    return text[: match.start()] if match else text


def without_echo(site: Site, text: str) -> str:
    """The text without a copy, at its start, of what stands left of the cursor on its line."""
    typed = site.line_prefix.strip()
    if len(typed) < MIN_ECHO_CHARS or not _SIGN.search(typed):
        return text
    stripped = text.lstrip()
    return stripped[len(typed) :] if stripped.startswith(typed) else text


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

    A model that writes the whole indentation again behind a cursor that is indented already would
    otherwise double it.
    """
    blanks = leading_blanks(text)
    is_code = not site.inside and site.language.blocks in ("indent", "brace", "end")
    if not blanks or not site.is_blank_line or not is_code or text[len(blanks) :].startswith("\n"):
        return text
    if site.stack and site.stack[-1].mark in ("(", "["):
        return text
    above = site.line_above()
    code = above.rstrip()
    allowed = indent_width(above)
    if code.endswith(("{", "(", "[", ":")) or site.language.opener.search(code):
        allowed += site.indent_unit
    allowed = max(allowed, site.indent)
    while blanks and indent_width(site.line_prefix + blanks) > allowed:
        blanks = blanks[:-1]
    return blanks + text[len(leading_blanks(text)) :]


def with_editor_indent(site: Site, text: str) -> str:
    """The text indented as the document is: tabs or spaces, whichever it uses more."""
    if site.language.blocks == "text" or site.inside:
        return text
    uses_tabs = _uses_tabs(site)
    if uses_tabs is None:
        return text
    first = "" if site.is_blank_line else text[: text.find("\n") + 1] if "\n" in text else text
    rest = text[len(first) :]
    indents = [indent for indent in _INDENTS.findall(rest) if indent]
    if not uses_tabs:
        unit = site.indent_unit
        return first + _INDENTS.sub(lambda match: match.group().replace("\t", " " * unit), rest)
    widths = [len(indent) for indent in indents if " " in indent]
    unit = next((unit for unit in (TAB_WIDTH, 2) if all(width % unit == 0 for width in widths)), 0)
    if not widths or not unit or any("\t" in indent and " " in indent for indent in indents):
        return text
    return first + _INDENTS.sub(lambda match: match.group().replace(" " * unit, "\t"), rest)


def _uses_tabs(site: Site) -> bool | None:
    lines = (site.before + site.after).split("\n")
    num_tabs = sum(line.startswith("\t") for line in lines)
    num_spaces = sum(line.startswith("  ") for line in lines)
    if not num_tabs and not num_spaces:
        return True if site.language.indents_with_tabs else None
    is_mixed = min(num_tabs, num_spaces) * 10 > max(num_tabs, num_spaces)
    return None if is_mixed else num_tabs > num_spaces


def without_trailing_blanks(site: Site, text: str) -> str:
    """The text without blanks at line ends and blank lines at its end.

    One space stays in front of a rest of the line that begins without one.
    """
    stripped = _BLANKS_AT_LINE_END.sub("", text).rstrip()
    needs_space = site.cursor.has_rest_of_line and not site.line_suffix[0].isspace()
    if needs_space and stripped and "\n" not in text and text[-1:] == " ":
        return stripped + " "
    return stripped
