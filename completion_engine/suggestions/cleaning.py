"""Cleaning rules: indentation, blanks, doubled marks, and the joint with the text before the cursor.

Each function takes text and returns text; text that needs no cleaning is returned unchanged.
"""

from __future__ import annotations

import re

from completion_engine.languages.modes import reach_of
from completion_engine.languages.open_marks import CLOSING, SYMMETRIC, Open, text_at
from completion_engine.suggestions.regions import CursorRegion, first_word
from completion_engine.text_window import TAB_WIDTH, indent_width, leading_blanks

_MAX_BRACED_CHARS = 400
_INDENTS = re.compile(r"^[ \t]", re.MULTILINE)
_SIGN = re.compile(r"[^\w\s]|\s")
_SEPARATORS = (",", ";", "|")
_RULE = re.compile(r"[^\s#:=][^#:=]*::?(?![:=])")  # rule of a makefile
_MAX_RECIPE_LINES = 40
MIN_ECHO_CHARS = 8
MAX_ECHO_CHARS = 1_000


def without_echo(region: CursorRegion, text: str) -> str:
    """Return the text without a copy, at its start, of the text left of the cursor on its line.

    A whole row of data, a row without its next item, and repeated text are kept, because data repeats itself.
    """
    typed = region.line_prefix.strip()
    if not MIN_ECHO_CHARS <= len(typed) <= MAX_ECHO_CHARS or not _SIGN.search(typed):
        return text
    stripped = text.lstrip()
    rest = stripped[len(typed) :]
    if not stripped.startswith(typed) or rest.lstrip().startswith(typed):
        return text
    return text if typed.endswith(_SEPARATORS) or _is_row(typed) else rest


def without_doubled_brace(region: CursorRegion, text: str) -> str:
    """Return the text without a brace that opens again what the cursor's brace has opened: `${` and then `{`.

    In a string or among elements, the second brace would turn the expression into data or an escaped brace.
    Attributes may hold data.
    """
    entry = region.stack[-1] if region.stack else None
    if entry is None or not text.startswith("{") or entry.start != -len(entry.mark):
        return text
    if entry.mark not in ("{", "${", "#{") or entry.is_text:
        return text
    around = region.stack[-2] if len(region.stack) > 1 else None
    is_among_text = around is not None and (around.is_text or around.is_element)
    return _without_outer_brace(text) if is_among_text else text


def without_doubled_mark(region: CursorRegion, text: str) -> str:
    """Return the text without a mark of prose that the cursor is already between: `*` and then `*not**`."""
    mark = region.line_prefix[-1:]
    is_between = mark and mark in SYMMETRIC and region.line_suffix.startswith(mark)
    is_doubled = is_between and region.language.is_marked and text.startswith(mark)
    return text.lstrip(mark).partition(mark)[0] if is_doubled else text


def _without_outer_brace(text: str) -> str:
    """Return the text without its first brace and without the brace that closes it."""
    depth = 0
    for at, char in enumerate(text[:_MAX_BRACED_CHARS]):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if not depth:
            return text[1:at] + text[at + 1 :]
    return text[1:]


