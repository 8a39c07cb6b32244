"""The settings pages of the editors and docs/settings.md are what the table of settings makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.workspace.settings import all_settings
from scripts.settings_pages import neovim, vscode
from scripts.settings_pages.__main__ import generated
from scripts.settings_pages.editor_options import NEOVIM_OPTIONS, NEOVIM_REPLACES, VSCODE_OPTIONS
from scripts.settings_pages.generated import COMMAND, replaced

MOST_SHOWN = 15


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_what_is_generated_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == generated()[path], f"{path} is not up to date: run {COMMAND}"


def test_a_person_sees_at_most_15_settings_in_each_editor() -> None:
    num_of_vscode = len(vscode.shown()) + sum(option.page is not None for option in VSCODE_OPTIONS)
    num_of_neovim = sum(not option.is_advanced and option.name != "settings" for option in NEOVIM_OPTIONS)
    assert num_of_vscode <= MOST_SHOWN
    assert num_of_neovim + len(neovim.shown_settings()) <= MOST_SHOWN


def test_what_neovim_has_an_option_for_is_a_setting_that_is_shown() -> None:
    assert {row.key for row in vscode.shown()} >= {*NEOVIM_REPLACES}
    assert {option.name for option in NEOVIM_OPTIONS} >= {*NEOVIM_REPLACES.values()}


def test_every_sentence_is_whole_and_fits_a_settings_page() -> None:
    described = [(row.key, row.about.sentence) for row in all_settings()]
    described += [(option.key, option.sentence) for option in VSCODE_OPTIONS]
    described += [(option.name, option.sentence) for option in NEOVIM_OPTIONS]
    for name, sentence in described:
        assert sentence[0].isupper() or sentence[0] in "'`0", name
        assert sentence.endswith("."), name
        assert len(sentence) <= 260, name


def test_a_file_without_its_marks_is_named() -> None:
    with pytest.raises(ValueError, match="begin"):
        replaced("no marks", "begin", "end", "part")
