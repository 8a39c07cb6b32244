"""Checks the project's prose against `prose_rules.toml`: `python scripts/prose.py [--count] [PATH...]`.

Reads Markdown outside of code, docstrings, comments and messages in Python, and comments and texts in
TypeScript, Lua and VS Code's manifest. Text in backticks is code and is left out. A rule is a pattern that no
sentence may match. No sentence may have more than `MAX_WORDS` words.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n")
_INLINE_CODE = re.compile(r"``?[^`]*``?")
_LINK_TARGET = re.compile(r"\]\([^)]*\)")
_MARKUP = re.compile(r"^[\s>#*|+-]+|\*\*|\|")
_COMMENT_MARKS = re.compile(r"^\s*(?://+|--+|/?\*+/?|;+)\s?", re.MULTILINE)
_SCRIPT_COMMENT = re.compile(r"(?<![:\"'])//[^\n]*|/\*.*?\*/", re.DOTALL)
_LUA_COMMENT = re.compile(r"--[^\n]*")
_SCRIPT_TEXT = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`")
_LEFT_OUT = (
    "LICENSE",
    "docs/sample_repository/",
    "docs/demo/",
    "scripts/prose_rules",
    "tests/scripts/test_prose",
)
_MIN_WORDS = 3
_RULES = Path(__file__).with_name("prose_rules.toml")
MAX_WORDS = 35
_WORD = re.compile(r"(?<![^\s(\"'*])[A-Za-z]['A-Za-z-]*(?=[,.:;)\"'*!?]*(?:\s|$))")
_DIRECTIVE = re.compile(r"#\s*(?:type:|fmt:|!)")
_REASON = re.compile(r"^noqa: [A-Z0-9, ]+(?: - )?")


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that a sentence must not match, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


_TOO_LONG = Rule(_WORD, f"at most {MAX_WORDS} words in a sentence")


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence that matches a rule."""

    path: Path
    line: int
    matched: str
    instead: str
    sentence: str

    def __str__(self) -> str:
        short = " ".join(self.sentence.split())[:120]
        return f"{self.path}:{self.line}: '{self.matched}' (write: {self.instead}) in: {short}"


def load_rules() -> list[Rule]:
    """All rules of `prose_rules.toml`."""
    with _RULES.open("rb") as file:
        rules = tomllib.load(file)["rule"]
    return [Rule(re.compile(rule["pattern"], re.IGNORECASE), rule["instead"]) for rule in rules]


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Each text for people in a file, with the line that it begins on."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _python_texts(source)
    elif path.suffix == ".md":
        yield from _markdown_texts(source)
    elif path.suffix in {".ts", ".lua"}:
        yield from _script_texts(source, _LUA_COMMENT if path.suffix == ".lua" else _SCRIPT_COMMENT)
    elif path.name == "package.json":
        yield from ((1, text) for text in _manifest_texts(json.loads(source)))


def findings(path: Path, rules: list[Rule]) -> Iterator[Finding]:
    """Every sentence of a file that matches a rule."""
    for line, text in texts_of(path):
        plain = _plain(text)
        start = 0
        for part in _SENTENCE_END.split(plain):
            at = plain.find(part, start)
            start = at + len(part)
            sentence = _MARKUP.sub("", part).strip()
            for matched, rule in _matched(sentence, rules):
                number = line + plain.count("\n", 0, at)
                yield Finding(path.relative_to(ROOT), number, matched, rule.instead, sentence)


def matches(text: str, rules: list[Rule]) -> list[str]:
    """The parts of one text that match a rule, each with the words to write instead."""
    sentences = (_MARKUP.sub("", part).strip() for part in _SENTENCE_END.split(_plain(text)))
    found = (each for sentence in sentences for each in _matched(sentence, rules))
    return [f"'{matched}' (write: {rule.instead})" for matched, rule in found]


def _plain(text: str) -> str:
    """A text with a word in place of code and without the targets of links."""
    return _LINK_TARGET.sub("]", _INLINE_CODE.sub("code", text))


