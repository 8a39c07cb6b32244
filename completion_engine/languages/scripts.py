"""Languages whose blocks are indented, or end with a word."""

from __future__ import annotations

import re
from dataclasses import replace

from completion_engine.languages.braces import (
    APOSTROPHE,
    NO_CHAR,
    PLAIN_STRINGS,
    SLASHES,
    argument_regex,
    bars,
    regex,
)
from completion_engine.languages.shells import DOLLAR_PAREN
from completion_engine.languages.syntax import (
    ESCAPED,
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

_BRACE = code_in("{", "}")
_HASH_BRACE = code_in("#{", "}")
_END = frozenset({"end"})
_IN_F_STRING = (*ESCAPED, r"\{\{")
_IS_F_STRING = r"(?:(?<=[fFtT])|(?<=[fFtT][rR]))"
_TRIPLES = (long_string('"""'), long_string("'''"))


def _f_string(mark: str, *, is_multiline: bool) -> Pair:
    opens = f"{_IS_F_STRING}{mark}"
    return string(
        mark, opens=opens, inner=(_BRACE,), escapes=_IN_F_STRING, is_multiline=is_multiline, first=mark[0]
    )


PYTHON = Language(
    blocks="indent",
    pairs=(
        region(
            r"\A%%(?P<lang>bash|sh|html|javascript|js|latex|markdown|perl|ruby|sql|svg)\b[^\n]*",
            r"(?!)",
            "<lang>",
            begins_below=True,
        ),
        line_comment("#"),
        _f_string('"""', is_multiline=True),
        _f_string("'''", is_multiline=True),
        *_TRIPLES,
        _f_string('"', is_multiline=False),
        _f_string("'", is_multiline=False),
        *PLAIN_STRINGS,
    ),
    opener=re.compile(r":$"),
    prelude=re.compile(r"^\s*@\w"),
    clauses=frozenset({"else", "elif", "except", "finally", "case"}),
    marks_blocks=True,
)
COFFEE = replace(
    PYTHON,
    marks_blocks=False,
    pairs=(
        block_comment("###", "###"),
        line_comment("#"),
        long_string('"""', inner=(_HASH_BRACE,)),
        long_string("'''"),
        string('"', inner=(_HASH_BRACE,)),
        string("'"),
    ),
    opener=re.compile(r"[-=]>$"),
)
_DELIMITED = tuple(
    Pair(
        rf"(?<![\w)\]}}])%(?:[qQwWiIrsx]?\{opens}|[qQwWiIrsx](?=\{opens})\{opens})",
        f"\\{closes}",
        "string",
        inner=(Pair(f"\\{opens}", f"\\{closes}", "string", escapes=ESCAPED, is_multiline=True),)
        if opens != closes
        else (),
        escapes=ESCAPED,
        is_multiline=True,
    )
    for opens, closes in ("()", "[]", "{}", "<>")
)
_RUBY_HEREDOCS = (
    heredoc(r"<<[~-]?'(?P<tag>[A-Za-z_]\w*)'", r"^[ \t]*<tag>(?=\n)"),
    heredoc(
        r"<<(?:[~-]|(?=\"?[A-Z_]))[\"`]?(?P<tag>[A-Za-z_]\w*)[\"`]?",
        r"^[ \t]*<tag>(?=\n)",
        code_in("#{", "}", "ruby"),
    ),
)
RUBY = Language(
    blocks="end",
    pairs=(
        Pair(r"^=begin\b", r"^=end\b[^\n]*", "comment", is_multiline=True),
        region(r"^__END__(?=\n)", r"(?!)", "plaintext", begins_below=True),
        line_comment("#"),
        *_RUBY_HEREDOCS,
        *_DELIMITED,
        long_string('"', inner=(_HASH_BRACE,)),
        long_string("'"),
        long_string("`", inner=(_HASH_BRACE,)),
        argument_regex((_HASH_BRACE,)),
        regex((_HASH_BRACE,)),
        bars(r"(?:\{|\bdo)[ \t]*\Z"),
    ),
    skipped=(r"(?<![\w)\]])\?[^\w\s](?!\w)", r"(?<=\w)'(?=\w)"),
    opener=re.compile(
        r"^\s*(?:def(?!.*\)\s*=\s)|class|module|if|unless|while|until|for|case|begin|when|else|elsif|rescue|ensure)\b"
        r"(?!.*\bend$)|\b(?:do|then)(?:\s*\|[^|]*\|)?$|=\s*(?:if|case|begin)\b[^;]*$"
    ),
    unfinished=re.compile(r"(?:[-+*/&|=<>.,\\]|\b(?:and|or|not))$"),
    leading=re.compile(r"\.|&\."),
    clauses=frozenset({"else", "elsif", "rescue", "ensure", "when", "in"}),
    closers=_END,
)
ELIXIR = replace(
    RUBY,
    pairs=(
        line_comment("#"),
        region(r'~H"""(?=\n)', r'^[ \t]*"""', "heex", begins_below=True),
        *(
            string(end, opens=rf"{sigil}{end}", inner=inner, is_multiline=True, first="~" + end[0])
            for end in ('"""', "'''")
            for sigil, inner in (("~[A-Z]", ()), ("(?:~[a-z])?", (_HASH_BRACE,)))
        ),
        *(
            Pair(rf"~{case}\{o}", rf"\{c}", inner=inner, escapes=ESCAPED, is_multiline=True)
            for o, c in ("()", "[]", "{}", "//", "||", '""')
            for case, inner in (("[a-z]", (_HASH_BRACE,)), ("[A-Z]", ()))
        ),
        long_string('"', inner=(_HASH_BRACE,)),
        string("'", inner=(_HASH_BRACE,)),
    ),
    skipped=(r"\?\\?[^\w\s]", APOSTROPHE),
    opener=re.compile(r"\bdo$|->$|^\s*(?:else|rescue|catch|after)$"),
    unfinished=re.compile(r"(?:[-+*/|=<>,]|\b(?:and|or|not|when))$"),
    leading=re.compile(r"\|>|\|\||&&|<>"),
    clauses=frozenset({"else", "rescue", "catch", "after"}),
)
LUA = Language(
    blocks="end",
    pairs=(
        Pair(r"--\[(?P<tag>=*)\[", r"\]<tag>\]", "comment", is_multiline=True),
        line_comment("--"),
        Pair(r"\[(?P<tag>=*)\[", r"\]<tag>\]", is_multiline=True),
        *PLAIN_STRINGS,
    ),
    opener=re.compile(r"\b(?:do|then|else|repeat)$|\bfunction\b[^()]*\([^()]*\)$"),
    unfinished=re.compile(r"(?:[-+*/%^=<>~,]|\.\.|\b(?:and|or|not|return))$"),
    clauses=frozenset({"else", "elseif"}),
    closers=frozenset({"end", "until"}),
)
_END_OPENER = re.compile(
    r"^\s*(?:function|if|for|while|try|catch|switch|case|otherwise|let|struct|module|macro|begin|quote|else|elseif)\b"
    r"(?!.*\bend;?$)|\b(?:do|then|begin)(?:\s+\w+)?$",
    re.IGNORECASE,
)
JULIA = replace(
    RUBY,
    pairs=(
        block_comment("#=", "=#"),
        line_comment("#"),
        long_string("```", inner=(DOLLAR_PAREN,)),
        long_string('"""', inner=(DOLLAR_PAREN,)),
        long_string('"', inner=(DOLLAR_PAREN,)),
        string("`", inner=(DOLLAR_PAREN,)),
    ),
    skipped=NO_CHAR,
    opener=_END_OPENER,
    leading=None,
    clauses=frozenset({"else", "elseif", "catch", "finally"}),
)
MATLAB = replace(
    JULIA,
    pairs=(
        Pair(r"^[ \t]*%\{(?=\n)", r"^[ \t]*%\}", "comment", is_multiline=True),
        line_comment("%"),
        string('"', escapes=('""',)),
        string("'", opens=r"(?<![\w)\]}'.])'", escapes=("''",)),
    ),
    skipped=(),
    unfinished=re.compile(r"\.\.\.$"),
)
_WORDS_END = re.compile(r"\b(?:then|do|else|begin|loop|is|record|generate)$", re.IGNORECASE)
FORTRAN = replace(
    JULIA,
    pairs=(line_comment("!"), string('"', escapes=()), string("'", escapes=())),
    skipped=(APOSTROPHE,),
    opener=re.compile(
        r"^\s*(?:program|module|subroutine|function|do|type|interface|contains)\b|\bthen$", re.I
    ),
    unfinished=re.compile(r"&$"),
    closers=frozenset({"end"}),
)
PASCAL = replace(
    JULIA,
    pairs=(line_comment("//"), block_comment("(*", "*)"), block_comment("{", "}"), string("'", escapes=())),
    brackets="()[]",
    skipped=(),
    opener=_WORDS_END,
    unfinished=re.compile(r"(?:[-+*/=,]|\b(?:and|or|not|div|mod))$", re.IGNORECASE),
    closers=frozenset({"end", "until"}),
)
ADA = replace(
    PASCAL,
    pairs=(line_comment("--"), string('"', escapes=())),
    brackets="()[]",
    skipped=(r"'[^'\n]'", APOSTROPHE),
)
VERILOG = replace(
    PASCAL,
    pairs=(*SLASHES, string('"')),
    brackets="()[]{}",
    closers=frozenset({"end", "endmodule", "endcase", "endfunction", "endtask", "endgenerate", "join"}),
    opener=re.compile(r"\b(?:begin|else)(?:\s*:\s*\w+)?$|^\s*(?:module|case|function|task)\b.*;$"),
)
VISUAL_BASIC = replace(
    PASCAL,
    pairs=(line_comment("'"), string('"', escapes=('""',))),
    brackets="()[]{}",
    opener=re.compile(
        r"\b(?:Then|Do|Else|Try|Finally)$|^\s*(?:\w+ )*(?:Sub|Function|Class|Module|If|For|While)\b"
    ),
    unfinished=re.compile(r"[ ]_$|[,(&]$"),
    closers=frozenset({"End", "Next", "Loop", "Wend"}),
)
VIM = replace(
    JULIA,
    pairs=(line_comment(r'^[ \t]*"'), string('"'), string("'", escapes=("''",))),
    skipped=(APOSTROPHE,),
    unfinished=re.compile(r"\\$"),
    closers=frozenset({"endif", "endfunction", "endfor", "endwhile", "endtry"}),
)
ASSEMBLY = Language(
    pairs=(
        block_comment("/*", "*/"),
        line_comment("//"),
        line_comment(";"),
        line_comment(r"^[ \t]*#|(?<=[ \t])#(?=[ \t])"),
        line_comment(r"(?<=[ \t])@(?=[ \t])"),
        string('"'),
    ),
    closers=frozenset({"ret", "iret", "bx", "leave"}),
    skipped=NO_CHAR,
)
COBOL = Language(
    pairs=(line_comment(r"\*>"), string('"', escapes=()), string("'", escapes=())),
    brackets="()",
    word_marks="_-",
)

BY_IDENTIFIER: dict[str, Language] = {
    **dict.fromkeys(("python", "cython", "starlark", "nim", "gdscript", "mojo", "meson"), PYTHON),
    **dict.fromkeys(("ruby", "crystal"), RUBY),
    **dict.fromkeys(("ada", "vhdl"), ADA),
    **dict.fromkeys(("asm", "llvm"), ASSEMBLY),
    "coffeescript": COFFEE,
    "elixir": ELIXIR,
    "lua": LUA,
    "julia": JULIA,
    "matlab": MATLAB,
    "fortran": FORTRAN,
    "pascal": PASCAL,
    "systemverilog": VERILOG,
    "vb": VISUAL_BASIC,
    "viml": VIM,
    "cobol": COBOL,
}
