"""The file all.txt: every text that a user can see, by where they see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from lsp_server.protocol import reasons
from lsp_server.workspace.settings import all_settings
from scripts.settings_pages.editor_options import NEOVIM_OPTIONS, VSCODE_OPTIONS
from tests.texts import python_texts, script_texts

FILE = Path(__file__).with_name("all.txt")
COMMAND = "python -m tests.texts"
_HEAD = f"""Every text that a user of Slipstream can see; … is a value. Made by `{COMMAND}`.
Each states what happened and what to do, in plain English."""


@cache
def sections() -> dict[str, list[str]]:
    """The texts of each section, in the order in which they are listed."""
    return {title: read() for title, read in _READERS.items()}


def whole() -> str:
    """The file's content."""
    parts = [_HEAD]
    for title, texts in sections().items():
        parts.append("\n".join([f"== {title} ==", *texts]))
    return "\n\n".join(parts) + "\n"


def _settings() -> list[str]:
    described = [(row.key, row.about.sentence, row.about.choices) for row in all_settings()]
    described += [(option.key, option.sentence, {}) for option in VSCODE_OPTIONS]
    described += [(option.name, option.sentence, {}) for option in NEOVIM_OPTIONS]
    return [
        " ".join([f"{key}: {sentence}", *(f"{value}: {text}" for value, text in choices.items())])
        for key, sentence, choices in described
    ]


def _unique(texts: Iterable[str]) -> list[str]:
    """Each text once, in alphabetical order, so that moved code changes nothing."""
    return sorted(
        {" ".join(text.split()) for text in texts}, key=lambda text: (text.strip("…'` ").lower(), text)
    )


_COMMAND_LINE = ("lsp_server/commands", "lsp_server/cli.py", "lsp_server/__main__.py")
_SERVER = tuple(
    f"lsp_server/{name}"
    for name in ("app.py", "protocol/server.py", "engine", "handlers", "sharing", "workspace")
)
# Reading all of them takes seconds, so that the titles are known before.
_READERS: dict[str, Callable[[], list[str]]] = {
    "Settings": _settings,
    "Reasons for no suggestion, or for the end of one": lambda: [*reasons.REASONS.values()],
    "States, sources and stages": lambda: [
        *(*reasons.FINISH_REASONS.values(), *reasons.STATES.values()),
        *(*reasons.SOURCES.values(), *reasons.STAGES.values()),
    ],
    "Errors and advice": lambda: _unique(python_texts.errors()),
    "Messages of the server": lambda: _unique(python_texts.others(_SERVER)),
    "Messages of the engine and the index": lambda: _unique(
        python_texts.others(("completion_engine", "ngram_cache"))
    ),
    "Command line": lambda: _unique(python_texts.others(_COMMAND_LINE)),
    "VS Code: commands, walkthrough, workspaces": script_texts.manifest,
    "VS Code: messages": lambda: _unique(script_texts.typescript()),
    "Neovim: messages": lambda: _unique(script_texts.lua()),
}
TITLES = tuple(_READERS)
