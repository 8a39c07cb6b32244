"""Markup and templates, which hold other languages."""

from __future__ import annotations

import re
from dataclasses import replace

from completion_engine.languages.syntax import (
    Language,
    Markup,
    Pair,
    block_comment,
    code_in,
    line_comment,
    region,
)
from completion_engine.languages.texts import FRONT_MATTER, NO_DEEPER
from completion_engine.languages.web import JSX

_VOID_NAMES = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
_VOID = frozenset({*_VOID_NAMES.split("|"), "!doctype"})
_RAW = {"script": "javascript", "style": "css", "textarea": "plaintext"}
_TAG = Pair(r"<(?P<tag>[A-Za-z!][\w:.-]*)", kind="tag")
_COMMENT = block_comment("<!--", "-->")
_OPENER = re.compile(rf"<(?!(?:{_VOID_NAMES})\b)[A-Za-z][\w:.-]*(?:\s[^<>]*)?(?<!/)>$")


def _comment(opens: str, closes: str) -> Pair:
    return Pair(opens, closes, "comment", is_multiline=True)


PHP_CODE = region(r"<\?(?:php\b|=)?", "", "php-code")
_RUBY_CODE = region(r"<%(?!%)[-=]?", r"-?%>", "ruby")
_JINJA = (
    _comment(r"\{#", r"#\}"),
    region(r"\{\{-?", r"-?\}\}", "expression"),
    region(r"\{%[-+]?", r"[-+]?%\}", "expression"),
)
HTML = Language(
    blocks="tag",
    pairs=(
        _COMMENT,
        PHP_CODE,
        _comment("<%--", "--%>"),
        region(r"<%(?!%)[-=#@!]?", r"-?%>", "expression"),
        *_JINJA,
        _TAG,
    ),
    brackets="",
    markup=Markup(_RAW, _VOID),
    opener=_OPENER,
    word_marks="_-",
)
XML = replace(
    HTML,
    pairs=(
        _COMMENT,
        region(r"<!\[CDATA\[", r"\]\]>", "plaintext"),
        Pair(r"<\?", r"\?>", "comment", is_multiline=True),
        _TAG,
    ),
    markup=Markup({}, frozenset({"!doctype", "!element", "!attlist", "!entity"})),
)
_DIRECTIVE = replace(
    region(r'(?<=\s)(?:v-|[:@\#])[\w:.\[\]-]*="', '"', "typescript"), first="v:@#"
)  # its value is an expression
VUE = replace(
    HTML,
    pairs=(_COMMENT, region(r"\{\{", r"\}\}", "typescript"), _TAG),
    markup=Markup(_RAW, _VOID, attributes=(_DIRECTIVE,)),
)
SVELTE_EXPRESSION = replace(JSX, skipped=(r"(?<=\{)[#/:@]\w+",))
SVELTE = replace(VUE, pairs=(_COMMENT, _TAG), markup=Markup(_RAW, _VOID, braces="svelte-expression"))
ASTRO = replace(
    SVELTE,
    pairs=(replace(FRONT_MATTER[0], holds="typescript"), _COMMENT, _TAG),
    markup=Markup(_RAW, _VOID, braces="javascriptreact"),
)
PHP = replace(HTML, pairs=(_COMMENT, PHP_CODE, _TAG), lone="php-code")
BLADE = replace(
    HTML,
    pairs=(
        _COMMENT,
        PHP_CODE,
        _comment(r"\{\{--", r"--\}\}"),
        region(r"\{!!", r"!!\}", "expression"),
        region(r"\{\{", r"\}\}", "expression"),
        _TAG,
    ),
)
JINJA = replace(HTML, pairs=(_COMMENT, *FRONT_MATTER, *_JINJA, _TAG))
ERB = replace(HTML, pairs=(_COMMENT, _comment("<%#", "%>"), _RUBY_CODE, _TAG))
EJS = replace(ERB, pairs=(_COMMENT, _comment("<%#", "%>"), replace(_RUBY_CODE, holds="javascript"), _TAG))
HANDLEBARS = replace(
    HTML,
    pairs=(
        _COMMENT,
        _comment(r"\{\{!--", r"--\}\}"),
        _comment(r"\{\{!", r"\}\}"),
        region(r"\{\{\{", r"\}\}\}", "expression"),
        region(r"\{\{~?", r"~?\}\}", "expression"),
        _TAG,
    ),
)
GO_TEMPLATE = replace(
    HTML,
    pairs=(
        _COMMENT,
        _comment(r"\{\{-?[ ]?/\*", r"\*/[ ]?-?\}\}"),
        region(r"\{\{-?", r"-?\}\}", "expression"),
        _TAG,
    ),
)
HEEX = replace(
    HTML,
    pairs=(
        _COMMENT,
        _comment("<%#", "%>"),
        _comment("<%!--", "--%>"),
        replace(_RUBY_CODE, holds="elixir"),
        _TAG,
    ),
    markup=Markup(_RAW, _VOID, braces="elixir"),
)
RAZOR = replace(
    HTML,
    pairs=(
        _COMMENT,
        _comment(r"@\*", r"\*@"),
        code_in("@{", "}", "csharp"),
        _TAG,
    ),
)
SMARTY = replace(
    HTML,
    pairs=(_COMMENT, _comment(r"\{\*", r"\*\}"), region(r"\{(?=[$/\w])", r"\}", "expression"), _TAG),
)


def _indented(opens: str, holds: str) -> Pair:
    return region(rf"^(?P<indent>[ \t]*){opens}[ \t]*(?=\n)", NO_DEEPER, holds, begins_below=True)


PUG = Language(
    blocks="indent",
    pairs=(
        line_comment(r"^[ \t]*//-?"),
        _indented(r"script(?:\([^)\n]*\))?\.", "javascript"),
        _indented(r"style(?:\([^)\n]*\))?\.", "css"),
        _indented(r":(?P<lang>\w+)", "<lang>"),
        _indented(r"(?P<lang>javascript|coffee|css|scss|sass|markdown|ruby):", "<lang>"),
        code_in("#{", "}", "ruby"),
    ),
    brackets="()",
    word_marks="_-",
)
SASS = Language(
    blocks="indent", pairs=(line_comment(r"(?<!:)//"), block_comment("/*", "*/")), word_marks="_-$@"
)

BY_IDENTIFIER: dict[str, Language] = {
    **dict.fromkeys(("html", "jsp"), HTML),
    **dict.fromkeys(("xml", "xsl"), XML),
    **dict.fromkeys(("jinja", "liquid"), JINJA),
    **dict.fromkeys(("pug", "haml", "slim"), PUG),
    "vue": VUE,
    "svelte": SVELTE,
    "svelte-expression": SVELTE_EXPRESSION,
    "astro": ASTRO,
    "php": PHP,
    "blade": BLADE,
    "erb": ERB,
    "ejs": EJS,
    "handlebars": HANDLEBARS,
    "go-template": GO_TEMPLATE,
    "heex": HEEX,
    "razor": RAZOR,
    "smarty": SMARTY,
    "sass": SASS,
}
