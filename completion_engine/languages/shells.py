"""Shells, and the files of build tools that hold their commands."""

from __future__ import annotations

import re
from dataclasses import replace

from completion_engine.languages.syntax import (
    NEVER,
    Language,
    Pair,
    code_in,
    heredoc,
    line_comment,
    long_string,
    region,
    string,
)

DOLLAR_PAREN = code_in("$(", ")")

_SHELL_HEREDOCS = (
    heredoc(r"(?<!<)<<-?[ \t]*(?:['\"]|\\)(?P<tag>[A-Za-z_]\w*)['\"]?", r"^[ \t]*<tag>(?=\n)"),
    heredoc(
        r"(?<!<)<<-?(?:[ \t]*(?=[A-Z_])|(?=[a-z]))(?P<tag>[A-Za-z_]\w*)",
        r"^[ \t]*<tag>(?=\n)",
        code_in("$(", ")", "shellscript"),
        code_in("${", "}", "shellscript"),
    ),
)
SHELL = Language(
    blocks="end",
    pairs=(
        line_comment(r"(?<![^\s;(|&])#"),
        *_SHELL_HEREDOCS,
        long_string('"', inner=(DOLLAR_PAREN, code_in("${", "}"))),
        string("'", opens=r"(?<=\$)'", is_multiline=True),
        long_string("'", escapes=()),
    ),
    skipped=(r"\\.", r"(?<=\w)'(?=[a-z])"),
    opener=re.compile(r"\b(?:do|then|else)$|\bin$|^\s*[^\s()]+\)$"),
    label=re.compile(r"^\s*(?:;;\s*)?(?!(?:done|esac|fi|then|else|do)\))[^\s()]+\)$"),
    unfinished=re.compile(r"(?:\\|\||&&)$"),
    clauses=frozenset({"else", "elif"}),
    closers=frozenset({"fi", "done", "esac", ";;"}),
    word_marks="_-",
)
DOCKERFILE = replace(
    SHELL,
    blocks="brace",
    label=NEVER,
    pairs=(
        region(
            r"^[ \t]*RUN[ \t]+(?:--\S+[ \t]+)*<<-?['\"]?(?P<tag>[A-Za-z_]\w*)['\"]?[ \t]*(?=\n)",
            r"^[ \t]*<tag>(?=\n)",
            "shellscript",
            begins_below=True,
        ),
        *SHELL.pairs,
    ),
)
_LINE_STRINGS = (string('"', inner=(DOLLAR_PAREN,)), string("'"))
MAKEFILE = replace(
    SHELL,
    blocks="brace",
    pairs=(line_comment(r"(?<![^\s])#"), *_LINE_STRINGS),
    label=NEVER,
    opener=re.compile(r"^[^\s#:=][^#:=]*::?(?![:=])[^=]*$"),
    closers=frozenset({"endif", "endef"}),
    has_fixed_indents=True,
)
JUST = replace(MAKEFILE, has_fixed_indents=False)
CMAKE = Language(
    blocks="end",
    pairs=(
        Pair(r"#\[(?P<tag>=*)\[", r"\]<tag>\]", "comment", is_multiline=True),
        line_comment("#"),
        Pair(r"\[(?P<tag>=*)\[", r"\]<tag>\]", is_multiline=True),
        long_string('"'),
    ),
    brackets="(){}",
    skipped=(r"\\.",),
    opener=re.compile(r"^\s*(?:if|else|elseif|foreach|while|function|macro)\s*\(.*\)$", re.IGNORECASE),
    unfinished=NEVER,
    clauses=frozenset({"else", "elseif"}),
    closers=frozenset({"endif", "endforeach", "endwhile", "endfunction", "endmacro"}),
)
FISH = replace(
    SHELL,
    pairs=(line_comment(r"(?<![^\s;(|&])#"), long_string('"', inner=(DOLLAR_PAREN,)), long_string("'")),
    opener=re.compile(r"^\s*(?:function|if|for|while|switch|case|begin|else)\b"),
    closers=frozenset({"end"}),
)
TCL = replace(SHELL, blocks="brace", pairs=(line_comment(r"^[ \t]*#|(?<=;)[ \t]*#"), long_string('"')))
NUSHELL = replace(SHELL, blocks="brace", pairs=(line_comment(r"(?<!\S)#"), long_string('"'), string("'")))
BATCH = Language(
    pairs=(
        Pair(r"^[ \t]*(?:::|@?[rR][eE][mM]\b)", kind="comment", first=":@rR"),
        string('"', escapes=()),
    ),
    brackets="()",
)

BY_IDENTIFIER: dict[str, Language] = {
    **dict.fromkeys(("shellscript", "m4"), SHELL),
    "dockerfile": DOCKERFILE,
    "makefile": MAKEFILE,
    "just": JUST,
    "cmake": CMAKE,
    "fish": FISH,
    "tcl": TCL,
    "nushell": NUSHELL,
    "bat": BATCH,
}
