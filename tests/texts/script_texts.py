"""The texts for people in the editors' TypeScript and Lua code, and in VS Code's manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.texts.python_texts import is_text

EDITORS = Path(__file__).parents[2] / "editors"

# A comment, or a string in quotes or backticks.
_TYPESCRIPT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`""", re.DOTALL
)
_LUA = re.compile(r"""--[^\n]*|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'""")
_NOT_FOR_PEOPLE = re.compile(r"^(?:<|default-src|swatch |piece |state |from lsp_server|import )")


def typescript() -> list[str]:
    """The texts of the VS Code extension's code."""
    return [
        text
        for path in sorted((EDITORS / "vscode" / "src").rglob("*.ts"))
        for text in _texts(path, _TYPESCRIPT)
    ]


def lua() -> list[str]:
    """The texts of the Neovim plugin's code."""
    return [text for path in sorted((EDITORS / "neovim").rglob("*.lua")) for text in _texts(path, _LUA)]


def manifest() -> list[str]:
    """The texts of VS Code's package.json beside its settings."""
    whole = json.loads((EDITORS / "vscode" / "package.json").read_text(encoding="utf-8"))
    contributed = whole["contributes"]
    parts = (
        {name: whole[name] for name in ("displayName", "description", "capabilities")},
        {"commands": [command["title"] for command in contributed["commands"]]},
        {"walkthroughs": contributed["walkthroughs"]},
    )
    return [text for part in parts for text in _strings(part) if " " in text and not text.startswith("on")]


def _texts(path: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    for found in pattern.finditer(path.read_text(encoding="utf-8")):
        text = next((group for group in found.groups() if group is not None), "")
        text = _without_values(text).replace("\\n", "\n").replace("\\\\", "\\").strip()
        if is_text(text) and "\n" not in text and not _NOT_FOR_PEOPLE.search(text):
            yield text


def _without_values(text: str) -> str:
    """A template with an ellipsis in place of each value."""
    parts, depth = [], 0
    for part in re.findall(r"\$\{|[{}]|[^${}]+|\$", text):
        if part == "${" or (depth and part == "{"):
            parts += ["…"] if depth == 0 else []
            depth += 1
        elif part == "}" and depth:
            depth -= 1
        elif depth == 0:
            parts.append(part)
    return "".join(parts)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, str):
        yield value