def _is_row(text: str) -> bool:
    """Return whether a text is the same string repeated at least twice."""
    return any(text[period:] == text[:-period] for period in range(1, len(text) // 2 + 1))


def without_double_blank(region: CursorRegion, text: str) -> str:
    """Return the text without blanks at its start if one blank is before the cursor already.

    After several blanks the line is aligned with others, and the blanks are kept.
    """
    is_joint = not region.is_blank_line and region.line_prefix[-1:] in (" ", "\t")
    if region.line_prefix[-2:].isspace():
        return text
    inside = region.inside
    is_quoted = inside is not None and not inside.is_comment and inside.pair.ends_with_line
    return text.lstrip(" \t") if is_joint and not is_quoted else text


def without_extra_indent(region: CursorRegion, text: str) -> str:
    """Return the text with its first line indented no deeper than the line above allows.

    This applies if the model writes the whole indentation again after an indented cursor. Indentation beyond
    that is kept. Lines below that stand in the same column move with it.
    """
    blanks = leading_blanks(text)
    is_code = not region.inside and region.language.blocks in ("indent", "brace", "end")
    is_copy = region.is_blank_line and bool(region.line_prefix) and blanks.startswith(region.line_prefix)
    if not is_copy or not is_code or text[len(blanks) :].startswith("\n"):
        return text
    if region.stack and region.stack[-1].mark in ("(", "["):
        return text
    allowed = max(_indent_below(region, region.code_above()), region.indent)
    kept = blanks
    while kept and indent_width(region.line_prefix + kept) > allowed:
        kept = kept[:-1]
    return kept + _moved(text[len(blanks) :], region.line_prefix + blanks, region.line_prefix + kept)


def _moved(text: str, indent: str, to: str) -> str:
    """Return the text with each line's `indent` replaced; unchanged if one of its lines has less."""
    first, *lines = text.split("\n")
    if indent == to or any(line.strip() and not line.startswith(indent) for line in lines):
        return text
    return "\n".join([first, *(to + line[len(indent) :] if line.strip() else line for line in lines)])


def _indent_below(region: CursorRegion, code: str) -> int:
    """Return the deepest indentation of a line after a line of code."""
    begins_block = code.endswith(("{", "(", "[", ":")) or region.language.opener.search(code) is not None
    return region.item_indent(code) + region.indent_unit * begins_block


def with_editor_indent(region: CursorRegion, text: str) -> str:
    """Return the text indented with tabs or spaces, whichever the document uses more.

    Lines that begin inside a string or comment are kept. In a makefile, only the lines of recipes get tabs.
    """
    if region.language.is_text or region.inside:
        return text
    if region.language.has_fixed_indents:
        return _with_recipe_tabs(region, text)
    uses_tabs = _uses_tabs(region)
    if uses_tabs is None or not _INDENTS.search(text):
        return text
    is_code = [not line.inside for line in region.read(text).lines]
    is_code[0] = region.is_blank_line
    lines = text.split("\n")
    blanks = [
        leading_blanks(line) if is_code and line.strip() else ""
        for line, is_code in zip(lines, is_code, strict=True)
    ]
    if uses_tabs:
        unit = _unit_of([indent for indent in blanks if indent])
        fit = [indent.replace(" " * unit, "\t") if unit else indent for indent in blanks]
    else:
        fit = [indent.replace("\t", " " * region.indent_unit) for indent in blanks]
    return "\n".join(new + line[len(old) :] for line, old, new in zip(lines, blanks, fit, strict=True))


def _with_recipe_tabs(region: CursorRegion, text: str) -> str:
    """Return a makefile's text with tabs instead of spaces before the lines of recipes."""
    above = region.before[: len(region.before) - len(region.line_prefix)].rstrip("\n").split("\n")
    is_recipe = _is_recipe(above)
    lines = text.split("\n")
    previous = ""
    unit = _unit_of([blanks for line in lines if (blanks := leading_blanks(line))]) or TAB_WIDTH
    for index, line in enumerate(lines):
        if index:
            is_recipe = _goes_on_as_recipe(previous, is_recipe=is_recipe)
        blanks = leading_blanks(line)
        is_whole = index > 0 or not region.line_prefix
        if is_whole and is_recipe and blanks.startswith(" ") and line.strip():
            lines[index] = "\t" * max(1, len(blanks.expandtabs(unit)) // unit) + line[len(blanks) :]
        previous = lines[index] if index else region.line_prefix + lines[index]
    return "\n".join(lines)


def _is_recipe(lines: list[str]) -> bool:
    """Return whether a line after `lines` belongs to a recipe of a makefile."""
    is_recipe = False
    for line in lines[-_MAX_RECIPE_LINES:]:
        is_recipe = _goes_on_as_recipe(line, is_recipe=is_recipe)
    return is_recipe


def _goes_on_as_recipe(line: str, *, is_recipe: bool) -> bool:
    """Return whether the line after `line` belongs to a recipe; `is_recipe` is whether `line` does."""
    if line.startswith("\t"):
        return True
    return is_recipe if line.endswith("\\") else _RULE.match(line) is not None


def _unit_of(indents: list[str]) -> int:
    """Return the number of spaces per tab for indentation to be written with tabs; 0 if there is none."""
    widths = [len(indent) for indent in indents if " " in indent]
    if any("\t" in indent and " " in indent for indent in indents):
        return 0
    return next((unit for unit in (TAB_WIDTH, 2) if all(width % unit == 0 for width in widths)), 0)


def _uses_tabs(region: CursorRegion) -> bool | None:
    lines = (region.before + region.after).split("\n")
    num_tabs = sum(line.startswith("\t") for line in lines)
    num_spaces = sum(line.startswith("  ") for line in lines)
    if not num_tabs and not num_spaces:
        return True if region.language.indents_with_tabs else None
    is_mixed = min(num_tabs, num_spaces) * 10 > max(num_tabs, num_spaces)
    return None if is_mixed else num_tabs > num_spaces


def without_trailing_blanks(region: CursorRegion, text: str) -> str:
    """Return the text without blanks at the ends of lines of code, and without blank lines at its end.

    Blanks in strings are content, and two blanks in prose break a line, so both are kept. One space is kept
    before a rest of the line that begins without one, also before closing marks alone in a string, or if
    the pair begins with a space: `{ x }`.
    """
    lines = zip(text.split("\n"), region.read(text).lines, strict=True)
    stripped = "\n".join(
        _without_end_blanks(region, line, found.inside_end) for line, found in lines
    ).rstrip()
    rest = region.line_suffix
    needs_space = bool(rest.strip()) and not rest[0].isspace()
    is_in_string = region.inside is not None and not region.inside.is_comment
    is_shown = region.cursor.has_rest_of_line or is_in_string or _begins_with_blank(region, text)
    if needs_space and is_shown and stripped and "\n" not in text and text[-1:] == " ":
        return stripped + " "
    return stripped


def _begins_with_blank(region: CursorRegion, text: str) -> bool:
    """Return whether the innermost pair begins with a space."""
    entry = region.stack[-1] if region.stack else None
    return entry is not None and (region.before[entry.start :] + text)[len(entry.mark) :][:1] == " "


def _without_end_blanks(region: CursorRegion, line: str, inside_end: Open | None) -> str:
    if inside_end and not inside_end.is_comment:
        return line
    stripped = line.rstrip()
    is_break = region.language.is_text and stripped and line.endswith("  ")
    return stripped + "  " if is_break else stripped


def without_open_part(region: CursorRegion, text: str) -> str:
    """Return the text up to an embedded part that it begins and that neither it nor the text after the cursor
    ends.

    In prose such a part begins with a line such as `$$`, and all following text would belong to it.
    """
    if not region.language.is_text:
        return text
    for entry in region.read(text).stack:
        is_part = entry.start >= 0 and entry.pair.kind == "region" and not entry.pair.ends_with_line
        if is_part and not _ends_below(region, entry):
            return text[: entry.start].rstrip()
    return text


def _ends_below(region: CursorRegion, entry: Open) -> bool:
    return reach_of(entry.pair, entry.tag).end_in(region.after + "\n", 0)[1] >= 0


def without_last_separator(region: CursorRegion, text: str) -> str:
    """Return the text without a final separator that may not stand before the closing mark below it."""
    below, language = region.lines_below[:1], region.language
    if not below or not text or text[-1] not in language.separators or region.line_suffix.strip(')]}"'):
        return text
    first = first_word(below[0], is_ended=True)
    is_last = first in CLOSING or first in language.closers
    return text[:-1] if is_last and not text_at(region.read(text).stack) else text
