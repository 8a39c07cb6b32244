"""The part of a document in another language that the cursor stands in: a script, a fence, a heredoc."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from completion_engine.cutting.language_names import IDENTIFIERS, canonical_language
from completion_engine.text_window import indent_width

_INDENTED = "indent"  # the part ends at a line that is indented no deeper than its beginning
_HOSTS = {
    "MARKUP": "html vue svelte astro php erb ejs jinja liquid handlebars blade smarty razor xml markdown mdx",
    "PROSE": "markdown mdx rmd quarto plaintext restructuredtext asciidoc typst org",
    "YAML": "yaml dockercompose",
}
# host languages ¦ what opens a part; `lang` names its language ¦ what closes it ¦ its language otherwise
_TABLE = r"""
MARKUP ¦ <script\b[^>]*?(?:lang=["'](?P<lang>\w+)["'][^>]*)?> ¦ </script ¦ javascript
MARKUP ¦ <style\b[^>]*?(?:lang=["'](?P<lang>\w+)["'][^>]*)?> ¦ </style ¦ css
php blade ¦ <\?(?:php\b|=) ¦ \?> ¦ php-code
erb ¦ <%(?!#)[-=]? ¦ -?%> ¦ ruby
ejs ¦ <%(?!#)[-=]? ¦ -?%> ¦ javascript
vue ¦ \{\{ ¦ \}\} ¦ typescript
astro ¦ \A---\n ¦ ^--- ¦ typescript
markdown mdx rmd ¦ \A---\n ¦ ^--- ¦ yaml
markdown mdx ¦ \A\+\+\+\n ¦ ^\+\+\+ ¦ toml
PROSE ¦ ^[ \t>]*(?:[-*+][ ]+|\d+[.)][ ]+)?(?P<tag>`{3,}|~{3,})[ \t]*\{?[.:]?(?P<lang>[\w+#-]*)[^\n`]*\n ¦ ^[ \t>]*<tag> ¦
asciidoc ¦ ^(?:\[source,[ ]*(?P<lang>[\w+#-]+)[^\]\n]*\]\n)?(?P<tag>-{4,}|\.{4,})\n ¦ ^<tag> ¦
latex ¦ \\begin\{(?P<tag>verbatim|lstlisting|minted)\}(?:\[[^\]]*\])?(?:\{(?P<lang>\w+)\})? ¦ \\end\{<tag>\} ¦
org ¦ ^[ \t]*#\+(?i:begin)_src[ \t]+(?P<lang>\S+)[^\n]*\n ¦ ^[ \t]*#\+(?i:end)_src ¦
restructuredtext ¦ ^(?P<indent>[ \t]*)\.\. (?:code-block|code|sourcecode)::[ \t]*(?P<lang>[\w+#-]*)[^\n]*\n ¦ indent ¦
YAML ¦ ^(?P<indent>[ ]*)(?:- )*(?:\w*script|run|command|shell):[ ]+[|>][-+]?[ ]*\n ¦ indent ¦ shellscript
YAML ¦ ^(?P<indent>[ ]*)(?:- )*[\w.-]+\.(?P<lang>\w+):[ ]+[|>][-+]?[ ]*\n ¦ indent ¦
YAML ¦ ^(?P<indent>[ ]*)(?:- )*[^\s#:][^\n:]*:[ ]+[|>][-+]?[ ]*\n ¦ indent ¦
shellscript ruby perl php-code terraform dockerfile ¦ <<[-~]?[ ]*["']?(?P<tag>(?P<lang>[A-Z_]\w*))["']?[^\n]*\n ¦ ^[ \t]*<tag>\b ¦
php-code php ¦ <<<[ ]*["']?(?P<tag>(?P<lang>[A-Z_]\w*))["']?\n ¦ ^[ \t]*<tag>\b ¦
"""  # noqa: E501 - patterns are easier to read on one line


class _Kind(NamedTuple):
    """Parts of some languages: `opens` may name the language by its group `lang`, `closes` uses `<tag>`."""

    hosts: frozenset[str]
    opens: re.Pattern[str]
    closes: str
    language: str


def _kind(row: str) -> _Kind:
    hosts, opens, closes, language = (column.strip() for column in row.split("¦"))
    names = frozenset(_HOSTS.get(hosts, hosts).split())
    return _Kind(names, re.compile(opens, re.MULTILINE), closes, language or "plaintext")


_KINDS = [_kind(row) for row in _TABLE.strip().splitlines()]


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
    line = before.rpartition("\n")[2]
    num_chars = len(before) - len(line)
    part = _part_in(language, before[:num_chars])
    found = _last(part.language, line, 0)
    return Part(found.language, num_chars + found.start, found.closes) if found else part


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
