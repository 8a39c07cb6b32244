"""Properties of every document and every text, however odd."""

from __future__ import annotations

import re
from typing import get_args

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.lines import lines_of
from completion_engine.cutting.repeats import Reason
from completion_engine.text_window import CursorContext
from lsp_server.protocol.reasons import CUT_REASONS

LANGUAGES = [
    *(
        "python",
        "javascript",
        "typescript",
        "go",
        "rust",
        "java",
        "c",
        "csharp",
        "ruby",
        "lua",
        "shellscript",
    ),
    *("typescriptreact", "makefile", "markdown"),
    *("json", "html", "css", "php", "yaml", "plaintext"),
]
PIECES = [
    *("\n", "\n    ", "\n        ", "\n\t", "\n\n", " ", "(", ")", "[", "]", "{", "}", '"', "'", '"""', "`"),
    *(
        "\\",
        "/",
        "//",
        "/*",
        "*/",
        "#",
        "--",
        "--[[",
        "]]",
        "${",
        "#{",
        "$(",
        'r#"',
        "'a",
        "')",
        "<",
        ">",
        "</",
        "/>",
        "=> /",
    ),
    *("<div>", "</div>", ":", ";", ";;", ",", ".", "=", "=>", "+", "&&", "if x", "else", "else:", "} else {"),
    *(
        "end",
        "fi",
        "do",
        "then",
        "def f():",
        "class A:",
        "return",
        "return total",
        "foo",
        "a",
        "é",
        "日本",
        "0",
    ),
    *("1.5", "@a", "#[b]", "case 1:", "foo(a, b)", "\r\n", "\u202e", "\ufffd", "\ud800", "\x00"),
]
code = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
any_text = st.one_of(code, st.text(max_size=60))
places = st.builds(
    CursorContext,
    prefix=any_text,
    suffix=any_text,
    language=st.sampled_from(LANGUAGES) | st.just(""),
    multiline=st.sampled_from(["auto", "never", "always"]),
)
many = settings(max_examples=250, deadline=None)


@many
@given(places, any_text)
@example(CursorContext("x", "", "rust"), "')'")
@example(CursorContext("x = ", "", "python"), '"""a"""')
@example(CursorContext("f(", "name", "python"), "a, names")
@example(CursorContext("if a:\n    ", "", "python"), "b\nelse:\n    c\nd")
@example(CursorContext("x = ", "", "javascript"), "a\nelsewhere")
@example(CursorContext("\n    ", "", "html"), "\n</div>")
def test_a_text_that_has_ended_does_not_go_on(cursor: CursorContext, generated: str) -> None:
    """Every longer text ends too, and no later."""
    rules = Cutter(cursor)
    first = None
    for end in range(len(generated) + 1):
        stop = rules.stop(generated[:end])
        assert first is None or (stop is not None and stop.num_chars <= first.num_chars)
        first = first or stop
        assert stop is None or 0 <= stop.num_chars <= end


@many
@given(places, any_text)
@example(CursorContext("x = ", "", "python"), '"""a b')
@example(CursorContext("x = ", "", "python"), "1.5e-3 + a")
def test_a_boundary_lies_within_the_text_and_never_moves_back(cursor: CursorContext, generated: str) -> None:
    rules = Cutter(cursor)
    ends = [rules.boundary(generated[:end]) for end in range(len(generated) + 1)]
    assert ends == sorted(ends)
    assert all(0 <= boundary <= end for end, boundary in enumerate(ends))


@many
@given(places, any_text)
@example(CursorContext("'", "[", "markdown"), "')(")
def test_polishing_what_was_shown_changes_nothing(cursor: CursorContext, generated: str) -> None:
    shown = Cutter(cursor).cut(generated)
    if not shown.rule:
        assert Cutter(cursor).cut(shown.text) == shown


@many
@given(places, any_text)
@example(CursorContext("", "0", ""), '"" ')
def test_what_is_shown_is_clean_text_and_a_named_rule_says_why_nothing_is(
    cursor: CursorContext, generated: str
) -> None:
    shown = Cutter(cursor).cut(generated)
    assert 0 <= shown.num_replaced <= len(cursor.line_suffix)
    if not shown.rule:
        assert shown.text.strip()
        assert not re.search(
            "[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ufffd\ud800-\udfff]", shown.text
        )
        assert not any(map(str.isspace, _ends_of_code_lines(cursor, shown.text)))
        assert not shown.text.endswith("\n")
        assert not (cursor.is_single_line and "\n" in shown.text)
    else:
        assert shown.rule in CUT_REASONS
        assert (shown.text, shown.num_replaced) == ("", 0)


def _ends_of_code_lines(cursor: CursorContext, text: str) -> list[str]:
    """The last characters of the lines of `text` that do not end in a string, and are code.

    A line that continues after the cursor does not end with the text.
    """
    around = Cutter(cursor).around
    lines = [] if around.is_text else lines_of(around, text)
    lines = lines[:-1] if cursor.line_suffix.strip() else lines
    in_code = (line for line in lines if line.inside is None or line.inside.kind == "comment")
    return [text[line.end - 1] for line in in_code if line.end > line.start]


brackets = st.sampled_from([("(", ")"), ("[", "]"), ("{", "}")])
before_brackets = st.sampled_from(["x = f", "# call f", "// call f", "/* call f", '"a', "See f", "x = `a"])


@many
@given(
    st.lists(brackets, min_size=1, max_size=4), st.integers(0, 4), before_brackets, st.sampled_from(LANGUAGES)
)
@example([("[", "]")], 1, "See f", "plaintext")
@example([("(", ")")], 1, "# call f", "python")
@example([("{", "}"), ("{", "}"), ("{", "}")], 2, "x = f", "markdown")
def test_closing_brackets_are_never_doubled(
    pairs: list[tuple[str, str]], closed: int, before: str, language: str
) -> None:
    """Auto-closed brackets: each appears once, even if the model writes some of them itself."""
    opening = "".join(pair[0] for pair in pairs)
    assume(not (language == "lua" and "[[" in opening))  # a string
    closing = "".join(pair[1] for pair in reversed(pairs))
    cursor = CursorContext(before + opening, closing, language)
    shown = Cutter(cursor).cut("a" + closing[:closed])
    after = cursor.prefix + shown.text + cursor.suffix[shown.num_replaced :]
    assert after == f"{before}{opening}a{closing}"


def test_every_rule_has_a_sentence() -> None:
    assert set(CUT_REASONS) == set(get_args(Reason))
    assert all(sentence.endswith(".") for sentence in CUT_REASONS.values())


def test_only_a_window_of_a_long_document_is_read() -> None:
    line = "    value = compute(value)\n"
    cursor = CursorContext(line * 20_000, line * 20_000, "python")
    assert cursor.before.count("\n") <= 201
    assert cursor.after.count("\n") <= 81
    assert Cutter(cursor).around.before == cursor.before
