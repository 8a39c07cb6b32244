"""Scripts, styles, queries and data of the web."""

from __future__ import annotations

import re
from dataclasses import replace

from completion_engine.languages.braces import (
    C_LIKE,
    DOLLAR_BRACE,
    PLAIN_STRINGS,
    SLASHES,
    TRIPLE,
    regex,
)
from completion_engine.languages.syntax import (
    NEVER,
    Language,
    Markup,
    Pair,
    block_comment,
    code_in,
    line_comment,
    long_string,
    region,
    string,
)

_ELEMENT_BEFORE = re.compile(r"(?:\A|[(,=:\[&|?{]|=>|\b(?:return|case|default|yield|await|else))\s*\Z")
_ARGUMENTS = r"\((?:[^()`]|\((?:[^()`]|\([^()`]*+\))*+\))*+\)"
_TYPES = r"(?:<(?:[^<>`]|<[^<>`]*+>)*+>)?"
# Languages of templates, by the tag or comment before the backtick.
_TAGS = re.compile(
    rf"(?:(?<!\w)|/\*[ ]?)(?:(?P<css>styled(?:\.\w++|{_ARGUMENTS})(?:\.\w++{_TYPES}{_ARGUMENTS})*+"
    r"|css|keyframes|createGlobalStyle|injectGlobal)|(?P<html>html|HTML|svg)"
    r"|(?P<graphql>gql|graphql|GraphQL)|(?P<sql>sql|SQL|\$(?:query|execute)Raw))"
    rf"(?:{_TYPES}|[ ]?\*/[ ]?)\Z"
)


def _templates(code: str) -> tuple[Pair, ...]:
    """Template strings; `code` is the language of what stands in `${}`. A tag may name that of the text."""
    plain = long_string("`", inner=(DOLLAR_BRACE,))
    opens = r"(?:(?<=[\w)>/])|(?<=/ ))`"
    tagged = replace(region(opens, "`", "<lang>", is_template=True), first="`")
    return replace(tagged, inner=(code_in("${", "}", code),), named_above=_TAGS, otherwise=plain), plain


JAVASCRIPT = replace(
    C_LIKE,
    pairs=(
        *SLASHES,
        *PLAIN_STRINGS,
        *_templates("typescript"),
        regex(),
    ),
    skipped=(),
    word_marks="_$",
)
_JSX_TAG = Pair(
    r"<(?!\w+\s*(?:,|extends\b))(?P<tag>[A-Za-z_$][\w$.:-]*|(?=>))", kind="tag", before=_ELEMENT_BEFORE
)
JSX = replace(
    JAVASCRIPT, pairs=(*JAVASCRIPT.pairs, _JSX_TAG), markup=Markup(braces="", is_nested_in_code=True)
)
CSS = Language(
    pairs=(block_comment("/*", "*/"), *PLAIN_STRINGS),
    unfinished=re.compile(r"[,:>+~\\]$"),
    word_marks="_-",
)
SCSS = replace(CSS, pairs=(*SLASHES, *PLAIN_STRINGS), skipped=("://",), word_marks="_-$@")
JSON = replace(CSS, pairs=(string('"'),), unfinished=re.compile(r":$"), separators=",")
JSONC = replace(JSON, pairs=(*SLASHES, string('"')), separators="")
GRAPHQL = replace(
    C_LIKE, pairs=(line_comment("#"), TRIPLE, string('"')), leading=None, opener=NEVER, skipped=()
)

BY_IDENTIFIER: dict[str, Language] = {
    **dict.fromkeys(("javascript", "javascriptreact", "typescriptreact", "qml"), JSX),
    "typescript": JAVASCRIPT,
    "css": CSS,
    **dict.fromkeys(("scss", "less", "stylus"), SCSS),
    **dict.fromkeys(("json", "jsonl"), JSON),
    **dict.fromkeys(("jsonc", "json5", "hocon"), JSONC),
    "graphql": GRAPHQL,
}
