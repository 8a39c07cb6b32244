"""Cursor positions in everyday files, each with the original text.

Half of them are written for this benchmark (`places/*.txt`), in four kinds: a block that closes on a later
line, a rest of the line that closes something, text that holds quotes, and a region within another language.
The other half are drawn at random from example files of many languages in one source archive.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PLACES = Path(__file__).parent / "places"
_HEADER = re.compile(r"^=== (\S+) (\S+)\n", re.MULTILINE)
_MARK = re.compile("⟦(.*?)⟧", re.DOTALL)
_MAX_CHARS = 60_000
_MIN_LINE_CHARS = 4
_MAX_LINE_CHARS = 200
_RANDOM = "random"

# Language identifier of VS Code (or of the most used extension), by the ending of an example file.
LANGUAGE_OF_ENDING = {
    ".as": "actionscript", ".adb": "ada", ".sh": "shellscript", ".bat": "bat", ".bib": "bibtex", ".c": "c",
    ".clj": "clojure", ".cmake": "cmake", ".coffee": "coffeescript", ".cpp": "cpp", ".cr": "crystal",
    ".cs": "csharp", ".css": "css", ".cu": "cuda-cpp", ".d": "d", ".dart": "dart", ".ex": "elixir",
    ".elm": "elm", ".erl": "erlang", ".fs": "fsharp", ".f90": "fortran-modern", ".go": "go",
    ".graphql": "graphql", ".groovy": "groovy", ".haml": "haml", ".handlebars": "handlebars",
    ".hs": "haskell", ".html": "html", ".ini": "ini", ".java": "java", ".js": "javascript",
    ".json": "json", ".jsonc": "jsonc", ".jsx": "javascriptreact", ".jl": "julia", ".kt": "kotlin",
    ".less": "less", ".lua": "lua", ".mk": "makefile", ".md": "markdown", ".m": "objective-c",
    ".ml": "ocaml", ".nim": "nim", ".nix": "nix", ".nginx": "nginx", ".pas": "pascal", ".pl": "perl",
    ".php": "php", ".proto": "proto", ".ps1": "powershell", ".properties": "properties", ".pug": "jade",
    ".py": "python", ".pyx": "cython", ".r": "r", ".rb": "ruby", ".rs": "rust", ".rst": "restructuredtext",
    ".scala": "scala", ".scm": "scheme", ".scss": "scss", ".sol": "solidity", ".sql": "sql",
    ".swift": "swift", ".tcl": "tcl", ".tex": "latex", ".tf": "terraform", ".toml": "toml",
    ".ts": "typescript", ".tsx": "typescriptreact", ".twig": "twig", ".txt": "plaintext", ".v": "verilog",
    ".vb": "vb", ".vim": "viml", ".vue": "vue", ".xml": "xml", ".xsl": "xsl", ".yaml": "yaml",
    ".zig": "zig",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CursorCase:
    """One cursor: the document before it, the original text, and the document after it."""

    kind: str
    language: str
    file: str
    prefix: str
    truth: str
    suffix: str

    @property
    def key(self) -> str:
        """The name of the position in files of answers and of texts."""
        return f"{self.kind} {self.file} {len(self.prefix)} {self.prefix[-40:]}"

    @property
    def is_random(self) -> bool:
        """Whether the position was drawn, not written."""
        return self.kind == _RANDOM


def written_cases() -> list[CursorCase]:
    """All positions in `places/*.txt`: `⟦truth⟧` stands where the cursor was."""
    return [case for path in sorted(_PLACES.glob("*.txt")) for case in _cases_in(path)]


def random_cases(root: Path, num_cases: int, seed: int) -> list[CursorCase]:
    """Positions at the start of a line or within it, in files below `root`, as many in each language."""
    generator = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    by_language: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*")):
        language = LANGUAGE_OF_ENDING.get(path.suffix)
        if language is not None and path.is_file():
            by_language.setdefault(language, []).append(path)
    drawn: list[CursorCase] = []
    while len(drawn) < num_cases:
        for language in sorted(by_language):
            case = _drawn_case(generator, language, generator.choice(by_language[language]), root)
            if case is not None and len(drawn) < num_cases:
                drawn.append(case)
    return drawn


def _cases_in(path: Path) -> Iterator[CursorCase]:
    parts = _HEADER.split(path.read_text(encoding="utf-8"))[1:]
    for language, file, marked in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        text = marked.rstrip("\n") + "\n"
        for mark in _MARK.finditer(text):
            truth = mark[1].lstrip(" \t") if mark[1].strip() else mark[1]
            indent = mark[1][: len(mark[1]) - len(truth)]
            before = _MARK.sub(r"\1", text[: mark.start()]) + indent
            yield CursorCase(path.stem, language, file, before, truth, _MARK.sub(r"\1", text[mark.end() :]))


def _drawn_case(generator: random.Random, language: str, path: Path, root: Path) -> CursorCase | None:
    text = path.read_bytes()[:_MAX_CHARS].decode("utf-8", "replace").replace("\r\n", "\n")
    if "\0" in text or "\r" in text:
        return None
    lines = text.split("\n")
    at = generator.randrange(len(lines))
    line = lines[at]
    if not _MIN_LINE_CHARS <= len(line.strip()) <= len(line) <= _MAX_LINE_CHARS:
        return None
    indent = len(line) - len(line.lstrip())
    column = generator.choice([indent, generator.randrange(indent, len(line))])
    before = "\n".join([*lines[:at], line[:column]])
    file = path.relative_to(root).as_posix()
    after = "".join("\n" + below for below in lines[at + 1 :])
    return CursorCase(_RANDOM, language, file, before, line[column:], after)
