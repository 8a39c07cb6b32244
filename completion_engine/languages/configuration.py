"""Languages that describe infrastructure and packages."""

from __future__ import annotations

from dataclasses import replace

from completion_engine.languages.braces import APOSTROPHE, C_LIKE, DOLLAR_BRACE, PLAIN_STRINGS, SLASHES
from completion_engine.languages.syntax import (
    Language,
    Pair,
    block_comment,
    code_in,
    heredoc,
    line_comment,
    long_string,
    string,
)
from completion_engine.languages.web import CSS

JSONNET = replace(
    C_LIKE,
    pairs=(
        *SLASHES,
        line_comment("#"),
        Pair(r"\|\|\|-?(?=\n)", r"^[ \t]*\|\|\|", is_multiline=True),
        *PLAIN_STRINGS,
    ),
)
HCL = replace(
    C_LIKE,
    pairs=(
        *SLASHES,
        line_comment("#"),
        heredoc(
            r"<<[-~]?(?P<tag>[A-Za-z_]\w*)(?=\n)", r"^[ \t]*<tag>(?=\n)", code_in("${", "}", "terraform")
        ),
        string('"', inner=(DOLLAR_BRACE,)),
    ),
    leading=None,
    skipped=(),
)
BICEP = replace(
    C_LIKE,
    pairs=(*SLASHES, long_string("'''", escapes=()), string("'", inner=(DOLLAR_BRACE,))),
    leading=None,
)
NIX = replace(
    C_LIKE,
    marks_blocks=False,
    pairs=(
        line_comment("#"),
        block_comment("/*", "*/"),
        long_string("''", inner=(DOLLAR_BRACE,), escapes=(r"''[$'\\]",)),
        long_string('"', inner=(DOLLAR_BRACE,)),
    ),
    skipped=(APOSTROPHE,),
    word_marks="_-'",
)
CONFIG = replace(CSS, pairs=(line_comment(r"(?<!\S)#"), *PLAIN_STRINGS), skipped=(APOSTROPHE,))

BY_IDENTIFIER: dict[str, Language] = {
    **dict.fromkeys(("terraform", "hcl"), HCL),
    **dict.fromkeys(("nginx", "apacheconf", "puppet", "jq", "awk"), CONFIG),
    "bicep": BICEP,
    "nix": NIX,
    "jsonnet": JSONNET,
}
