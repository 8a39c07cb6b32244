"""Faults of a document after a suggestion is accepted, by rules without a language's details.

Each rule compares the document with the suggestion to the original, so that the author's text is never a
fault.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from tree_sitter import Parser

from tests.quality.everyday.cases import CursorCase

_BRACKETS = ("()", "[]", "{}")
_DELIMITERS = (
    ("{{", "}}"),
    ("{%", "%}"),
    ("<%", "%>"),
    ("<!--", "-->"),
    ("{#", "#}"),
    ("<?", "?>"),
    ("/*", "*/"),
)
_CHAR_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)'")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ENUMERATOR = re.compile(r"(?:(?<=\s)|^)\w{1,3}\)", re.MULTILINE)
_EMPTY_COMMENT = re.compile(r"(?:;{1,3}|//|\#|\*|--|%)\Z")
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~)", re.MULTILINE)
_DISPLAY_MATH = re.compile(r"\$\$")
_CIRCLE = re.compile(r"(.{1,60}?)\1{4,}", re.DOTALL)
_MIN_CIRCLE_CHARS = 24
_MAX_ERRORS_PER_LINE = 0.5
_NUM_FEW_ERRORS = 20
_PROSE = frozenset({"markdown", "mdx", "latex", "restructuredtext", "plaintext", "git-commit"})
_MARKED = frozenset({"markdown", "mdx", "quarto", "rmd", "restructuredtext", "org", "typst"})
_STAR = re.compile(r"\*(?=\S)|(?<=\S)\*")  # one between blanks multiplies
_MARKS = " \t)]}>*_~`$|'\".,;:"
_MIN_TAIL_CHARS = 12
_DOLLAR_QUOTED = _PROSE | {"sql", "rmd", "quarto"}
_MARKDOWN = frozenset({"markdown", "mdx"})
_BARS = frozenset({"rust", "ruby", "erb"})
_TAGGED = frozenset(
    {"html", "xml", "vue", "svelte", "php", "jinja-html", "erb", "handlebars", "liquid", "astro"}
)
_OPEN_TAG = re.compile(r"<([A-Za-z][\w.-]*)(?:\s[^<>]*)?(?<!/)>")
_CLOSE_TAG = re.compile(r"</([A-Za-z][\w.-]*)\s*>")
# `/*` belongs to file names in them, or to operators
_WITHOUT_SLASH_COMMENTS = frozenset(
    {"dockerfile", "elixir", "makefile", "python", "r", "ruby", "shellscript", "yaml"}
)
_SCRIPTS = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact"})
# A product with a regular expression: `a */b/.exec(c)`.
_REGEX_FACTOR = re.compile(r"\*/(?![*/\s])(?:[^/\\\n\[]|\\.|\[[^\]\n]*\])+/[a-z]*(?=[.,;)])")
_PACK = "tree_sitter_language_pack"
_VOID_TAGS = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source"})

# The grammar of the language pack for each language whose documents are parsed.
_GRAMMARS: Mapping[str, str] = MappingProxyType(
    {
        "c": "c", "clojure": "clojure", "cmake": "cmake", "cpp": "cpp", "csharp": "csharp", "css": "css",
        "dart": "dart", "elixir": "elixir", "elm": "elm", "erlang": "erlang", "fortran-modern": "fortran",
        "go": "go", "graphql": "graphql", "groovy": "groovy", "haskell": "haskell", "html": "html",
        "ini": "ini", "java": "java", "javascript": "javascript", "javascriptreact": "javascript",
        "json": "json", "julia": "julia", "kotlin": "kotlin", "lua": "lua", "makefile": "make",
        "ocaml": "ocaml", "pascal": "pascal", "perl": "perl", "php": "php", "python": "python", "r": "r",
        "ruby": "ruby", "rust": "rust", "scala": "scala", "scheme": "scheme", "scss": "scss",
        "shellscript": "bash", "solidity": "solidity", "swift": "swift", "terraform": "terraform",
        "toml": "toml", "typescript": "typescript", "typescriptreact": "tsx", "vue": "vue",
        "svelte": "svelte", "xml": "xml", "yaml": "yaml", "zig": "zig", "dockerfile": "dockerfile",
    }
)  # fmt: skip

# The pack's grammars reject a macro that became a keyword with Rust 2018, and lines that go on, as in many
# dialects of INI. If a document has them already, it is parsed with accepted text in their place.
_UNKNOWN: Mapping[str, tuple[re.Pattern[str], str]] = MappingProxyType(
    {"rust": (re.compile(r"\btry!"), "tri!"), "ini": (re.compile(r"\\\n[ \t]*"), " ")}
)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A suggestion as an editor inserts it: it replaces `num_replaced` characters after the cursor."""

    text: str
    num_replaced: int = 0


