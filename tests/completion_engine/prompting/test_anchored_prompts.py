"""Which characters a prompt holds, to the character: a tokenizer of letters makes them visible."""

from __future__ import annotations

import re
from typing import Any

import pytest

from completion_engine.prompting.prompt import Prompt, PromptBuilder
from completion_engine.prompting.tokenizer import FimTokens
from completion_engine.text_window import TextWindow

LINES = "".join(f"line{number}\n" for number in range(10))  # six characters each
P, S, M = 1, 2, 3
MARKERS = FimTokens(P, S, M)


class Letters:
    """Each byte is a token; words are made of the letters from a to w."""

    def __init__(self, fim: FimTokens | None = MARKERS, leading: tuple[int, ...] = ()) -> None:
        self.fim, self.leading_ids = fim, leading

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", errors="replace"))

    def num_in_last_word(self, text: str) -> int:
        found = re.search("[a-w]+$", text)
        return len(found[0]) if found else 1

    def spell(self, ids: list[int]) -> bytes:
        return bytes(ids)


class Counting(Letters):
    """Remembers what it was asked to encode."""

    def __init__(self, fim: FimTokens | None) -> None:
        super().__init__(fim)
        self.seen: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.seen.append(text)
        return super().encode(text)


def builder(
    tokenizer: Letters | None = None, window: tuple[int, int] = (40, 20), **sizes: int
) -> PromptBuilder:
    known: Any = tokenizer or Letters()
    return PromptBuilder(known, TextWindow(*window), **{"max_prompt": 1000, "anchor_lines": 2, **sizes})


def shown(before: str, after: str, forced: str, healed: str) -> Prompt:
    """The prompt with these parts; `forced` less `healed` is its end."""
    middle = forced.removesuffix(healed)
    return Prompt((P, *before.encode(), S, *after.encode(), M, *middle.encode()), healed.encode())


def part(first: int, last: int) -> str:
    """The lines from `first` up to, and without, `last`."""
    return "".join(LINES.splitlines(keepends=True)[first:last])


@pytest.mark.parametrize(
    ("prefix", "before", "forced", "healed"),
    [
        pytest.param("", "", "", "", id="nothing"),
        pytest.param("a\nbc", "", "a\nbc", "bc", id="fewer lines than lie behind an anchor"),
        pytest.param(LINES, part(4, 8), part(8, 10), "", id="from a line's beginning on"),
        pytest.param(LINES + "ab", part(4, 8), part(8, 10) + "ab", "ab", id="within a line"),
        pytest.param(LINES[:40], part(0, 4), LINES[24:40], "line", id="all of it, where that fits"),
        pytest.param("x" * 60, "", "x" * 40, "x", id="a line longer than the window"),
        pytest.param("x" * 20 + "\n" + "y" * 39, "", "y" * 39, "y", id="a line that begins in the window"),
        pytest.param("x\n" * 5 + "y" * 39, "", "y" * 39, "y", id="lines before the window are not counted"),
        pytest.param("\nx\ny\nz", "\n", "x\ny\nz", "z", id="an empty first line"),
        pytest.param("x\ny\nz", "", "x\ny\nz", "z", id="as many lines as lie behind an anchor"),
        pytest.param("x\ny\nz\nx", "x\n", "y\nz\nx", "x", id="one more line"),
    ],
)
def test_a_fresh_window(prefix: str, before: str, forced: str, healed: str) -> None:
    assert builder().build("a", prefix, "") == shown(before, "", forced, healed)


def test_a_dozen_lines_lie_behind_the_anchor() -> None:
    prompt = PromptBuilder(Letters(), TextWindow(400, 20), max_prompt=1000).build(  # type: ignore[arg-type]
        "a", "x\n" * 20 + "y", ""
    )
    assert prompt == shown("x\n" * 8, "", "x\n" * 12 + "y", "y")


@pytest.mark.parametrize(
    ("suffix", "after"),
    [
        ("", ""),
        (")\nrest\n", "\nrest\n"),
        ("):", ""),
        (" \n", "\n"),
        ("x)\nrest", "x)\nrest"),
        (")x", ")x"),
        ("\nrest", "\nrest"),
        ("0123456789\nabcdefghijklmnop\n", "0123456789\n"),
        ("01234\n678\nabcdefghijklmnop", "01234\n678\n"),
        ("\n" + "x" * 30, "\n"),
        ("x" * 20, "x" * 20),
        ("x" * 10 + "\n" + "x" * 9, "x" * 10 + "\n" + "x" * 9),
        ("x" * 30, "x" * 20),
        ("x" * 19 + "\nmore", "x" * 19 + "\n"),
        ("x" * 20 + "\nmore", "x" * 20),
        (")" * 30 + "\n", "\n"),
    ],
)
def test_what_is_shown_of_the_text_after_the_cursor(suffix: str, after: str) -> None:
    assert builder().build("a", "x", suffix) == shown("", after, "x", "x")


