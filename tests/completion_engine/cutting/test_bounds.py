"""No text makes cutting slow, before the cursor or generated: its time grows with it."""

from __future__ import annotations

import random

import pytest

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.language_names import IDENTIFIERS
from completion_engine.cutting.marks import marks_of
from completion_engine.cutting.surroundings import forget_texts
from completion_engine.cutting.tree import SyntaxWindow, load_grammar
from completion_engine.text_window import CursorContext
from tests.growth import cpu_s, growth

_SHORT, _LONG = 4_000, 16_000
_SHORT_BEFORE, _LONG_BEFORE = 16_000, 64_000
_WORTH_A_LOOK_S = 0.15
_WORTH_A_SECOND_LOOK_S = 0.02
_MAX_GROWTH = 5
_NUM_SHARES = 8  # shares of the hostile texts: languages in turn are given one share each

_MAX_WINDOW_S = 0.5  # a hundred times what code takes
_MARKS = [
    "(", "{", "[", "<a>", '"', "'", "`", "/*", "<!--", "{{", "\\", "#", "a.", "=>",
    "if ", "\n  ", "\x00", "\ud800", "$(",
]  # fmt: skip

# The repeated text, its language, and the text after it.
HOSTILE = [
    ("python", ")", "abc = "),
    ("python", " ", "x"),
    ("python", "(", "a\n"),
    ("python", "ab ", "\n"),
    ("ruby", "=if ;", "\n"),
    ("lua", "function ", "\n"),
    ("javascript", "{\n", "a"),
    ("javascript", "f({\n", "a\n"),
    ("javascript", "[)", "\n"),
    ("javascript", "css`${", "\n"),
    ("javascript", "css`", "\n"),
    ("elm", "[ (", "\n, a\n"),
    ("typescriptreact", "</a", "\n"),
    ("rust", "a<b>", "\n"),
    ("markdown", "\"'", "\n"),
    ("makefile", "\t", "x\n"),
    ("yaml", "- ", "x\n"),
]

# Each is repeated. Between them they open everything that a table opens, and close none of it.
REPEATED = [
    "(", "<div>", "```a\n", "cat <<EOF\n", "'\"`", "{{ {% ", "$$\n$", "`${", "a ", "r#\"#", "%q(", "[==[",
    "é\u200d", "\\", "-", ":::\n", "\t", "<", "/", "\n", "> ", "- ", "<<A\n", "\\begin{a}", "|", "=begin\n",
    "R\"x(", "//\n",
]  # fmt: skip
# One of each language that is written differently from the others.
LANGUAGE_OF = {marks_of(name): name for name in sorted(IDENTIFIERS)}


@pytest.fixture
def patient_parser() -> None:
    """None: the parser's time counts too."""


@pytest.mark.parametrize(("language", "unit", "end"), HOSTILE)
@pytest.mark.parametrize("is_generated", [False, True])
def test_the_time_grows_with_the_text(language: str, unit: str, end: str, is_generated: bool) -> None:
    """A text four times as long takes about four times as long, if it takes long at all."""

    def suggest(num_chars: int) -> None:
        text = (unit * num_chars)[:num_chars] + end
        before, generated = ("x = foo(", text) if is_generated else (text, "foo(1)\nx\n")
        cutter = Cutter(CursorContext(before, ")\n", language))
        cutter.stop(generated)
        cutter.boundary(generated)
        cutter.cut(generated)

    if cpu_s(lambda: suggest(_LONG)) > _WORTH_A_LOOK_S:
        assert growth(suggest, _SHORT, _LONG, below=12) < 12


@pytest.mark.parametrize("share", range(_NUM_SHARES))
def test_in_no_language_the_time_grows_faster_than_the_document(share: int) -> None:
    """Four times as much text takes at most five times as long."""
    for number, name in enumerate(sorted(LANGUAGE_OF.values())):
        if number % _NUM_SHARES == share:
            for repeated in REPEATED[share::_NUM_SHARES]:
                _check_growth(name, repeated)


def test_many_different_marks_take_no_longer_than_one() -> None:
    """Each tag of a heredoc, an environment or a raw string is another one."""
    for name, different in (
        ("shellscript", "cat <<A{0}\nx\nA{0}\n"),
        ("shellscript", "cat <<A{0}\n"),
        ("latex", "\\begin{{a{0}}}\nx\n"),
        ("latex", "\\begin{{a{0}}}\nx\n\\end{{a{0}}}\n"),
        ("cpp", 'R"{0}(x){0}"\n'),
        ("sql", "$a{0}$ x $a{0}$\n"),
        ("html", '<script type="{0}">x</script>\n'),
    ):
        _check_growth(name, "".join(different.format(number) for number in range(9_000)))


def _check_growth(language: str, repeated: str) -> None:
    def suggest(num_chars: int) -> None:
        text = (repeated * (1 + num_chars // len(repeated)))[:num_chars]
        forget_texts()
        cutter = Cutter(CursorContext(text, text[: num_chars // 4], language))
        cutter.stop("foo(bar) " + text[:200])
        cutter.cut("foo(bar) " + text[:200])

    if cpu_s(lambda: suggest(_LONG_BEFORE)) > _WORTH_A_SECOND_LOOK_S:
        found = growth(suggest, _SHORT_BEFORE, _LONG_BEFORE, below=_MAX_GROWTH)
        assert found < _MAX_GROWTH, (language, repeated[:20])


@pytest.mark.parametrize("language", sorted(IDENTIFIERS))
def test_a_parser_of_random_marks_gives_up_in_time(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the limits of users
    generator = random.Random(language)  # noqa: S311 - a reproducible draw, not a secret
    load_grammar(language)
    for _ in range(3):
        chosen = generator.sample(_MARKS, 3)
        before, after = ("".join(generator.choices(chosen, k=size)) for size in (1_500, 400))
        window = SyntaxWindow(language, before, after)
        assert cpu_s(lambda window=window: window.num_errors("a b")) < _MAX_WINDOW_S
