"""Every text that a user can see is in all.txt, to be read in one go, and is plain English."""

from __future__ import annotations

import pytest

from scripts.prose import load_rules, matches
from tests.texts.listing import COMMAND, FILE, TITLES, sections, whole


def test_the_list_of_texts_is_up_to_date() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert text == whole(), f"{FILE.name} is not up to date: run {COMMAND}, then read what changed"


@pytest.mark.parametrize("title", TITLES)
def test_every_text_is_plain_english(title: str) -> None:
    rules = load_rules()
    found = [f"{match}: {text}" for text in sections()[title] for match in matches(text, rules)]
    assert found == []


def test_texts_of_each_kind_are_found() -> None:
    """A reader of the code that finds no strings any more would leave all of these tests empty."""
    texts = {title: "\n".join(section) for title, section in sections().items()}
    assert "remote.tokenFile: A file that holds the bearer token" in texts["Settings"]
    assert (
        "The statement at the cursor is complete."
        in texts["Reasons for no suggestion, or for the end of one"]
    )
    assert "… is not in the store. Run: slipstream models pull …" in texts["Errors and advice"]
    assert "Suggestions come from your team's servers again." in texts["Messages of the server"]
    assert "a tensor lies outside of the file" in texts["Messages of the engine and the index"]
    assert "Delete the repository's index." in texts["Command line"]
    assert "Explain the Suggestion Here" in texts["VS Code: commands, walkthrough, workspaces"]
    assert "Slipstream is rebuilding the index of …." in texts["VS Code: messages"]
    assert "Restarting the server." in texts["Neovim: messages"]