def faults(case: CursorCase, accepted: Accepted) -> list[str]:
    """The names of all rules that the document breaks with the suggestion in it; none for no suggestion."""
    if not accepted.text and not accepted.num_replaced:
        return []
    replaced = case.suffix[: accepted.num_replaced]
    checks = {
        "parse": _breaks_syntax(case, accepted),
        "repeat": _repeats_following_line(case, accepted),
        "pairs": _breaks_pairs(case, accepted.text, replaced),
        "line": _breaks_line(case, accepted),
        "indentation": _has_other_indentation(case, accepted.text),
        "line end": "\r" in accepted.text,
        "fence": case.language not in _PROSE
        and len(_FENCE.findall(accepted.text)) > len(_FENCE.findall(case.truth)),
        "circle": _is_circular(accepted.text) and not _is_circular(case.truth),
    }
    return [name for name, is_broken in checks.items() if is_broken]


def _breaks_syntax(case: CursorCase, accepted: Accepted) -> bool:
    """Whether a parser finds more errors than in the original.

    An original with errors everywhere, such as several documents in one, is none of the grammar's language.
    """
    num_errors = _num_errors(case, Accepted(case.truth))
    num_lines = (case.prefix + case.truth + case.suffix).count("\n")
    is_known = num_errors <= max(_NUM_FEW_ERRORS, _MAX_ERRORS_PER_LINE * num_lines)
    return is_known and _num_errors(case, accepted) > num_errors


def _num_errors(case: CursorCase, accepted: Accepted) -> int:
    grammar = _GRAMMARS.get(case.language)
    parser = _parser(grammar) if grammar else None
    if parser is None:
        return 0
    text = _as_known(case, case.prefix + accepted.text + case.suffix[accepted.num_replaced :])
    waiting, num_errors = [parser.parse(text.encode("utf-8", "replace")).root_node], 0
    while waiting:
        node = waiting.pop()
        num_errors += node.is_error or node.is_missing
        waiting += [child for child in node.children if child.has_error]
    return num_errors


def _as_known(case: CursorCase, text: str) -> str:
    """Return a text without what the grammar does not know and the document around the cursor has."""
    unknown, known = _UNKNOWN.get(case.language, (None, ""))
    has_unknown = unknown is not None and (unknown.search(case.prefix) or unknown.search(case.suffix))
    return unknown.sub(known, text) if unknown is not None and has_unknown else text


@lru_cache(maxsize=64)
def _parser(grammar: str) -> Parser | None:
    """The parser of a grammar; None where the language pack is missing."""
    if reason_not_parsed():
        return None
    parser: Parser = importlib.import_module(_PACK).get_parser(grammar)
    return parser


@lru_cache(maxsize=1)
def reason_not_parsed() -> str:
    """Why no file is parsed, so that the fault `parse` cannot be found; empty if files are parsed."""
    try:
        importlib.import_module(_PACK)
    except ImportError as error:
        return f"{error}. Install the grammars: pip install tree-sitter-language-pack==0.13.0"
    return ""


def _repeats_following_line(case: CursorCase, accepted: Accepted) -> bool:
    """Whether a written line is the next line of the document, unless the author wrote it twice too."""
    rest, _, below = case.suffix[accepted.num_replaced :].partition("\n")
    following = next((line.rstrip() for line in below.split("\n") if not _is_blank(line)), "")
    if not following:
        return False
    start = case.prefix.rfind("\n") + 1
    written = (case.prefix[start:] + accepted.text + rest).split("\n")
    original = (case.prefix[start:] + case.truth + case.suffix.partition("\n")[0]).split("\n")
    lines, own = ([line.rstrip() for line in side] for side in (written, original))
    return lines.count(following) > own.count(following)


