"""The grammars that are shipped, by canonical language identifier, and the time limit of a parser."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache

from tree_sitter import Language, Parser, Tree
from tree_sitter_language_pack import SupportedLanguage, get_language

# The grammar of the language pack for each canonical language identifier.
_GRAMMARS: dict[str, SupportedLanguage] = {
    "ada": "ada", "bash": "bash", "c": "c", "clojure": "clojure", "cmake": "cmake", "cpp": "cpp",
    "csharp": "csharp", "css": "css", "cuda-cpp": "cuda", "cython": "python", "d": "d", "dart": "dart",
    "dockercompose": "yaml", "dockerfile": "dockerfile", "elixir": "elixir", "elm": "elm", "erlang": "erlang",
    "fortran": "fortran", "fsharp": "fsharp", "gdscript": "gdscript", "glsl": "glsl", "go": "go",
    "graphql": "graphql", "groovy": "groovy", "haskell": "haskell", "hcl": "hcl", "html": "html",
    "ini": "ini", "java": "java", "javascript": "javascript", "javascriptreact": "javascript", "json": "json",
    "jsonc": "json", "julia": "julia", "kotlin": "kotlin", "latex": "latex", "less": "scss",
    "lisp": "commonlisp", "lua": "lua", "makefile": "make", "nim": "nim", "nix": "nix", "objective-c": "objc",
    "ocaml": "ocaml", "pascal": "pascal", "perl": "perl", "php": "php", "powershell": "powershell",
    "prisma": "prisma", "properties": "properties", "proto": "proto", "python": "python", "r": "r",
    "ruby": "ruby", "rust": "rust", "scala": "scala", "scheme": "scheme", "scss": "scss",
    "shellscript": "bash", "solidity": "solidity", "sql": "sql", "starlark": "starlark", "svelte": "svelte",
    "swift": "swift", "systemverilog": "verilog", "tcl": "tcl", "terraform": "terraform", "toml": "toml",
    "typescript": "typescript", "typescriptreact": "tsx", "vue": "vue", "xml": "xml", "xsl": "xml",
    "yaml": "yaml", "zig": "zig",
}  # fmt: skip

# Languages whose definitions, uses and edits are read from trees; the others are only checked for errors.
LANGUAGES = frozenset({
    "bash", "c", "cpp", "csharp", "css", "go", "html", "java", "javascript", "javascriptreact", "json",
    "jsonc", "lua", "php", "python", "ruby", "rust", "shellscript", "typescript", "typescriptreact",
})  # fmt: skip
# The worst that a search found takes 0.4 s and 80 MB until it is given up.
_STEP_BYTES = 2_048
_MIN_STEP_BYTES = 512
_MAX_STEP_S = 0.01  # code takes a step a tenth of that
_LINE = re.compile(rb"\n([ \t]*)(?=\S)")


@dataclass(frozen=True, slots=True)
class Begun:
    """The tree of the first `num_bytes` of a text."""

    tree: Tree
    num_bytes: int


def new_parser(language: str) -> Parser | None:
    """A parser of an LSP language id, for one thread; None without a grammar for it."""
    grammar = _grammar(language)
    return Parser(grammar) if grammar is not None else None


def parse_within(parser: Parser, source: bytes, max_s: float, old: Begun | None = None) -> Tree | None:
    """Parse a text in UTF-8; None if it takes more than `max_s` of this thread's processor time.

    Reuses the tree `old` of its beginning.

    Text that is not code of its language takes the parser time and memory that grow with the square of the
    unparsable part. Meanwhile the parser holds the interpreter and checks nothing. So the text is passed in
    steps, each with the tree of those before; not by a function, because the parser never frees its results.
    Other programs on the machine change no answer.
    """
    begun_s = before_s = time.thread_time()
    tree, num_done = (old.tree.copy(), old.num_bytes) if old else (None, 0)
    while True:
        end = _end_of_step(source, num_done)
        if tree is None:
            tree = parser.parse(source[:end])
        else:
            old_end, new_end = _point(source, num_done), _point(source, end)
            tree.edit(num_done, num_done, end, old_end, old_end, new_end)
            tree = parser.parse(source[:end], tree)
        now_s = time.thread_time()
        if now_s - begun_s > max_s or now_s - before_s > _MAX_STEP_S:
            return None
        if end == len(source):
            return tree
        num_done, before_s = end, now_s


def _end_of_step(source: bytes, begin: int) -> int:
    """Return the end of a step: the start of its least indented line, where the most has been closed.

    A class that is cut within a method has an error, and the next step reads all of it again.
    """
    end = begin + _STEP_BYTES
    if end >= len(source):
        return len(source)
    lines = _LINE.finditer(source, begin + _MIN_STEP_BYTES - 1, end)
    return -min(((len(line[1]), -line.start() - 1) for line in lines), default=(0, -end))[1]


def _point(source: bytes, at: int) -> tuple[int, int]:
    return source.count(b"\n", 0, at), at - source.rfind(b"\n", 0, at) - 1


@cache
def _grammar(language: str) -> Language | None:
    return get_language(_GRAMMARS[language]) if language in _GRAMMARS else None
