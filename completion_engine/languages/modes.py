"""The marks that a scan searches in each state, made of a language's table once.

Does not depend on the scan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from completion_engine.languages.identifiers import IDENTIFIERS
from completion_engine.languages.marks import (
    Action,
    Mode,
    ModeBuilder,
    end_of_group,
    end_with_tag,
    first_chars,
)
from completion_engine.languages.syntax import Language, Markup, Pair, code_in, region
from completion_engine.languages.table import identifier_of, language_of

_ATTRIBUTE = re.compile(r"""\b(lang|type)\s*=\s*["']?(?:text/|application/)?(?:x-)?([\w+.-]+)""")
_SCRIPT_TYPES = {
    "module": "javascript", "ecmascript": "javascript", "babel": "javascriptreact", "ld+json": "json",
    "importmap": "json", "speculationrules": "json", "template": "html", "handlebars-template": "handlebars",
}  # fmt: skip
_BRACKET = {mark: code_in(mark, end) for mark, end in ("()", "[]", "{}")}
_code_in = lru_cache(maxsize=16)(code_in)  # one pair for each language, since pairs compare by identity
_MAX_WIDTH = 200
_TEMPLATE_MARK = re.compile(r"\\.|\$\{|[`{}]", re.DOTALL)
_MAX_TEMPLATES = 64  # in each other, with the braces in them
_END_TAG = r"</([A-Za-z_$][\w:.$-]*)?\s*>"


@dataclass(frozen=True, slots=True)
class Reach:
    """The end of a part in another language: a match of `pattern` with `tag` in it.

    `literal` is the text that the end begins with.
    """

    pattern: re.Pattern[str]
    literal: str
    pair: Pair
    tag: str

    def end_in(self, text: str, position: int, limit: int | None = None) -> tuple[int, int]:
        """The span of the end, between a position and `limit`.

        Without one, the limit and -1. At the end of the text that is where an end may have begun.
        """
        limit = len(text) if limit is None else limit
        if self.pair.is_template:
            start = _end_of_template(text, position, limit)
            return (start, start + 1) if start >= 0 else (limit, -1)
        while (match := self.pattern.search(text, position, limit)) is not None:
            end = end_with_tag(match, "end", self.tag, self.pair) if self.tag else match.end()
            if end >= 0:
                return match.start(), end
            position = match.start() + 1
        if limit < len(text):
            return limit, -1
        longest = min(len(self.literal), len(text))
        held = next((size for size in range(longest, 0, -1) if text.endswith(self.literal[:size])), 0)
        return len(text) - held, -1


def _end_of_template(text: str, position: int, limit: int) -> int:
    """Return the offset of the backtick that ends a template, past the code in it; -1 without one."""
    opened: list[str] = []
    for mark in _TEMPLATE_MARK.finditer(text, position, limit):
        found, around = mark[0], opened[-1] if opened else "`"
        if found == "`" and not opened:
            return mark.start()
        if (found, around) in (("`", "`"), ("}", "${"), ("}", "{")):
            opened.pop()
        elif (found == "${" and around == "`") or (found in ("`", "{") and around != "`"):
            opened.append(found)
        if len(opened) > _MAX_TEMPLATES:
            break
    return -1


@lru_cache(maxsize=512)
def reach_of(pair: Pair, tag: str) -> Reach:
    """The end of a part that a mark of `pair` opened."""
    is_indented = "<width>" in pair.closes
    width = min(_MAX_WIDTH, len(tag.expandtabs(4))) if is_indented else 0
    literal = _literal(pair.closes.replace("<tag>", re.escape(tag)))
    return Reach(_reach_pattern(pair, width), literal, pair, tag if "<tag>" in pair.closes else "")


@lru_cache(maxsize=512)
def _reach_pattern(pair: Pair, width: int) -> re.Pattern[str]:
    """One expression for all tags, so that a text with many tags compiles one."""
    return re.compile(closing_expression(pair).replace("<width>", str(width)) or "(?!)", re.MULTILINE)


