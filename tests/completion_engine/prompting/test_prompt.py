"""Prompts: anchored, healed, stable under typing, within their size."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import normalizers

from completion_engine.prompting.prompt import Prompt, PromptBuilder
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.text_window import TextWindow

LINE = "    value = compute(first, second)\n"
CODE = "def run(first, second):\n" + LINE * 40


@pytest.fixture
def builder(tokenizer: Tokenizer) -> PromptBuilder:
    return PromptBuilder(tokenizer, TextWindow(800, 200), max_prompt=600)


def spelt(tokenizer: Tokenizer, prompt: Prompt) -> str:
    """The prompt as text, markers named."""
    fim = tokenizer.fim
    assert fim is not None
    names = {fim.prefix: "<P>", fim.suffix: "<S>", fim.middle: "<M>"}
    return "".join(names.get(token) or tokenizer.decode([token]) for token in prompt.tokens)


def test_the_text_before_the_cursor_is_the_prompt_and_what_was_taken_back(
    builder: PromptBuilder, tokenizer: Tokenizer
) -> None:
    prompt = builder.build("a", CODE + "    ret", "\n\nafter\n")
    text = spelt(tokenizer, prompt)
    before, rest = text.removeprefix("<P>").split("<S>")
    after, forced = rest.split("<M>")
    assert (CODE + "    ret").endswith(before + forced + prompt.healed.decode())
    assert after == "\n\nafter\n"


@pytest.mark.parametrize(
    ("typed", "healed"), [("    ret", " ret"), ("    x = self.na", ".na"), ("    foo(", "(")]
)
def test_the_last_word_is_taken_back(builder: PromptBuilder, typed: str, healed: str) -> None:
    assert builder.build("a", CODE + typed, "").healed == healed.encode()


def test_the_anchor_lies_a_dozen_lines_up(builder: PromptBuilder, tokenizer: Tokenizer) -> None:
    forced = spelt(tokenizer, builder.build("a", CODE, "")).split("<M>")[1]
    assert forced.count("\n") in {11, 12}


def test_a_keystroke_only_appends(builder: PromptBuilder) -> None:
    """Typing three lines, character by character, changes no token well before the cursor."""
    typed = CODE
    previous = builder.build("a", typed, "\n\nafter\n").tokens
    for character in "    result = first + second\n    if result:\n        return result":
        typed += character
        tokens = builder.build("a", typed, "\n\nafter\n").tokens
        kept = len(previous) - 8
        assert tokens[:kept] == previous[:kept]
        previous = tokens


def test_the_window_slides_when_it_has_grown(builder: PromptBuilder) -> None:
    builder.build("a", CODE, "")
    grown = builder.build("a", CODE + LINE * 40, "")
    fresh = PromptBuilder(builder._tokenizer, TextWindow(800, 200), max_prompt=600)
    assert grown == fresh.build("a", CODE + LINE * 40, "")


def test_text_inserted_far_above_does_not_disturb_the_window(builder: PromptBuilder) -> None:
    first = builder.build("a", CODE + "    ret", "")
    assert builder.build("a", "# a new first line\n" + CODE + "    ret", "") == first


def test_a_context_goes_in_front_of_a_text_that_just_fits(tokenizer: Tokenizer) -> None:
    window = TextWindow(800, 200)
    bare = PromptBuilder(tokenizer, window, max_prompt=600).build("a", CODE, "")
    builder = PromptBuilder(tokenizer, window, max_prompt=len(bare.tokens))
    prompt = builder.build("a", CODE, "", context=(5, 6))
    assert [*prompt.tokens] == [5, 6, *bare.tokens]
    assert prompt.num_context == 2


@pytest.mark.parametrize("closers", [")", '")', "):", "]", " }", ">", ">)"])
def test_brackets_that_the_editor_closed_are_not_shown(
    builder: PromptBuilder, tokenizer: Tokenizer, closers: str
) -> None:
    text = spelt(tokenizer, builder.build("a", "print(", closers + "\nafter\n"))
    assert text.split("<S>")[1].startswith("\nafter")


def test_a_real_rest_of_the_line_is_shown(builder: PromptBuilder, tokenizer: Tokenizer) -> None:
    text = spelt(tokenizer, builder.build("a", "print(", "name)\nafter\n"))
    assert "<S>name)\nafter" in text


def test_a_model_without_markers_sees_the_text_before_alone(tokenizer: Tokenizer) -> None:
    builder = PromptBuilder(_without_markers(tokenizer), TextWindow(800, 200), max_prompt=600)
    prompt = builder.build("a", "def f():\n    ret", "\nafter")
    assert tokenizer.decode(list(prompt.tokens)) + prompt.healed.decode() == "def f():\n    ret"


@pytest.mark.parametrize(
    ("normalizer", "text", "healed"),
    [
        (normalizers.NFC(), "name = 'cafe\u0301'\nprint(na", "(na"),
        (normalizers.NFD(), "name = 'caf\u00e9'\nprint(na", "(na"),
        (normalizers.Prepend(" "), "def f(x):\n    ret", " ret"),
        (normalizers.Replace("\t", "    "), "if x:\n\tret", ""),
        (normalizers.Lowercase(), "Name = name", " name"),
        (normalizers.Lowercase(), "name = Name", " Name"),
        (normalizers.Lowercase(), "Name = Name", ""),
    ],
)
def test_only_text_that_stands_before_the_cursor_is_to_be_spelt_whatever_a_tokenizer_makes_of_it(
    tokenizer: Tokenizer, normalizer: normalizers.Normalizer, text: str, healed: str
) -> None:
    fast = FastTokenizer.from_str(tokenizer._fast.to_str())
    fast.normalizer = normalizer
    builder = PromptBuilder(Tokenizer(fast), TextWindow(800, 200), max_prompt=600)
    assert builder.build("a", text, "").healed == healed.encode()


def _without_markers(tokenizer: Tokenizer) -> Tokenizer:
    plain = Tokenizer(tokenizer._fast)
    plain.__dict__["fim"] = None
    return plain


@settings(max_examples=60, deadline=None)
@given(prefix=st.text(max_size=3000), suffix=st.text(max_size=600))
def test_any_text_makes_a_prompt_of_bounded_size(tokenizer: Tokenizer, prefix: str, suffix: str) -> None:
    builder = PromptBuilder(tokenizer, TextWindow(800, 200), max_prompt=100)
    clean = [text.encode("utf-8", "replace").decode() for text in (prefix, suffix)]
    prompt = builder.build("a", *clean)
    assert 0 < len(prompt.tokens) <= 100
    assert clean[0].encode().endswith(prompt.healed)