def test_who_comes_back_to_a_place_finds_its_window() -> None:
    prompts, above = builder(), LINES
    begun = prompts.build("a", above, "").tokens
    below = above + "other\n" * 20
    prompts.build("a", below, "")
    back = prompts.build("a", above + "x\ny", "").tokens
    assert back[: len(begun) - 1] == begun[: len(begun) - 1]


def test_a_window_stays_until_it_has_grown_by_half() -> None:
    prompts = builder()
    prompts.build("a", LINES, "")
    grown, more = LINES + "y" * 24, LINES + "y" * 25
    assert prompts.build("a", grown, "") == shown(part(4, 8), "", part(8, 10) + "y" * 24, "y")
    assert prompts.build("a", more, "") == builder().build("a", more, "") != prompts.build("a", LINES, "")


@pytest.mark.parametrize(
    ("prefix_chars", "length", "stays"), [(40, 44, True), (41, 44, True), (40, 43, False)]
)
def test_a_cursor_that_goes_far_up_gets_another_window(prefix_chars: int, length: int, stays: bool) -> None:
    prompts = builder(anchor_lines=4, window=(prefix_chars, 20))
    assert prompts.build("a", LINES, "") == shown(part(4, 6), "", part(6, 10), "")
    prefix = LINES[:length]
    healed = re.findall("[a-w]+$|.$", prefix)[0]
    before, forced = (part(4, 6), prefix[36:]) if stays else (part(1, 3), prefix[18:])
    assert prompts.build("a", prefix, "") == shown(before, "", forced, healed)


def test_text_that_came_before_a_window_moves_it_and_it_is_found_again() -> None:
    prompts = builder()
    prompts.build("a", LINES, "")
    for prefix in ("new\n" + LINES, "new\nnew\n" + LINES + "y"):
        assert prompts.build("a", prefix, "").tokens[: 1 + 24] == (P, *part(4, 8).encode())


def test_of_equal_places_the_one_where_the_window_was_is_taken() -> None:
    prompts = builder()
    text = "zz\n" * 16
    first, longer = (prompts.build("a", typed, "").tokens for typed in (text, text + "zz\nzz\n"))
    assert longer[: len(first)] == first
    assert len(longer) == len(first) + 6


def test_of_equal_places_the_last_is_taken_where_the_window_is_gone_from_its_own_and_then_that_one() -> None:
    prompts = builder()
    text, window = "zz\n" * 16, "zz\n" * 11
    prompts.build("a", text, "")
    assert prompts.build("a", "a\n" + text, "") == shown(window, "", "", "")
    assert prompts.build("a", "a\n" + text + "zz\n", "") == shown(window, "", "zz\n", "")


def test_a_window_moves_to_the_beginning_where_what_stood_before_it_is_gone() -> None:
    prompts = builder()
    prompts.build("a", LINES, "")
    prefix = part(4, 10) + "y\ny"
    assert prompts.build("a", prefix, "") == shown(part(4, 8), "", part(8, 10) + "y\ny", "y")


def test_an_empty_window_stays_too() -> None:
    prompts = builder()
    for prefix in ("x\nx", "x\nx\nx\nx", "x\nx\nx\nx\nx"):
        assert prompts.build("a", prefix, "") == shown("", "", prefix, "x")


@pytest.mark.parametrize("second", [LINES.replace("line5", "LINE5"), LINES[:48].replace("\n", "") + "\ny"])
def test_a_window_whose_text_is_gone_is_opened_anew(second: str) -> None:
    prompts = builder()
    prompts.build("a", LINES, "")
    assert prompts.build("a", second, "") == builder().build("a", second, "")


PARAGRAPH = "".join(f"word{number} " for number in range(100))