def closing_expression(pair: Pair) -> str:
    """Return the expression of a closing mark; its group `end` is the tag that it must repeat."""
    if "<tag>" not in pair.closes:
        return pair.closes
    start = pair.opens.index("(?P<tag>")
    tag = pair.opens[start + len("(?P<tag>") : end_of_group(pair.opens, start) - 1]
    return pair.closes.replace("<tag>", f"(?P<end>{tag})")


def _literal(expression: str) -> str:
    """The fixed text at the beginning of an expression, as far as that is easy to see."""
    plain = re.sub(r"^\(\?i:|\^|\(\?=.*|\[[^\]]*\]\*|.\?|\\s\*|\[[^\]]*\]\?|\|.*", "", expression)
    return re.sub(r"\\(.)", r"\1", plain)


@lru_cache(maxsize=64)
def _raw_pair(name: str, default: str, host: str) -> Pair:
    """The content of an element; a template language may write parts of it too."""
    pair = region("", rf"(?i:</{re.escape(name)})\s*>", default)
    return replace(pair, inner=_templates(language_of(host)))


def _templates(language: Language) -> tuple[Pair, ...]:
    return tuple(pair for pair in language.pairs if pair.kind == "region" and not pair.begins_below)


def raw_element(name: str, default: str, tag: str, host: str) -> tuple[Pair, str]:
    """The content of an element of `host` that holds no markup: its pair, and the language its tag names."""
    pair = _raw_pair(name.lower(), default, host)
    for attribute, value in _ATTRIBUTE.findall(tag):
        found = _SCRIPT_TYPES.get(value) or identifier_of(value.lower())
        if found in IDENTIFIERS:
            return pair, found
        if attribute == "type":
            return pair, "plaintext"
    return pair, default


@lru_cache(maxsize=1024)
def mode_of(  # noqa: PLR0913 - where the scan is, and two independent shortcuts
    name: str,
    pair: Pair | None,
    templates: tuple[Pair, ...] = (),
    *,
    is_quick: bool = False,
    finds_lines: bool = True,
    skips_leaves: bool = False,
) -> Mode:
    """The patterns of a language, inside a part that `pair` opened, if any; `templates` open parts anywhere.

    With `skips_leaves` one match passes over an element or attribute that opens and closes on its line.
    """
    language = language_of(name)
    kind = pair.kind if pair else "region"
    if skips_leaves and (kind in ("string", "comment", "nested-element") or not _has_leaves(language)):
        return mode_of(name, pair, templates, is_quick=is_quick, finds_lines=finds_lines)
    builder = ModeBuilder()
    for template in templates:
        builder.add_pair(template)
    if pair is not None and kind in ("string", "comment"):
        _add_text(builder, language, pair)
    elif pair is not None and kind == "tag":
        _add_tag(builder, language, skips_leaves=skips_leaves)
    elif kind == "nested-element":
        _add_nested_text(builder, language)
    else:
        if skips_leaves and language.markup:
            around = mode_of(name, pair, templates, is_quick=is_quick, finds_lines=finds_lines)
            builder.add(_leaf(language.markup, around.first.pattern), Action.SKIP, first="<")
        _add_code(builder, language, pair, is_quick and kind == "region")
    if finds_lines:
        builder.add("\n", Action.NEWLINE)
    return builder.mode()


def _add_text(builder: ModeBuilder, language: Language, pair: Pair) -> None:
    for expression in pair.escapes:
        builder.add(expression, Action.SKIP)
    if pair.closes:
        builder.add(closing_expression(pair), Action.CLOSE)
    elif language.ends:
        builder.add(language.ends, Action.ENDS)
    for inner in pair.inner:
        builder.add_pair(inner)


def _has_leaves(language: Language) -> bool:
    """Whether its elements stand in text, not in code."""
    return language.markup is not None and not language.markup.is_nested_in_code


