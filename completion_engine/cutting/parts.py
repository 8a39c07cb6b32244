"""The part of a document in another language that the cursor stands in: a script, a fence, a heredoc."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from completion_engine.cutting.language_names import IDENTIFIERS, canonical_language
from completion_engine.text_window import indent_width

_MAX_CHARS = 20_000  # text before the cursor in which the beginning of a part is searched
_INDENTED = "indent"  # the part ends at a line that is indented no deeper than its beginning
_MARKUP = "html vue svelte astro php erb ejs jinja liquid handlebars blade smarty razor heex xml markdown mdx"
_PROSE = "markdown mdx rmd quarto plaintext restructuredtext asciidoc typst org"


@dataclass(frozen=True, slots=True)
class _Kind:
    """Parts of some languages: `opens` may name the language by its group `lang`, `closes` uses `<tag>`."""

    hosts: frozenset[str]
    opens: re.Pattern[str]
    closes: str
    language: str = ""


def _kind(hosts: str, opens: str, closes: str, language: str = "") -> _Kind:
    return _Kind(frozenset(hosts.split()), re.compile(opens, re.MULTILINE), closes, language)


_HEREDOC = r"<<[-~]?[ ]*[\"']?(?P<tag>(?P<lang>[A-Z_]\w*))[\"']?[^\n]*\n"
_KINDS = (
    _kind(_MARKUP, r"<script\b[^>]*?(?:lang=[\"'](?P<lang>\w+)[\"'][^>]*)?>", "</script", "javascript"),
    _kind(_MARKUP, r"<style\b[^>]*?(?:lang=[\"'](?P<lang>\w+)[\"'][^>]*)?>", "</style", "css"),
    _kind("php blade", r"<\?(?:php\b|=)", r"\?>", "php-code"),
    _kind("erb", r"<%(?!#)[-=]?", r"-?%>", "ruby"),
    _kind("ejs", r"<%(?!#)[-=]?", r"-?%>", "javascript"),
    _kind("vue", r"\{\{", r"\}\}", "typescript"),
    _kind("astro", r"\A---\n", r"^---", "typescript"),
    _kind("markdown mdx rmd", r"\A---\n", r"^---", "yaml"),
    _kind(
        _PROSE,
        r"^[ \t>]*(?:[-*+][ ]+|\d+[.)][ ]+)?(?P<tag>`{3,}|~{3,})[ \t]*\{?[.:]?(?P<lang>[\w+#-]*)[^\n`]*\n",
        r"^[ \t>]*<tag>",
        "plaintext",
    ),
    _kind("markdown mdx", r"\A\+\+\+\n", r"^\+\+\+", "toml"),
    _kind(
        "asciidoc",
        r"^(?:\[source,[ ]*(?P<lang>[\w+#-]+)[^\]\n]*\]\n)?(?P<tag>-{4,}|\.{4,})\n",
        r"^<tag>",
        "plaintext",
    ),
    _kind(
        "latex",
        r"\\begin\{(?P<tag>verbatim|lstlisting|minted)\}(?:\[[^\]]*\])?(?:\{(?P<lang>\w+)\})?",
        r"\\end\{<tag>\}",
        "plaintext",
    ),
    _kind(
        "org", r"^[ \t]*#\+(?i:begin)_src[ \t]+(?P<lang>\S+)[^\n]*\n", r"^[ \t]*#\+(?i:end)_src", "plaintext"
    ),
    _kind(
        "restructuredtext",
        r"^(?P<indent>[ \t]*)\.\. (?:code-block|code|sourcecode)::[ \t]*(?P<lang>[\w+#-]*)[^\n]*\n",
        _INDENTED,
        "plaintext",
    ),
    _kind(
        "yaml dockercompose",
        r"^(?P<indent>[ ]*)(?:- )*(?:\w*script|run|command|shell):[ ]+[|>][-+]?[ ]*\n",
        _INDENTED,
        "shellscript",
    ),
    _kind(
        "yaml dockercompose",
        r"^(?P<indent>[ ]*)(?:- )*[\w.-]+\.(?P<lang>\w+):[ ]+[|>][-+]?[ ]*\n",
        _INDENTED,
        "plaintext",
    ),
    _kind(
        "yaml dockercompose",
        r"^(?P<indent>[ ]*)(?:- )*[^\s#:][^\n:]*:[ ]+[|>][-+]?[ ]*\n",
        _INDENTED,
        "plaintext",
    ),
    _kind("shellscript ruby perl php-code terraform dockerfile", _HEREDOC, r"^[ \t]*<tag>\b", "plaintext"),
    _kind(
        "php-code php", r"<<<[ ]*[\"']?(?P<tag>(?P<lang>[A-Z_]\w*))[\"']?\n", r"^[ \t]*<tag>\b", "plaintext"
    ),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part that begins at an offset of the text before the cursor; `closes` finds its end."""

    language: str
    start: int
    closes: re.Pattern[str] | None

    def end(self, after: str) -> int:
        """Return where the part ends in the text after the cursor: at its closing mark, or the text's end."""
        found = self.closes.search(after) if self.closes else None
        return found.start() if found else len(after)


def part_at(language: str, before: str) -> Part:
    """Return the innermost part at the end of a text, or all of the text."""
    tail = before[-_MAX_CHARS:]
    return _shifted(
        _innermost(language, tail[: tail.rfind("\n") + 1], tail[tail.rfind("\n") + 1 :]),
        len(before) - len(tail),
    )


def _shifted(part: Part, by: int) -> Part:
    return Part(part.language, part.start + by if part.start else 0, part.closes)


def _innermost(language: str, lines: str, line: str) -> Part:
    part = _part_in(language, lines)
    found = _last(part.language, line, 0)
    return Part(found.language, len(lines) + found.start, found.closes) if found else part


@lru_cache(maxsize=8)
def _part_in(language: str, text: str) -> Part:
    part = Part(language, 0, None)
    for _ in range(3):
        found = _last(part.language, text, part.start)
        if found is None:
            break
        part = found
    return part


def _last(language: str, text: str, start: int) -> Part | None:
    """The part that begins last after `start` and does not end in the text."""
    best: Part | None = None
    for kind in _KINDS:
        if language not in kind.hosts:
            continue
        at = start
        while found := kind.opens.search(text, at):
            closes = _closing(kind, found)
            ended = closes.search(text, found.end())
            if ended is None:
                if best is None or found.end() > best.start:
                    best = Part(_language(kind, found), found.end(), closes)
                break
            at = max(ended.end(), at + 1)
    return best


def _closing(kind: _Kind, found: re.Match[str]) -> re.Pattern[str]:
    if kind.closes == _INDENTED:
        return re.compile(rf"^(?=[ \t]{{0,{indent_width(found['indent'])}}}\S)", re.MULTILINE)
    tag = re.escape(found["tag"]) if "<tag>" in kind.closes else ""
    return re.compile(kind.closes.replace("<tag>", tag), re.MULTILINE)


def _language(kind: _Kind, found: re.Match[str]) -> str:
    named = found.groupdict().get("lang")
    name = canonical_language(named) if named else kind.language
    return name if name in IDENTIFIERS or name == kind.language else "plaintext"
