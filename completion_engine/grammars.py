"""Owns the grammars that are shipped, by LSP language id, and which language a file's name says.

Knows nothing of what is read in a tree.
"""

from __future__ import annotations

import importlib
import time
from functools import cache
from typing import Any

from tree_sitter import Language, Parser, Tree

_GRAMMARS: dict[str, tuple[str, str]] = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "css": ("tree_sitter_css", "language"),
    "go": ("tree_sitter_go", "language"),
    "html": ("tree_sitter_html", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "json": ("tree_sitter_json", "language"),
    "jsonc": ("tree_sitter_json", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "shellscript": ("tree_sitter_bash", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
}

LANGUAGES = frozenset(_GRAMMARS)
_PIECE_BYTES = 4_096

# By a file's ending; the protocol's names, also of languages without a grammar.
LANGUAGE_OF_ENDING = {
    "bash": "shellscript", "sh": "shellscript", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "hpp": "cpp",
    "cs": "csharp", "css": "css", "go": "go", "html": "html", "java": "java", "js": "javascript",
    "mjs": "javascript", "cjs": "javascript", "mts": "typescript", "cts": "typescript",
    "jsx": "javascriptreact", "json": "json", "lua": "lua", "md": "markdown",
    "php": "php", "py": "python", "pyi": "python", "rb": "ruby", "rs": "rust", "toml": "toml",
    "ts": "typescript", "tsx": "typescriptreact", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip


def language_of_name(name: str) -> str:
    """The protocol's name of a file's language, by its ending; `plaintext` where that says nothing."""
    _, dot, ending = name.rpartition(".")
    return LANGUAGE_OF_ENDING.get(ending.lower(), "plaintext") if dot else "plaintext"


def new_parser(language: str) -> Parser | None:
    """A parser of an LSP language id, for one thread; None without a grammar for it."""
    grammar = _grammar(language)
    return Parser(grammar) if grammar is not None else None


def parse_within(parser: Parser, source: bytes, max_s: float, old: Tree | None = None) -> Tree | None:
    """The tree of a text in UTF-8; None where that takes more than `max_s` of this thread's processor time.

    What did not change since the tree `old` is taken from there; its edits must have been told to it.

    What is no code of its language takes the parser a time that grows faster than the text, and the parser
    keeps the interpreter to itself: so it is given the text in pieces, and asked to stop. What others do on
    the machine changes no answer.
    """
    until_s = time.thread_time() + max_s
    known: dict[str, Any] = {} if old is None else {"old_tree": old}
    try:
        tree: Tree = parser.parse(
            lambda at, _point: source[at : at + _PIECE_BYTES],
            progress_callback=lambda *_: time.thread_time() > until_s,
            **known,
        )
    except ValueError:  # how it says that it was stopped
        parser.reset()
        return None
    return tree


@cache
def _grammar(language: str) -> Language | None:
    if language not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[language]
    return Language(getattr(importlib.import_module(module), function)())
