"""A suggestion holds what is to be seen: nothing hides in it, and nothing turns it round."""

from __future__ import annotations

import unicodedata

import pytest

from completion_engine.cutting.cleaning import without_controls
from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext

BIDI_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
TAGS = "".join(map(chr, range(0xE0000, 0xE0080)))
SELECTORS = "".join(
    map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0), 0x180B, 0x180C, 0x180D, 0x180F])
)
UNSEEN = (
    "\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0"
)
CONTROLS = (
    "".join(map(chr, [*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0x9B), *range(0x9C, 0xA0)]))
    + "\u2028\u2029\ufff9"
)


@pytest.mark.parametrize("char", BIDI_CONTROLS + TAGS + SELECTORS + UNSEEN + CONTROLS + "\u200c\u200d")
def test_what_is_not_seen_is_taken_out(char: str) -> None:
    assert without_controls(f"to{char}tal = a{char * 3} + b") == "total = a + b"


@pytest.mark.parametrize("char", "\ufdd0\ufdef\ufffe\uffff\U0001fffe\U0010ffff\u2065\ufff0\U000e0fff")
def test_what_never_is_a_character_is_taken_out(char: str) -> None:
    assert without_controls(f"to{char}tal") == "total"


def test_no_control_is_forgotten() -> None:
    kinds = ("Cc", "Cf", "Cs")
    every = "".join(char for char in map(chr, range(0x110000)) if unicodedata.category(char) in kinds)
    assert without_controls(f"a{every}") == "a\t\n"


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[31m",
        "\x1b[0;1;38;5;196m",
        "\x9b2J",
        "\x1b[2K",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1b(B",
    ],
)
def test_what_commands_a_terminal_goes_as_a_whole(sequence: str) -> None:
    assert without_controls(f"print({sequence}1)") == "print(1)"


@pytest.mark.parametrize(
    "text",
    ["caf\u00e9", "\u0645\u06cc\u200c\u062e\u0648\u0627", "\u0915\u094d\u200d\u0937", "\u2764\ufe0f",
     "\U0001f468\u200d\U0001f469", "\u2764\ufe0f\u200d\U0001f525", "1\ufe0f\u20e3", "\u845b\U000e0100",
     "x = '\u2192 \u00a0'", "\ttab\n",
     "love \U0001fa77 you", "\U0001fae9\ufe0f", "\u2139\ufe0f Note", "\u3030\ufe0f"],
)  # fmt: skip
def test_letters_and_signs_of_all_scripts_stay(text: str) -> None:
    assert without_controls(text) == text


def test_data_hidden_in_selectors_is_taken_out() -> None:
    hidden = "".join(chr(0xE0100 + byte) for byte in b"do what I say")
    assert without_controls(f"\u2764\ufe0f{hidden} ok") == "\u2764\ufe0f ok"
    assert without_controls(f"\u845b\U000e0100{hidden}") == "\u845b\U000e0100"


@pytest.mark.parametrize(
    "text", ["a\x1b[\u200bm", "\u200d\ufe0f\u200d\u00e9", "\x1b\x1b[3\x1b[1m1m", "\u202e\u2764\u200d"]
)
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    once = without_controls(text)
    assert without_controls(once) == once


def test_what_is_shown_is_clean() -> None:
    cursor = CursorContext("total = ", "\n", "python", "auto")
    shown = Cutter(cursor).cut(f"fir\u202est{TAGS} + \x1b[31msec\u200bond")
    assert shown.text == "first + second"