def _leaf(markup: Markup, chars: str) -> str:
    """An expression for an element without marks in it, on one line; `chars` is the class of all marks."""
    others = "|".join(map(re.escape, (*markup.raw, *markup.void))) or "(?!)"
    inner, value = (rf"[^{chars[1:-1]}<>\n{quote}]*+" for quote in ("", '"'))
    attributes = rf"(?:[ \t]++[\w:@.-]++(?:=\"{value}\")?+)*+[ \t]*+"
    return rf"<(?!(?i:{others})(?![\w:.$-]))(?P<tag>[A-Za-z][\w:.$-]*+){attributes}>{inner}</(?P=tag)[ \t]*+>"


def _add_tag(builder: ModeBuilder, language: Language, *, skips_leaves: bool) -> None:
    code = (*_templates(language), *_braces(language))
    if skips_leaves:
        marks = "".join(re.escape(pair.first or first_chars(pair.opens)) for pair in code)
        builder.add(rf"\"[^\"\n{marks}]*+\"", Action.SKIP)
    for pair in language.markup.attributes if language.markup else ():
        builder.add_pair(pair)
    for mark in "\"'":
        builder.add_pair(_attribute(mark, code))
    for pair in code:
        builder.add_pair(pair)
    builder.add("/>", Action.TAG_CLOSED)
    builder.add(">", Action.TAG_END)


@lru_cache(maxsize=64)
def _attribute(mark: str, inner: tuple[Pair, ...]) -> Pair:
    return Pair(mark, mark, inner=inner, is_multiline=True)


def _braces(language: Language) -> tuple[Pair, ...]:
    markup = language.markup
    return (_code_in("{", "}", markup.braces),) if markup and markup.braces is not None else ()


def _add_nested_text(builder: ModeBuilder, language: Language) -> None:
    builder.add(_END_TAG, Action.END_TAG)
    for pair in language.pairs:
        if pair.kind == "tag":
            builder.add_pair(_without_condition(pair))
    for pair in _braces(language):
        builder.add_pair(pair)
    builder.add(r"\}", Action.CLOSING)


@lru_cache(maxsize=8)
def _without_condition(pair: Pair) -> Pair:
    return Pair(pair.opens, kind="tag")


def _add_code(builder: ModeBuilder, language: Language, around: Pair | None, is_quick: bool) -> None:
    is_bracket = around is not None and around.kind == "bracket"
    if around is not None and is_bracket and around.closes not in (r"\)", r"\]", r"\}"):
        builder.add(closing_expression(around), Action.CLOSE)
    for expression in language.skipped:
        builder.add(expression, Action.SKIP)
    if language.ends:
        builder.add(language.ends, Action.ENDS)
    for pair in language.pairs:
        if is_quick and pair.kind == "tag":
            continue
        if is_quick and not (pair.is_multiline or pair.before or pair.kind == "region"):
            builder.add(_whole(pair), Action.SKIP, first=pair.first)
        else:
            builder.add_pair(pair)
    if language.markup and not is_quick:
        builder.add(_END_TAG, Action.END_TAG)
        if not language.markup.is_nested_in_code:
            for pair in _braces(language):
                builder.add_pair(pair)
    if not is_quick:
        _add_brackets(builder, language, around)


def _add_brackets(builder: ModeBuilder, language: Language, around: Pair | None) -> None:
    for mark in language.brackets[::2]:
        builder.add(re.escape(mark), Action.BRACKET, _BRACKET[mark])
    closing = language.brackets[1::2]
    if around is not None and around.kind == "bracket" and around.closes[-1:] not in closing:
        closing += around.closes[-1:] if around.closes in (r"\)", r"\]", r"\}") else ""
    if closing:
        builder.add(f"[{re.escape(closing)}]", Action.CLOSING, first=closing)


def _whole(pair: Pair) -> str:
    """An expression for all of a string or comment that ends with its line."""
    if not pair.closes:
        return rf"(?:{pair.opens})[^\n]*"
    escapes = "".join(f"{expression}|" for expression in pair.escapes)
    return rf"(?:{pair.opens})(?:{escapes}(?!{pair.closes})[^\n])*+(?:{pair.closes})?"