@pytest.mark.parametrize("prefix_chars", [40, 100])
@pytest.mark.parametrize("above", ["", "title\n\n"])
def test_a_window_that_begins_in_a_line_stays_until_it_has_grown_by_half(
    prefix_chars: int, above: str
) -> None:
    prompts = builder(window=(prefix_chars, 20))
    for length in range(200, 200 + prefix_chars // 2 + 1):
        shows = PARAGRAPH[200 - prefix_chars : length]
        healed = re.findall("[a-w]+$|.$", shows)[0]
        assert prompts.build("a", above + PARAGRAPH[:length], "") == shown("", "", shows, healed)
    grown = above + PARAGRAPH[: length + 1]
    assert prompts.build("a", grown, "") == builder(window=(prefix_chars, 20)).build("a", grown, "")


def test_a_window_that_begins_in_a_line_stays_on_the_lines_below() -> None:
    prompts = builder()
    prompts.build("a", PARAGRAPH[:200], "")
    shows = PARAGRAPH[160:200] + "\nx\ny\nz"
    assert prompts.build("a", PARAGRAPH[:160] + shows, "") == shown("", "", shows, "z")


def test_a_window_that_begins_in_a_line_is_known_by_its_beginning() -> None:
    prompts = builder()
    first = prompts.build("a", PARAGRAPH[:200], "")
    assert prompts.build("a", "new " + PARAGRAPH[:200] + "y", "").tokens[:40] == first.tokens[:40]
    changed = PARAGRAPH[:165] + "!" + PARAGRAPH[166:205]
    assert prompts.build("a", changed, "") == builder().build("a", changed, "")


def test_two_places_in_one_line_are_both_known() -> None:
    prompts = builder()
    first, second = (prompts.build("a", PARAGRAPH[:length], "") for length in (200, 400))
    for length, begun in ((205, first), (405, second)):
        assert prompts.build("a", PARAGRAPH[:length], "").tokens[:38] == begun.tokens[:38]


@pytest.mark.parametrize(
    ("sizes", "num_tokens"),
    [
        ({"max_prompt": 62}, 62),
        ({"max_prompt": 61}, 32),
        ({"max_prompt": 32}, 32),
        ({"max_prompt": 31}, 17),
        ({"max_prompt": 9}, 9),
        ({"max_prompt": 5}, 5),
        ({"window": (16, 16), "max_prompt": 17}, 10),
        ({"window": (14, 14), "max_prompt": 9}, 9),
    ],
)
def test_text_that_takes_too_much_gets_half_the_window_again_and_again(
    sizes: dict[str, int], num_tokens: int
) -> None:
    prompt = builder(**sizes).build("a", "x" * 100, "y" * 100)
    assert len(prompt.tokens) == num_tokens
    assert prompt.healed == b"x"


def test_a_window_that_is_kept_gives_way_too_where_the_text_after_the_cursor_grew() -> None:
    prompts = builder(max_prompt=50)
    first = prompts.build("a", LINES, "")
    assert len(first.tokens) == 39
    second = prompts.build("a", LINES, "y" * 20)
    assert second == shown(part(7, 8), "y" * 10, part(8, 10), "")


def test_what_is_known_of_a_document_is_dropped_with_it() -> None:
    prompts = builder()
    prompts.build("a", LINES, "")
    assert prompts.build("a", LINES + "y\ny", "") != builder().build("a", LINES + "y\ny", "")
    prompts.forget("a")
    prompts.forget("never seen")
    assert prompts.build("a", LINES + "y\ny", "") == builder().build("a", LINES + "y\ny", "")


def test_windows_of_the_last_64_documents_are_kept() -> None:
    prompts = builder()
    kept = {str(number) for number in range(65)} - {"1"}
    for number in range(64):
        prompts.build(str(number), LINES, "")
    prompts.build("0", LINES, "")
    prompts.build("64", LINES, "")
    fresh = builder().build("a", LINES + "y\ny", "")
    assert set(prompts._anchored) == kept
    assert prompts.build("0", LINES + "y\ny", "") != fresh
    assert prompts.build("1", LINES + "y\ny", "") == fresh


def test_the_tokens_of_the_last_64_texts_are_kept() -> None:
    tokenizer = Counting(fim=None)
    prompts = builder(tokenizer)
    for number in (*range(65), *range(1, 65), 0):
        prompts.build("a", str(number), "")
    assert tokenizer.seen == [str(number) for number in (*range(65), 0)]


def test_a_target_without_markers_sees_what_stands_before_the_cursor() -> None:
    prompts = builder(Letters(fim=None, leading=(9,)))
    assert prompts.build("a", LINES + "ab", "after") == Prompt((9, *LINES[24:].encode()), b"ab")


def test_what_a_tokenizer_puts_first_comes_first() -> None:
    prompt = builder(Letters(leading=(9, 8))).build("a", "x", "after")
    assert prompt == Prompt((9, 8, P, S, *b"after", M), b"x")


def test_half_a_character_is_healed_as_a_question_mark() -> None:
    assert builder().build("a", "x\ud800", "") == Prompt((P, S, M, *b"x"), b"?")
