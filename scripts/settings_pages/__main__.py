"""Writes everything that is generated from the table of settings: `python -m scripts.settings_pages`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scripts.settings_pages import document, neovim, vscode

_ROOT = Path(__file__).resolve().parents[2]
_EDITORS = _ROOT / "editors"


def generated() -> dict[Path, str]:
    """The files with generated parts, each with the text that it should have."""
    parts: dict[Path, Callable[[str], str]] = {
        _EDITORS / "vscode" / "package.json": vscode.manifest,
        _EDITORS / "neovim" / "doc" / "slipstream.txt": neovim.help_text,
        _EDITORS / "neovim" / "README.md": neovim.readme,
        _ROOT / "docs" / "settings.md": document.page,
    }
    return {
        **{path: write(path.read_text(encoding="utf-8")) for path, write in parts.items()},
        _EDITORS / "vscode" / "src" / "settingKeys.ts": vscode.setting_keys(),
        _EDITORS / "neovim" / "lua" / "slipstream" / "options.lua": neovim.options(),
    }


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")