def _matched(sentence: str, rules: list[Rule]) -> Iterator[tuple[str, Rule]]:
    for rule in rules:
        if found := rule.pattern.search(sentence):
            yield " ".join(found[0].split())[:40], rule
    if (num_words := len(_WORD.findall(sentence))) > MAX_WORDS:
        yield f"{num_words} words", _TOO_LONG


def _python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings, comments, and the texts of errors, options and other calls that hold a whole sentence."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if docstring := ast.get_docstring(node, clean=True):
                yield getattr(node, "lineno", 1), docstring
        elif isinstance(node, ast.Call | ast.Assign | ast.Dict | ast.Tuple | ast.Return):
            for text in _texts_within(node):
                yield node.lineno, text
    yield from _comments(source)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments: consecutive whole lines as one text, those after code each by itself."""
    lines: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        row, text = token.start[0], token.string.lstrip("# ").removeprefix("!")
        is_whole_line = token.line.lstrip().startswith("#")
        if lines and (row != first + len(lines) or not is_whole_line):
            yield first, "\n".join(lines)
            lines = []
        if is_whole_line:
            first = first if lines else row
            lines.append(text)
        else:
            yield row, _REASON.sub("", text)
    if lines:
        yield first, "\n".join(lines)


def _texts_within(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        value = child.value if isinstance(child, ast.keyword) else child
        text = ""
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            text = value.value
        elif isinstance(value, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "X" for part in value.values)
            text = "".join(parts)
        if len(text.split()) >= _MIN_WORDS and text[:1].isupper():
            yield text


def _markdown_texts(source: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, headings, list items and table cells outside of fences."""
    fence = ""
    paragraph: list[str] = []
    first = 1
    for number, line in enumerate([*source.split("\n"), ""], 1):
        mark = line.lstrip()[:3]
        if fence or mark in {"```", "~~~"}:
            fence = "" if fence == mark else fence or mark
            line = ""  # noqa: PLW2901 - code ends a paragraph as an empty line does
        is_break = not line.strip() or line.lstrip()[:1] in {"#", "|", "-", "*", ">"}
        if is_break and paragraph:
            yield first, "\n".join(paragraph)
            paragraph = []
        if line.lstrip().startswith("|"):
            yield from ((number, cell) for cell in line.split("|") if cell.strip())
        elif line.strip():
            first = first if paragraph else number
            paragraph.append(line)


def _script_texts(source: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for found in comment.finditer(source):
        yield source.count("\n", 0, found.start()) + 1, _COMMENT_MARKS.sub("", found[0])
    for found in _SCRIPT_TEXT.finditer(comment.sub("", source)):
        text = found[1] or found[2] or ""
        if len(text.split()) >= _MIN_WORDS and text[:1].isupper():
            yield source.count("\n", 0, found.start()) + 1, text


def _manifest_texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _manifest_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _manifest_texts(inner)
    elif isinstance(value, str) and len(value.split()) >= _MIN_WORDS:
        yield value


def _tracked() -> list[Path]:
    """The project's files with prose for people, as git lists them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)  # noqa: S607
    names = listed.stdout.decode().split("\0")
    wanted = (".py", ".md", ".ts", ".lua", "editors/vscode/package.json")
    return [ROOT / name for name in names if name.endswith(wanted) and not name.startswith(_LEFT_OUT)]


def main() -> None:
    """Print every finding, or their number by rule; exit status 1 where there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", action="store_true", help="print the number of findings by rule only")
    parser.add_argument("paths", nargs="*", type=Path)
    asked = parser.parse_args()
    paths = [file for path in asked.paths for file in _files(path.resolve())] or _tracked()
    rules = load_rules()
    found = [finding for path in paths if path.is_file() for finding in findings(path, rules)]
    if asked.count:
        for instead, number in Counter(finding.instead for finding in found).most_common():
            sys.stdout.write(f"{number:6} write: {instead}\n")
    else:
        sys.stdout.writelines(f"{finding}\n" for finding in found)
    sys.stdout.write(f"{len(found)} sentences to rewrite in {len({one.path for one in found})} files\n")
    sys.exit(bool(found))


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file in set(_tracked())) if path.is_dir() else [path]


if __name__ == "__main__":
    main()
