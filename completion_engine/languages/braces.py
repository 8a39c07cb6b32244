"""Languages whose blocks stand in braces."""

from __future__ import annotations

import re
from dataclasses import replace

from completion_engine.languages.syntax import (
    ESCAPED,
    NEVER,
    Language,
    Pair,
    block_comment,
    code_in,
    heredoc,
    line_comment,
    long_string,
    region,
    string,
)

SLASHES = (line_comment("//"), block_comment("/*", "*/"))
PLAIN_STRINGS = (string('"'), string("'"))
DOLLAR_BRACE = code_in("${", "}")
# Characters, and marks that open nothing.
NO_CHAR = (r"'\\[^\n'][^\n']{0,9}'", r"'[^\\'\n]'", r"(?<=\w)'", r"'(?=\w)")
APOSTROPHE = r"(?<=\w)'"

_UNFINISHED = re.compile(r"(?:(?<!\+)\+|(?<!-)-|(?<!\?\?)\?|[*/%&|^=<.,:!\\]|[-=]>)$")
_LEADING = re.compile(r"[.?:&|+*/=<>{,-]|(?:else|catch|finally|while|extends|implements|throws|where)\b")
_CLAUSES = frozenset({"else", "catch", "finally", "while", "case", "default"})
_EXPRESSION_BEFORE = re.compile(
    r"(?:\A|[(,=:\[!&|?{};+\-*%~^\n]|=>|<[ \t]+|\b(?:return|typeof|case|in|of|and|or|not|if|unless|when))"
    r"[ \t]*\Z"
)
TRIPLE = long_string('"""')


def regex(inner: tuple[Pair, ...] = ()) -> Pair:
    """A regular expression between slashes, as an expression may begin with one."""
    brackets = Pair(r"\[", r"\]", escapes=ESCAPED)
    opens = r"(?<!\})/(?![/*])|/(?![/*>])"
    return Pair(opens, "/", "string", "", _EXPRESSION_BEFORE, (brackets, *inner), ESCAPED, first="/")


def argument_regex(inner: tuple[Pair, ...] = ()) -> Pair:
    """The same as the first argument of a command without parentheses, as in `split /,/`."""
    pair = regex(inner)
    return replace(
        pair, opens=r"(?<=[\w?!][ ])/(?![\s/*]|=\s)", before=re.compile(r"(?<![\w$@%&])[a-z_]\w*[?!]?[ ]\Z")
    )


def bars(before: str) -> Pair:
    """The parameters of a closure between two bars."""
    return Pair(r"\|(?!\|)", r"\|", "bracket", before=re.compile(before))


