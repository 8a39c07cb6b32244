"""Owns what the rules need to know of each language: comments, quotes, how blocks begin and end.

Knows no grammar: that is `syntax`. Languages are named by their LSP ids. A table instead of grammars, because
the rules ask how unfinished text goes on, also in languages that no grammar is shipped for; see `lexer`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

Blocks = Literal["indent", "brace", "end", "tag", "text"]

_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Quote:
    """A kind of string. `interpolation` opens code inside it, closed by a brace."""

    open: str
    close: str = ""
    is_multiline: bool = False
    has_escapes: bool = True
    interpolation: str = ""
    pattern: str = ""  # regular expression of the opening mark where its text is not enough


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """One family of languages.

    `opener` finds the end of a line that begins a block without a bracket, `unfinished` the end of a
    line whose statement goes on, `prelude` a line that belongs to the statement after it. A next line
    that begins with a match of `leading` continues the statement before it.
    """

    blocks: Blocks = "brace"
    line_comments: tuple[str, ...] = ()
    comment_pattern: str = ""  # regular expression of the last line comment mark, as in `Quote.pattern`
    block_comments: tuple[tuple[str, str], ...] = ()
    quotes: tuple[Quote, ...] = (Quote('"'), Quote("'"))
    has_brackets: bool = True
    has_regex: bool = False
    skipped: str = ""
    opener: re.Pattern[str] = _NEVER
    unfinished: re.Pattern[str] = re.compile(r"\\$")
    prelude: re.Pattern[str] = _NEVER
    leading: re.Pattern[str] | None = None
    clauses: frozenset[str] = frozenset()
    closers: frozenset[str] = frozenset()
    label: re.Pattern[str] = _NEVER  # a line up to a closing bracket that closes nothing: a shell pattern
    word_marks: str = "_"
    indents_with_tabs: bool = False
    has_fixed_indents: bool = False  # tabs and spaces mean different things
    has_dashes: bool = False  # a dash begins an item, and what follows it is indented by it too
    holds_text: bool = False  # text of any kind may stand in what the scan takes for code: heredocs, scalars
    mark_ends: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        ends = dict(self.block_comments) | {q.open: q.close or q.open for q in self.quotes}
        object.__setattr__(self, "mark_ends", ends)


_SLASHES: tuple[tuple[str, str], ...] = (("/*", "*/"),)
_BRACE_UNFINISHED = re.compile(r"(?:(?<!\+)\+|(?<!-)-|[*/%&|^=<?.,:!\\]|[-=]>)$")
_BRACE_LEADING = re.compile(
    r"[.?:&|+*/=<>{,-]|(?:else|catch|finally|while|extends|implements|throws|where)\b"
)
_CLAUSES = frozenset({"else", "catch", "finally", "while", "case", "default"})

_C_LIKE = Language(
    line_comments=("//",),
    block_comments=_SLASHES,
    opener=re.compile(r"(?:^\s*(?:case\b.*|default\s*|public|private|protected|[A-Za-z_]\w*)):$"),
    unfinished=_BRACE_UNFINISHED,
    prelude=re.compile(r"^\s*@\w[\w.]*(?:\(.*\))?\s*$|^\s*template\s*<.*>\s*$"),
    leading=_BRACE_LEADING,
    clauses=_CLAUSES,
    skipped=r"\b\d[\d']*'\d",
)
_JAVASCRIPT = replace(
    _C_LIKE,
    quotes=(Quote('"'), Quote("'"), Quote("`", is_multiline=True, interpolation="${")),
    has_regex=True,
    skipped="",
    word_marks="_$",
)
_PYTHON = Language(
    blocks="indent",
    line_comments=("#",),
    quotes=(
        Quote('"""', is_multiline=True),
        Quote("'''", is_multiline=True),
        Quote('"'),
        Quote("'"),
    ),
    opener=re.compile(r":$"),
    prelude=re.compile(r"^\s*@\w"),
    clauses=frozenset({"else", "elif", "except", "finally", "case"}),
)
_GO = replace(
    _C_LIKE,
    quotes=(Quote('"'), Quote("'"), Quote("`", is_multiline=True, has_escapes=False)),
    leading=None,
    skipped="",
    indents_with_tabs=True,
)
_RUST = replace(
    _C_LIKE,
    quotes=(
        *(Quote(f'r{h}"', f'"{h}', is_multiline=True, has_escapes=False) for h in ("##", "#", "")),
        Quote('"', is_multiline=True),
        Quote("'", pattern=r"'(?!\w)"),
    ),
    prelude=re.compile(r"^\s*#!?\[.*\]\s*$"),
    skipped=r"'\w'",
)
_JAVA = replace(_C_LIKE, quotes=(Quote('"""', is_multiline=True), Quote('"'), Quote("'")), skipped="")
_CSHARP = replace(
    _JAVA,
    quotes=(
        Quote('"""', is_multiline=True),
        Quote('@"', '"', is_multiline=True, has_escapes=False),
        *_C_LIKE.quotes,
    ),
    prelude=re.compile(r"^\s*\[[A-Za-z].*\]\s*$"),
)
_PHP = replace(
    _C_LIKE,
    line_comments=("//", "#"),
    comment_pattern=r"#(?!\[)",
    quotes=(Quote('"', is_multiline=True), Quote("'", is_multiline=True)),
    skipped="",
    word_marks="_$",
    holds_text=True,
)
_CSS = Language(
    block_comments=_SLASHES,
    unfinished=re.compile(r"[,:>+~\\]$"),
    word_marks="_-",
)
_SCSS = replace(_CSS, line_comments=("//",), skipped=r"://", word_marks="_-$@")
_RUBY = Language(
    blocks="end",
    line_comments=("#",),
    quotes=(
        Quote('"', is_multiline=True, interpolation="#{"),
        Quote("'", is_multiline=True),
        Quote("`", is_multiline=True, interpolation="#{"),
    ),
    has_regex=True,
    opener=re.compile(
        r"^\s*(?:def(?!.*\)\s*=\s)|class|module|if|unless|while|until|for|case|begin|when|else|elsif|rescue|ensure)\b"
        r"(?!.*\bend$)|\b(?:do|then)(?:\s*\|[^|]*\|)?$|=\s*(?:if|case|begin)\b[^;]*$"
    ),
    unfinished=re.compile(r"(?:[-+*/&|=<>.,\\]|\b(?:and|or|not))$"),
    leading=re.compile(r"\.|&\."),
    clauses=frozenset({"else", "elsif", "rescue", "ensure", "when", "in"}),
    closers=frozenset({"end"}),
    holds_text=True,
)
_LUA = Language(
    blocks="end",
    line_comments=("--",),
    block_comments=(("--[[", "]]"),),
    quotes=(Quote("[[", "]]", is_multiline=True, has_escapes=False), Quote('"'), Quote("'")),
    opener=re.compile(r"\b(?:do|then|else|repeat)$|\bfunction\b[^()]*\([^()]*\)$"),
    unfinished=re.compile(r"(?:[-+*/%^=<>~,]|\.\.|\b(?:and|or|not|return))$"),
    clauses=frozenset({"else", "elseif"}),
    closers=frozenset({"end", "until"}),
)
_SHELL = Language(
    blocks="end",
    line_comments=("#",),
    comment_pattern=r"(?<![^\s;])#",
    quotes=(
        Quote('"', is_multiline=True, interpolation="$("),
        Quote("'", is_multiline=True, has_escapes=False),
    ),
    skipped=r"\\.",
    opener=re.compile(r"\b(?:do|then|else)$|\bin$|^\s*[^\s()]+\)$"),
    label=re.compile(r"^\s*(?:;;\s*)?[^\s()]+\)$"),
    unfinished=re.compile(r"(?:\\|\||&&)$"),
    clauses=frozenset({"else", "elif"}),
    closers=frozenset({"fi", "done", "esac", ";;"}),
    word_marks="_-",
    holds_text=True,
)
_YAML = Language(
    blocks="indent",
    line_comments=("#",),
    comment_pattern=r"(?<!\S)#",
    opener=re.compile(r":$"),
    skipped=r"\w'",
    word_marks="_-",
    has_dashes=True,
    holds_text=True,
)
_TOML = Language(
    line_comments=("#",),
    quotes=(Quote('"""', is_multiline=True), Quote("'''", is_multiline=True), Quote('"'), Quote("'")),
    word_marks="_-",
)
_MARKUP = Language(
    blocks="tag",
    block_comments=(("<!--", "-->"),),
    quotes=(Quote('="', '"', is_multiline=True), Quote("='", "'", is_multiline=True)),
    has_brackets=False,
    opener=re.compile(
        r"<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)[A-Za-z][\w:.-]*(?:\s[^<>]*)?(?<!/)>$"
    ),
    word_marks="_-",
    holds_text=True,
)
_TEXT = Language(blocks="text", quotes=(), has_brackets=False, holds_text=True)
_SQL = replace(_C_LIKE, line_comments=("--",), prelude=_NEVER, opener=_NEVER, skipped="")
_JSON = replace(_CSS, quotes=(Quote('"'),), block_comments=(), unfinished=re.compile(r":$"))
_JSONC = replace(_JSON, line_comments=("//",), block_comments=_SLASHES)
_UNKNOWN = Language(skipped=r"\w'", holds_text=True)

