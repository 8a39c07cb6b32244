"""Prose, and data whose values are text."""

from __future__ import annotations

import re
from dataclasses import replace

from completion_engine.languages.braces import APOSTROPHE, PLAIN_STRINGS
from completion_engine.languages.syntax import (
    ESCAPED,
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

NO_DEEPER = r"^(?=[ \t]{0,<width>}\S)"  # a line that is indented no deeper
_HTML_COMMENT = block_comment("<!--", "-->")
_TEMPLATES = (
    region(r"\{\{", r"\}\}", "expression"),
    region(r"\{%", r"%\}", "expression"),
)
_MATH = region(r"\$\$", r"\$\$", "latex")
FRONT_MATTER = (
    region(r"\A---[ \t]*(?=\n)", r"^---[ \t]*(?=\n)", "yaml", begins_below=True),
    region(r"\A\+\+\+[ \t]*(?=\n)", r"^\+\+\+[ \t]*(?=\n)", "toml", begins_below=True),
)
_FENCE = region(
    r"^(?:[ \t]|[-*+>][ \t]|\d+[.)][ \t]|>)*+(?P<tag>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})"
    r"[ \t]*\{?[.:]?(?P<lang>[\w+#.-]*)[^\n]*",
    r"^[ \t>]*<tag>[`~]*[ \t]*(?=\n)",
    "<lang>",
    begins_below=True,
)
_CONTAINER = region(
    r"^[ \t]*(?P<tag>:{3,})[ \t]*[\w{.][^\n]*",
    r"^[ \t]*<tag>[ \t]*(?=\n)",
    "markdown",
    begins_below=True,
)
# Code within a line, whose marks open nothing.
_INLINE_CODE = r"(?P<ticks>`{1,3}+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)"
TEXT = Language(blocks="text", brackets="")
PLAIN = replace(TEXT, pairs=(_FENCE,), has_fences=True)
MARKDOWN = replace(
    TEXT,
    pairs=(*FRONT_MATTER, _FENCE, _CONTAINER, _HTML_COMMENT, _MATH, *_TEMPLATES),
    skipped=(r"\\[^\w\s]", _INLINE_CODE),
    has_fences=True,
)
MDX = replace(
    MARKDOWN,
    pairs=(
        *FRONT_MATTER,
        _FENCE,
        _CONTAINER,
        _MATH,
        region(r"^(?:export|import)\b(?=[ {*])", r"(?=\n[ \t]*\n)", "javascriptreact"),
        Pair(r"<(?P<tag>[A-Z][\w.]*)", kind="tag"),
        code_in("{", "}", "javascriptreact"),
    ),
    markup=Markup(braces="javascriptreact"),
)
_ENVIRONMENT = Pair(r"\\begin\{(?P<tag>[^}\n]{1,40})\}", r"\\end\{<tag>\}", "bracket", is_multiline=True)
_VERBATIM = region(
    r"\\begin\{(?P<tag>verbatim\*?|Verbatim|lstlisting|minted|comment|filecontents\*?|alltt|pycode)\}"
    r"(?:\[[^\]\n]*\])?(?:\{(?P<lang>[\w+#-]*)\})?",
    r"\\end\{<tag>\}",
    "<lang>",
)
_TEX_MATH = (
    region(r"\$\$", r"\$\$", "latex-math"),
    region(r"\$", r"\$|(?=\n[ \t]*\n)", "latex-math"),
    region(r"\\\[", r"\\\]", "latex-math"),
    region(r"\\\(", r"\\\)|(?=\n[ \t]*\n)", "latex-math"),
)
_TEX_ESCAPES = r"\\[^\w\s\[\]()]"
_TEX_LITERALS = (
    r"\\(?:verb\*?|lstinline)(?P<q>[^\w\s{])[^\n]*?(?P=q)",
    r"\\(?:url|href|path|nolinkurl)\{[^{}\n]*\}",
)
LATEX = replace(
    TEXT,
    pairs=(line_comment("%"), _VERBATIM, _ENVIRONMENT, *_TEX_MATH),
    brackets="{}",
    skipped=(_TEX_ESCAPES, *_TEX_LITERALS),
)
LATEX_MATH = replace(LATEX, pairs=(line_comment("%"), _ENVIRONMENT), skipped=(_TEX_ESCAPES,))
BIBTEX = replace(TEXT, blocks="brace", pairs=(line_comment("%"), string('"')), brackets="{}")
_RST_CODE = region(
    r"^(?P<indent>[ \t]*)\.\. (?:code-block|code|sourcecode|raw|parsed-literal)::"
    r"[ \t]*(?P<lang>[\w+#-]*)[^\n]*",
    NO_DEEPER,
    "<lang>",
    begins_below=True,
)
RESTRUCTURED = replace(TEXT, pairs=(_RST_CODE,))
ASCIIDOC = replace(
    TEXT,
    pairs=(
        _FENCE,
        region(r"^(?P<tag>/{4,})(?=\n)", r"^<tag>(?=\n)", "plaintext", begins_below=True),
        replace(
            region(
                r"^(?P<tag>-{4,}|\.{4,}|\+{4,})[ \t]*(?=\n)",
                r"^<tag>[ \t]*(?=\n)",
                "<lang>",
                begins_below=True,
            ),
            named_above=re.compile(r"\[source,[ \t]*([\w+#-]+)[^\]\n]*\]\n(?:\.[^\n]*\n)?\Z"),
        ),
        region(r"^(?P<tag>[|,:!]={3,})[ \t]*(?=\n)", r"^<tag>[ \t]*(?=\n)", "asciidoc", begins_below=True),
        region(
            # One of these lines under a text would make it a title.
            r"(?:\A|(?<=\n\n)|(?<=\]\n))^(?P<tag>={4,}|\*{4,}|_{4,}|--)[ \t]*(?=\n)",
            r"^<tag>[ \t]*(?=\n)",
            "asciidoc",
            begins_below=True,
        ),
    ),
    has_fences=True,
)
ORG = replace(
    TEXT,
    pairs=(
        region(
            r"^[ \t]*#\+[bB][eE][gG][iI][nN]_(?P<tag>\w+)(?:[ \t]+(?P<lang>[\w+#-]+))?[^\n]*",
            r"^[ \t]*#\+[eE][nN][dD]_<tag>",
            "<lang>",
            begins_below=True,
        ),
        region(r"^[ \t]*:(?!END:)[A-Z_]+:[ \t]*(?=\n)", r"^[ \t]*:END:", "org", begins_below=True),
    ),
)
TYPST = Language(
    pairs=(
        _FENCE,
        line_comment(r"(?<!:)//"),
        block_comment("/*", "*/"),
        region(r"\$", r"\$", "latex-math"),
        replace(string('"'), before=re.compile(r"[(,:=][ ]?\Z")),
    ),
    skipped=(*ESCAPED, _INLINE_CODE),
    has_fences=True,
)
COMMIT = replace(TEXT, pairs=(line_comment(r"^#"),))

_VALUE_BEFORE = r"(?<![^\s\[{,:(=-])"
_YAML_SHELL = (
    r"run|script|before_script|after_script|command|commands|bash|sh|shell|inline|cmd|install|entrypoint"
)
_SCALAR = r"[|>][-+0-9]{0,2}[ \t]*(?:#[^\n]*)?(?=\n)"
# The names of the language of a workflow's step, on a line above its script.
_STEP_LANGUAGE = re.compile(
    r"(?:(?P<javascript>actions/github-script)@"
    r"|\bshell:[ ]*(?:(?P<python>python)|(?P<powershell>pwsh|powershell)|(?P<bat>cmd)))[^\n]*\n"
    r"(?:(?![ ]*-[ ])[^\n]*\n){0,8}\Z"
)
_YAML_KEY = r"^(?P<indent>[ ]*+(?:-[ ]++)*+)"
_YAML_SCRIPT = region(
    rf"{_YAML_KEY}(?:{_YAML_SHELL}):[ \t]+{_SCALAR}", NO_DEEPER, "shellscript", begins_below=True
)
YAML = Language(
    blocks="indent",
    pairs=(
        line_comment(r"(?<!\S)#"),
        replace(
            _YAML_SCRIPT,
            opens=rf"^(?P<indent>[ ]*+)(?:run|script):[ \t]+{_SCALAR}",
            holds="<lang>",
            named_above=_STEP_LANGUAGE,
            otherwise=_YAML_SCRIPT,
        ),
        _YAML_SCRIPT,
        region(rf"{_YAML_KEY}(?P<lang>[\w.-]+\.\w+):[ \t]+{_SCALAR}", NO_DEEPER, "<lang>", begins_below=True),
        region(rf"{_YAML_KEY}[^\s#:][^\n:]*:[ \t]+{_SCALAR}", NO_DEEPER, "plaintext", begins_below=True),
        region(rf"^(?P<indent>[ ]*)-[ ]+{_SCALAR}", NO_DEEPER, "shellscript", begins_below=True),
        string('"', opens=_VALUE_BEFORE + '"'),
        string("'", opens=_VALUE_BEFORE + "'", escapes=("''",)),
    ),
    opener=re.compile(r":$"),
    line=re.compile(r"[ ]*(?:[-#\[\]{}&*!?%|>.\"']|[^\s#][^\n]*?:(?:\s|\Z)|[^\n]*[{<][{%<])"),
    word_marks="_-",
    has_dashes=True,
    marks_blocks=True,
)
TOML = Language(
    pairs=(line_comment("#"), long_string('"""'), long_string("'''"), string('"'), string("'", escapes=())),
    line=re.compile(r"[ \t]*(?:[#\[\]{}]|[\w\"'][^\n]*=)"),
    skipped=(r'(?<=""")"', r"(?<=''')'"),  # the last three of more quotes close a string
    word_marks="_-",
)
INI = replace(TOML, line=None, skipped=(), pairs=(line_comment(r"^[ \t]*;"), line_comment(r"^[ \t]*#")))
DOTENV = replace(INI, pairs=(line_comment(r"(?<!\S)#"), long_string('"'), string("'")))
GHERKIN = Language(
    blocks="indent",
    pairs=(line_comment(r"^[ \t]*#"), long_string('"""'), string('"')),
    opener=re.compile(r":$"),
)
UNKNOWN = Language(pairs=PLAIN_STRINGS, skipped=(APOSTROPHE,))
EXPRESSION = replace(
    UNKNOWN,
    pairs=(*PLAIN_STRINGS, code_in("{", "}")),
    brackets="()[]",
)

BY_IDENTIFIER: dict[str, Language] = {
    "plaintext": PLAIN,
    **dict.fromkeys(("csv", "log", "diff", "mediawiki", "git-rebase", "ignore", "mermaid", "po"), TEXT),
    **dict.fromkeys(("markdown", "rmd"), MARKDOWN),
    **dict.fromkeys(("latex", "tex"), LATEX),
    **dict.fromkeys(("yaml", "dockercompose"), YAML),
    **dict.fromkeys(("ini", "properties"), INI),
    **dict.fromkeys(("gherkin", "robot"), GHERKIN),
    "mdx": MDX,
    "latex-math": LATEX_MATH,
    "bibtex": BIBTEX,
    "restructuredtext": RESTRUCTURED,
    "asciidoc": ASCIIDOC,
    "org": ORG,
    "typst": TYPST,
    "git-commit": COMMIT,
    "toml": TOML,
    "dotenv": DOTENV,
    "expression": EXPRESSION,
}