C_LIKE = Language(
    pairs=(*SLASHES, *PLAIN_STRINGS),
    opener=re.compile(r"(?:^\s*(?:case\b.*|default\s*|public|private|protected|[A-Za-z_]\w*)):$"),
    unfinished=_UNFINISHED,
    prelude=re.compile(r"^\s*@\w[\w.]*(?:\(.*\))?\s*$|^\s*template\s*<.*>\s*$"),
    leading=_LEADING,
    clauses=_CLAUSES,
    skipped=(r"(?<=\d)'(?=\d)",),
    marks_blocks=True,
)
_CPP_RAW = Pair(r'(?<=R)"(?P<tag>[^()\\\s]{0,16})\(', r"\)<tag>\"", is_multiline=True)
CPP = replace(C_LIKE, pairs=(*SLASHES, _CPP_RAW, *PLAIN_STRINGS))
JAVA = replace(C_LIKE, pairs=(*SLASHES, TRIPLE, *PLAIN_STRINGS), skipped=())
KOTLIN = replace(
    JAVA,
    pairs=(
        *SLASHES,
        long_string('"""', inner=(DOLLAR_BRACE,), escapes=()),
        string('"', inner=(DOLLAR_BRACE,)),
        string("'"),
    ),
    skipped=(r'(?<=""")"',),  # the last three of more quotes close a string
)
SCALA = replace(KOTLIN, skipped=(*KOTLIN.skipped, r"'[A-Za-z_]\w+(?!['\w])"))
GROOVY = replace(JAVA, pairs=(*KOTLIN.pairs[:-1], long_string("'''"), string("'"), regex((DOLLAR_BRACE,))))
DART = replace(
    GROOVY,
    pairs=(
        *SLASHES,
        *(
            string(mark, opens=rf"(?<=\br){mark}", escapes=(), is_multiline=len(mark) > 1, first=mark[0])
            for mark in ('"""', "'''", '"', "'")
        ),
        long_string('"""', inner=(DOLLAR_BRACE,)),
        long_string("'''", inner=(DOLLAR_BRACE,)),
        string('"', inner=(DOLLAR_BRACE,)),
        string("'", inner=(DOLLAR_BRACE,)),
    ),
)
_SWIFT_CODE = code_in("\\(", ")")
SWIFT = replace(
    JAVA,
    pairs=(
        *SLASHES,
        Pair(
            r'(?P<tag>#{1,4})"',
            '"<tag>',
            inner=(code_in("\\#(", ")"), code_in("\\##(", ")")),
            is_multiline=True,
        ),
        long_string('"""', inner=(_SWIFT_CODE,), escapes=(r"\\[^\n(]",)),
        string('"', inner=(_SWIFT_CODE,), escapes=(r"\\[^\n(]",)),
    ),
)
D = replace(
    JAVA,
    pairs=(
        *SLASHES,
        block_comment("/+", "+/"),
        Pair(r'(?<=\bq)"(?P<tag>[A-Za-z_]\w*)(?=\n)', r'^<tag>"', escapes=ESCAPED, is_multiline=True),
        *(Pair(rf'(?<=\bq)"\{o}', rf'\{c}"', is_multiline=True) for o, c in ("()", "[]", "{}", "<>")),
        long_string('"', opens=r'(?<=\br)"', escapes=()),
        long_string("`", escapes=()),
        long_string('"'),
        string("'"),
    ),
)
GO = replace(
    C_LIKE,
    pairs=(*SLASHES, *PLAIN_STRINGS, long_string("`", escapes=())),
    leading=None,
    skipped=(),
    indents_with_tabs=True,
)
RUST = replace(
    C_LIKE,
    pairs=(
        *SLASHES,
        Pair(r'(?<=r)(?P<tag>#{0,8})"', '"<tag>', is_multiline=True),
        long_string('"'),
        string("'", opens=r"'(?!\w)"),
        bars(r"(?:[(,=\[{;&]|=>|\b(?:move|return|else|async|in))\s*\Z"),
    ),
    prelude=re.compile(r"^\s*#!?\[.*\]\s*$"),
    skipped=(r"'\w'", r"\|\|"),
)
ZIG = replace(
    C_LIKE,
    pairs=(line_comment("//"), *PLAIN_STRINGS, Pair(r"^[ \t]*\\\\"), bars(r"\)[ \t]*\Z")),
    skipped=(r"\|\|",),
)
CSHARP = replace(
    JAVA,
    pairs=(
        *SLASHES,
        long_string('"""', opens=r'(?<=\$)"""', inner=(code_in("{", "}"),), escapes=(), first='"'),
        TRIPLE,
        long_string(
            '"',
            opens=r'(?:(?<=@\$)|(?<=\$@))"',
            inner=(code_in("{", "}"),),
            escapes=('""', r"\{\{"),
            first='"',
        ),
        long_string('"', opens=r'(?<=@)"', escapes=('""',)),
        string('"', opens=r'(?<=\$)"', inner=(code_in("{", "}"),), escapes=(*ESCAPED, r"\{\{")),
        *PLAIN_STRINGS,
    ),
    prelude=re.compile(r"^\s*\[[A-Za-z].*\]\s*$"),
)
_PHP_STRINGS = (
    long_string('"', inner=(code_in("{$", "}"),)),
    long_string("'"),
    heredoc(r"<<<[ \t]*'(?P<tag>[A-Za-z_]\w*)'(?=\n)", r"^[ \t]*<tag>(?=[;,.)\]\n ])"),
    heredoc(
        r"<<<[ \t]*\"?(?P<tag>[A-Za-z_]\w*)\"?(?=\n)",
        r"^[ \t]*<tag>(?=[;,.)\]\n ])",
        code_in("{$", "}", "php-code"),
    ),
)
PHP_CODE = replace(
    C_LIKE,
    pairs=(*SLASHES, line_comment(r"#(?!\[)"), *_PHP_STRINGS),
    skipped=(),
    word_marks="_$",
    ends=r"\?>",
)
SQL = replace(
    C_LIKE,
    marks_blocks=False,
    pairs=(
        line_comment("--"),
        block_comment("/*", "*/"),
        region(r"\$(?P<tag>\w*)\$", r"\$<tag>\$", "sql"),
        string('"', escapes=()),
        string("'", opens=r"(?<=\b[eE])'"),
        string("'", escapes=()),
        string("`", escapes=()),
    ),
    prelude=NEVER,
    opener=NEVER,
    skipped=(),
    closers=frozenset({"END", "end"}),
    separators=",",
)
LISP = Language(
    pairs=(line_comment(";"), block_comment("#|", "|#"), long_string('"')),
    skipped=(r"#?\\[^\n]",),
    word_marks="_-*+!?<>=/",
)
POWERSHELL = replace(
    C_LIKE,
    marks_blocks=False,
    pairs=(
        block_comment("<#", "#>"),
        line_comment("#"),
        Pair(r'@"(?=\n)', r'^"@', is_multiline=True),
        Pair(r"@'(?=\n)", r"^'@", is_multiline=True),
        long_string('"', inner=(code_in("$(", ")"),), escapes=(r"`[^\n]", r"\"\"")),
        long_string("'", escapes=("''",)),
    ),
    unfinished=re.compile(r"[|,`=+]$"),
    opener=NEVER,
    leading=None,
    skipped=(APOSTROPHE,),
    word_marks="_-$",
)
R = replace(
    C_LIKE,
    marks_blocks=False,
    pairs=(
        line_comment("#"),
        Pair(r'(?<=\b[rR])"(?P<tag>-*)\(', r'\)<tag>"', is_multiline=True),
        long_string('"'),
        long_string("'"),
        string("`", escapes=()),
    ),
    leading=None,
    opener=NEVER,
    skipped=(APOSTROPHE,),
    word_marks="_.",
    unfinished=re.compile(r"(?:[-+*/,=~|&<]|%\w*%|\|>|%>%)$"),
)
PERL = Language(
    blocks="brace",
    pairs=(
        Pair(r"^=[a-z]\w*", r"^=cut\b[^\n]*", "comment", is_multiline=True),
        line_comment(r"(?<![$\w{\\])#"),
        heredoc(r"<<[~-]?[\"']?(?P<tag>[A-Z_]\w*)[\"']?", r"^[ \t]*<tag>(?=\n)"),
        *(
            Pair(rf"(?<![\w$@%&>-])q[qwrx]?[ \t]*\{o}", f"\\{c}", escapes=ESCAPED, is_multiline=True)
            for o, c in ("()", "[]", "{}", "<>", "||", "//", "!!")
        ),
        string("/", opens=r"(?<![\w$@%&>{-])[stym]r?/"),
        long_string('"'),
        long_string("'"),
        argument_regex(),
        regex(),
    ),
    skipped=(
        r"(?<![\w$@%&>{-])[sty]r?/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/",
        r"(?<=\w)'(?=\w)",
        r"\$['\"#]",
    ),
    unfinished=re.compile(r"(?:[-+*/&|=<>.,?:]|\b(?:and|or|not))$"),
    leading=re.compile(r"[.?:&|]|->|(?:else|elsif|or|and|if|unless)\b"),
    clauses=frozenset({"else", "elsif"}),
    word_marks="_$",
)

BY_IDENTIFIER: dict[str, Language] = {
    **dict.fromkeys(("c", "objective-c", "objective-cpp", "v"), C_LIKE),
    **dict.fromkeys(("yacc", "openscad"), replace(C_LIKE, marks_blocks=False)),
    **dict.fromkeys(("cpp", "cuda-cpp", "glsl", "hlsl", "wgsl", "shaderlab", "odin", "kdl", "ron"), CPP),
    **dict.fromkeys(("java", "vala", "haxe", "thrift", "solidity", "gleam", "jsp"), JAVA),
    **dict.fromkeys(("proto", "prisma", "dot", "gomod"), replace(JAVA, leading=None)),
    "kotlin": KOTLIN,
    "scala": SCALA,
    **dict.fromkeys(("clojure", "lisp", "scheme", "racket", "wat"), LISP),
    **dict.fromkeys(("go", "templ"), GO),
    "groovy": GROOVY,
    "dart": DART,
    "swift": SWIFT,
    "d": D,
    "rust": RUST,
    "zig": ZIG,
    "csharp": CSHARP,
    "sql": SQL,
    "powershell": POWERSHELL,
    "r": R,
    **dict.fromkeys(("perl", "raku"), PERL),
    "php-code": PHP_CODE,
}
