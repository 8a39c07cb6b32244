"""The tables in docs/settings.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from lsp_server.workspace.settings import all_settings
from lsp_server.workspace.settings_table import Narrowing, Setting
from scripts.settings_pages.editor_options import NEOVIM_OPTIONS, VSCODE_OPTIONS
from scripts.settings_pages.generated import lua, plain, replaced
from scripts.settings_pages.vscode import shown

_END = "\n<!-- end -->"
_REPOSITORY: dict[Narrowing, str] = {
    "exclude": "add patterns",
    "languages": "switch off",
    "manual": "`manual`",
    "never": "`never`",
    "off": "`off`",
}


def page(text: str) -> str:
    """docs/settings.md with all its tables."""
    advanced = [setting for setting in all_settings() if not setting.about.page]
    vscode = [(f"`{each.key}`", _json(each.default), each.sentence) for each in VSCODE_OPTIONS]
    neovim = [(f"`{each.name}`", f"`{lua(each.default)}`", _linked(each.sentence)) for each in NEOVIM_OPTIONS]
    tables = {
        "shown": _settings(shown()),
        "advanced": _settings(advanced),
        "vscode": _table(("key", "default", "meaning"), vscode),
        "neovim": _table(("option", "default", "meaning"), neovim),
    }
    for name, table in tables.items():
        text = replaced(text, f"<!-- generated: {name} -->\n", _END, table)
    return text


def _settings(rows: Iterable[Setting]) -> str:
    head = ("key", "default", "meaning", "a repository may")
    return _table(head, [(f"`{row.key}`", _json(row.default), _meaning(row), _allowed(row)) for row in rows])


def _meaning(row: Setting) -> str:
    choices = [f"`{value}`: {text}" for value, text in row.about.choices.items()]
    if not choices and "enum" in row.schema:
        choices = [f"One of {', '.join(f'`{value}`' for value in row.schema['enum'])}."]
    if "enum" in row.schema.get("items", {}):
        choices = [f"The values are {', '.join(f'`{value}`' for value in row.schema['items']['enum'])}."]
    return " ".join([row.about.sentence, *choices])


def _allowed(row: Setting) -> str:
    if row.about.narrow == "lower":
        return "switch it off" if row.schema["type"] == "boolean" else "lower it"
    return _REPOSITORY[row.about.narrow] if row.about.narrow else ""


def _json(value: Any) -> str:
    return f"`{json.dumps(plain(value))}`"


def _linked(help_text: str) -> str:
    """A sentence of the help with its tags as commands."""
    return re.sub(r"\|([^|]+)\|", r"`:help \1`", help_text)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