def _breaks_line(case: CursorCase, accepted: Accepted) -> bool:
    """Whether the cursor's line repeats its own rest, or has other cells, emphasis or line breaks than in the
    original; only for a line that stays one.
    """
    if "\n" in accepted.text + case.truth:
        return False
    start, rest = case.prefix.rfind("\n") + 1, case.suffix.partition("\n")[0]
    written = case.prefix[start:] + accepted.text + rest[accepted.num_replaced :]
    original = case.prefix[start:] + case.truth + rest
    tail = rest.strip(_MARKS)
    if len(tail) >= _MIN_TAIL_CHARS and written.count(tail) > original.count(tail):
        return True
    if case.language in _MARKED and original.lstrip().startswith("|"):
        return written.count("|") != original.count("|")
    if case.language in _MARKED:
        return (len(_STAR.findall(written)) - len(_STAR.findall(original))) % 2 != 0
    is_broken = case.language == "latex" and bool(rest[accepted.num_replaced :].strip())
    return is_broken and written.count("\\\\") != original.count("\\\\")


def _is_blank(line: str) -> bool:
    """Whether a line holds nothing, or the mark of a comment alone."""
    return not line.strip() or _EMPTY_COMMENT.match(line.strip()) is not None


def _breaks_pairs(case: CursorCase, written: str, replaced: str) -> bool:
    """Whether pairs are closed otherwise than in the original, with and without those in whole strings."""
    return all(
        _net(case, change(written)) != _plus(_net(case, change(replaced)), _net(case, change(case.truth)))
        for change in (str, _without_strings)
    )


def _without_strings(text: str) -> str:
    return _STRING.sub('""', text)


def _net(case: CursorCase, text: str) -> tuple[int, ...]:
    """For each kind of pair, how many more it opens than it closes; for symmetric ones, odd or even."""
    text = _CHAR_LITERAL.sub("", text)
    if case.language in _PROSE:
        text = _ENUMERATOR.sub("", text)
    counts = [text.count(pair[0]) - text.count(pair[1]) for pair in _BRACKETS]
    counts += [_num_open(case, text, *pair) for pair in _DELIMITERS]
    counts.append(len(_FENCE.findall(text)) % 2)
    counts.append(len(_DISPLAY_MATH.findall(text)) % 2 if case.language in _DOLLAR_QUOTED else 0)
    counts.append(text.count('"') % 2 if case.language not in _PROSE else 0)
    counts.append(text.count("`") % 2 if case.language in _MARKDOWN else 0)
    counts.append(text.count("$") % 2 if case.language in _PROSE else 0)
    counts.append(text.count("|") % 2 if case.language in _BARS else 0)
    is_tagged = case.language in _TAGGED or case.language.endswith("react")
    opened = [name for name in _OPEN_TAG.findall(text) if name.lower() not in _VOID_TAGS]
    counts.append(len(opened) - len(_CLOSE_TAG.findall(text)) if is_tagged else 0)
    return tuple(counts)


def _num_open(case: CursorCase, text: str, first: str, last: str) -> int:
    """Number of delimiters left open; one without an opening mark in the document is an arrow or the like."""
    if first in ("{{", "<!--") and first not in case.prefix + case.truth + case.suffix + text:
        return 0
    if first == "/*" and case.language in _WITHOUT_SLASH_COMMENTS:
        return 0
    if first == "/*" and case.language in _SCRIPTS:
        text = _REGEX_FACTOR.sub("", text)
    return text.count(first) - text.count(last)


def _plus(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The counts of two texts after each other; the symmetric ones modulo 2."""
    num_signed = len(_BRACKETS) + len(_DELIMITERS)
    sums = [one + other for one, other in zip(left, right, strict=True)]
    return tuple(
        total if at < num_signed or at == len(sums) - 1 else total % 2 for at, total in enumerate(sums)
    )


def _has_other_indentation(case: CursorCase, written: str) -> bool:
    """Whether further lines are indented by tabs where the document has spaces, or the other way round.

    Lines that the document has itself are as it indents them. Recipes of makefiles need tabs.
    """
    document = (case.prefix + case.truth + case.suffix).split("\n")
    num_tabs = sum(line.startswith("\t") for line in document)
    num_spaces = sum(line.startswith("  ") for line in document)
    further = [line for line in written.split("\n")[1:] if line.strip() and line not in document]
    if num_tabs > num_spaces:
        return any(line.startswith("    ") for line in further)
    needs_tabs = case.language == "makefile"
    return num_spaces > num_tabs and not needs_tabs and any(line.startswith("\t") for line in further)


def _is_circular(text: str) -> bool:
    return any(len(found[0]) >= _MIN_CIRCLE_CHARS and found[1].strip() for found in _CIRCLE.finditer(text))