_BY_ID: dict[str, Language] = {
    **dict.fromkeys(
        ("javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"), _JAVASCRIPT
    ),
    **dict.fromkeys(("c", "cpp", "cuda-cpp", "objective-c", "objective-cpp", "glsl", "hlsl", "zig"), _C_LIKE),
    **dict.fromkeys(("java", "kotlin", "scala", "swift", "dart", "groovy"), _JAVA),
    **dict.fromkeys(("shellscript", "bash", "sh", "zsh"), _SHELL),
    **dict.fromkeys(("html", "xml", "handlebars", "xsl"), _MARKUP),
    **dict.fromkeys(("scss", "less"), _SCSS),
    **dict.fromkeys(("plaintext", "markdown", "latex", "tex", "restructuredtext", "git-commit"), _TEXT),
    **dict.fromkeys(("toml", "ini", "properties"), _TOML),
    **dict.fromkeys(("yaml", "dockercompose"), _YAML),
    **dict.fromkeys(("python", "cython", "starlark", "nim", "gdscript"), _PYTHON),
    "dockerfile": replace(_SHELL, blocks="brace", indents_with_tabs=True),
    "makefile": replace(_SHELL, blocks="brace", has_fixed_indents=True),
    "csharp": _CSHARP,
    "css": _CSS,
    "go": _GO,
    "json": _JSON,
    "jsonc": _JSONC,
    "lua": _LUA,
    "php": _PHP,
    "ruby": _RUBY,
    "rust": _RUST,
    "sql": _SQL,
}


def language_of(language_id: str) -> Language:
    """What is known of an LSP language id; brackets, quotes and indentation alone if it is unknown."""
    return _BY_ID.get(language_id, _UNKNOWN)
