"""Functional and logical languages."""

from __future__ import annotations

import re
from dataclasses import replace

from completion_engine.languages.braces import NO_CHAR
from completion_engine.languages.syntax import (
    Language,
    Pair,
    block_comment,
    line_comment,
    long_string,
    string,
)

ERLANG = Language(
    pairs=(line_comment("%"), long_string('"'), string("'")),
    skipped=(r"\$\\?.",),
    unfinished=re.compile(r"(?:->|[,;|=(\[{]|\b(?:of|when|begin|receive|try))$"),
    blocks="end",
    opener=re.compile(r"(?:->|\b(?:of|begin|receive|try))$"),
    closers=frozenset({"end"}),
    separators=",;",
)
PROLOG = replace(
    ERLANG,
    pairs=(line_comment("%"), block_comment("/*", "*/"), string('"'), string("'")),
    skipped=(r"(?<=0)'.",),
)
HASKELL = Language(
    blocks="indent",
    pairs=(block_comment("{-", "-}"), line_comment(r"--(?![!#$%&*+./<=>?@\\^|~:])"), string('"')),
    skipped=NO_CHAR,
    opener=re.compile(r"(?:=|->|<-|\b(?:where|do|of|let|then|else))$"),
    unfinished=re.compile(r"(?:[-+*/=<>|&.$,]|\b(?:where|do|of|let|in|then|else))$"),
    word_marks="_'",
    separators=",",
)
ELM = replace(HASKELL, pairs=(*HASKELL.pairs[:2], long_string('"""'), string('"')))
OCAML = Language(
    pairs=(
        block_comment("(*", "*)"),
        Pair(r"\{(?P<tag>[a-z_]*)\|", r"\|<tag>\}", is_multiline=True),
        long_string('"'),
    ),
    skipped=(r"\(\*\)", *NO_CHAR),
    unfinished=re.compile(r"(?:[-+*/=<>|&^@;,:]|->|\b(?:in|then|else|begin|struct|sig|with|of|do|fun))$"),
    leading=re.compile(r"[|^@&]|(?:in|and|then|else|with|end|done)\b"),
    clauses=frozenset({"and", "else"}),
    closers=frozenset({"end", "done"}),
    word_marks="_'",
)
FSHARP = replace(
    OCAML,
    blocks="indent",
    pairs=(line_comment("//"), block_comment("(*", "*)"), long_string('"""'), long_string('"')),
    opener=re.compile(r"(?:=|->|\b(?:with|then|else|do|try|finally))$"),
)

BY_IDENTIFIER: dict[str, Language] = {
    **dict.fromkeys(("haskell", "idris", "lean"), HASKELL),
    **dict.fromkeys(("elm", "purescript"), ELM),
    **dict.fromkeys(("ocaml", "sml"), OCAML),
    "erlang": ERLANG,
    "prolog": PROLOG,
    "fsharp": FSHARP,
}
