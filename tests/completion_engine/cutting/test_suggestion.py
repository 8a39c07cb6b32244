"""What is shown: (language, document, generated text, document with it), or the rule that drops it.

The document after shows the replacement: the text is inserted and takes `num_replaced` characters.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tree_sitter import Parser, Tree

from completion_engine.cutting import tree as syntax
from completion_engine.cutting.cutter import Cutter, Suggestion
from completion_engine.grammars import Begun, parse_within
from completion_engine.text_window import CursorContext

At = Callable[..., CursorContext]
Case = tuple[str, str, str, str]

COVERED: list[Case] = [
    ("python", "def add(‸)", "a, b):\n    return a + b", "def add(a, b):\n    return a + b"),
    ("python", "def add(‸):", "a, b):\n    return a + b", "def add(a, b):\n    return a + b"),
    ("python", "f(‸value)", "name, value)", "f(name, value)"),
    ("python", "f(‸value)", "name, ", "f(name, value)"),
    ("python", "x = ‸ if y else z", "a if y else z", "x = a if y else z"),
    ("python", "f(g(‸))", "x))", "f(g(x))"),
    ("python", "f(g(‸))", "x)", "f(g(x))"),
    ("python", "f(g(‸))", "x", "f(g(x))"),
    ("python", "f(‸)", "a[0]", "f(a[0])"),
    ("python", "a[‸]", "b[0]", "a[b[0]]"),
    ("python", 'print("‸")', 'hello")', 'print("hello")'),
    ("python", 'print("‸")', "hello", 'print("hello")'),
    ("python", 'print("‸")', 'hello " + name + "', 'print("hello " + name + "")'),
    ("python", 'print("a‸)', 'b")', 'print("ab")'),
    ("python", 'def f():\n    """‸"""', 'Add."""', 'def f():\n    """Add."""'),
    ("python", "x = {‸}", '"a": 1}', 'x = {"a": 1}'),
    ("javascript", "f(‸);", "a);", "f(a);"),
    ("javascript", "f(‸);", "a)", "f(a);"),
    ("javascript", "f(‸);", "a", "f(a);"),
    ("javascript", "if (a) {‸}", "\n  b();\n}", "if (a) {\n  b();\n}"),
    ("javascript", "x = `${‸}`;", "a}`;", "x = `${a}`;"),
    ("javascript", "f(() => {‸});", "\n  a();\n});", "f(() => {\n  a();\n});"),
    ("go", "fmt.Println(‸)", 'a, "b")', 'fmt.Println(a, "b")'),
    ("rust", "vec![‸]", "1, 2]", "vec![1, 2]"),
    ("java", "int x = ‸;", "f(1);", "int x = f(1);"),
    ("c", 'printf("‸");', '%d\\n", x);', 'printf("%d\\n", x);'),
    ("ruby", 'puts "‸"', '#{name}!"', 'puts "#{name}!"'),
    ("lua", "print(‸)", "a[1])", "print(a[1])"),
    ("shellscript", 'echo "‸"', '$(ls "$1")"', 'echo "$(ls "$1")"'),
    ("json", '{"a": "‸"}', 'b"}', '{"a": "b"}'),
    ("html", '<a href="‸">', 'b">', '<a href="b">'),
    ("css", "a { color: ‸; }", "red;", "a { color: red; }"),
    (
        "typescriptreact",
        "  return <ul>{items.map(‸)}</ul>;",
        "i => <li key={i.id}>{i.name}</li>",
        "  return <ul>{items.map(i => <li key={i.id}>{i.name}</li>)}</ul>;",
    ),
    (
        "javascriptreact",
        "  return <ul>{items.map(‸)}</ul>;",
        "i => <Item {...i} />",
        "  return <ul>{items.map(i => <Item {...i} />)}</ul>;",
    ),
    ("python", "x = 1‸   ", " + 2", "x = 1 + 2"),
    ("python", "f(‸) ", "a)", "f(a)"),
]

INDENTED: list[Case] = [
    ("yaml", "      - name: a\n      ‸", "  run: make", "      - name: a\n        run: make"),
    ("yaml", "  - name: a\n  ‸", "  run: make", "  - name: a\n    run: make"),
    ("yaml", "- name: a\n‸", "  run: make", "- name: a\n  run: make"),
    ("yaml", "  - - a: 1\n    ‸", "  b: 2", "  - - a: 1\n      b: 2"),
    ("yaml", "  a: 1\n  ‸", "  b: 2", "  a: 1\n  b: 2"),
    ("yaml", "on:  # events\n‸", "  push:\n    a: 1", "on:  # events\n  push:\n    a: 1"),
    ("yaml", "a:\n  b:  # c\n  ‸", "  d: 1", "a:\n  b:  # c\n    d: 1"),
    ("python", "def f(x):  # doubles\n‸", "    return x", "def f(x):  # doubles\n    return x"),
    ("python", "    if x:  # yes\n    ‸", "    return x", "    if x:  # yes\n        return x"),
    ("python", '    x = "a:#"\n    ‸', "    return x", '    x = "a:#"\n    return x'),
    ("javascript", "  if (a) { /* b */\n  ‸", "  c();", "  if (a) { /* b */\n    c();"),
    ("javascript", "  a(); /* { */\n  ‸", "  c();", "  a(); /* { */\n  c();"),
]

CONTENT: list[Case] = [
    (
        "makefile",
        "A = a \\\n    b \\\n    c\n\n‸",
        "all: b\n\tcc $^",
        "A = a \\\n    b \\\n    c\n\nall: b\n\tcc $^",
    ),
    (
        "makefile",
        "a: b\n\tc\n\n‸",
        "ifeq (a,b)\n    R = d\nendif",
        "a: b\n\tc\n\nifeq (a,b)\n    R = d\nendif",
    ),
    ("makefile", "A = b\n\nall: c\n\t‸", "\tcc $^", "A = b\n\nall: c\n\tcc $^"),
    ("dockerfile", "RUN a \\\n    b\n‸", "RUN c \\\n\td", "RUN a \\\n    b\nRUN c \\\n    d"),
    ("go", "\tx := 1\n\t‸", "s := `a:\n    b: 1\n`", "\tx := 1\n\ts := `a:\n    b: 1\n`"),
    (
        "go",
        "\tx := 1\n\t‸",
        "if a {\n        s := `\n    b`\n    }",
        "\tx := 1\n\tif a {\n\t\ts := `\n    b`\n\t}",
    ),
    ("javascript", "\tx = 1;\n\t‸", "s = `\n    b`", "\tx = 1;\n\ts = `\n    b`"),
    ("python", "if a:\n    x = 1\n    ‸", 's = """\nb:\n\tc"""', 'if a:\n    x = 1\n    s = """\nb:\n\tc"""'),
    ("python", "x = ‸", '"""a  \nb\t\n"""  ', 'x = """a  \nb\t\n"""'),
    ("markdown", "# A\n\n‸", "One  \ntwo \nthree   \nfour  ", "# A\n\nOne  \ntwo\nthree  \nfour"),
]

REPEATED: list[Case] = [
    ("c", "    0x00, 0x00, 0x00, ‸", "0x00, 0x00, 0x00,", "    0x00, 0x00, 0x00, 0x00, 0x00, 0x00,"),
    ("c", "    0x00, 0x01, ‸", "0x00, 0x01, 0x02", "    0x00, 0x01, 0x00, 0x01, 0x02"),
    ("markdown", "ha ha ha ‸", "ha ha ha hi", "ha ha ha ha ha ha hi"),
    ("python", "x = f(a)‸", "x = f(a)x = f(a)", "x = f(a)x = f(a)x = f(a)"),
    ("python", "x = f(a)‸", "x = f(a) + 1", "x = f(a) + 1"),
]

IN_TEXT: list[Case] = [
    ("markdown", "See [‸]", "docs](https://a.org) for more.", "See [docs](https://a.org) for more."),
    ("markdown", "![‸]", "logo](logo.png)", "![logo](logo.png)"),
    ("markdown", "It works (‸)", "see below).", "It works (see below)."),
    ("markdown", "It works (‸)", "see below", "It works (see below)"),
    ("markdown", "A list (‸)", "see [1] (or 2)) of", "A list (see [1] (or 2)) of"),
    ("markdown", "Call `‸`", "f` with it's `a`", "Call `f` with it's `a`"),
    ("markdown", 'It\'s a "‸"', 'name".', 'It\'s a "name".'),
    ("latex", "see \\cite{‸}", "knuth}, who says so.", "see \\cite{knuth}, who says so."),
    ("latex", "a set \\{\\cite{‸}", "\\}b} c", "a set \\{\\cite{\\}b} c"),
    ("python", "# call foo(‸)", "bar) first", "# call foo(bar) first"),
    ("python", "# call foo(‸)", "bar", "# call foo(bar)"),
    ("python", 'print(f"hello {‸}")', 'name}!")', 'print(f"hello {name}!")'),
    ("python", 'f("a (‸)")', 'b) {c}", d("e)"))', 'f("a (b) {c}", d("e)"))'),
    ("python", 'f(["# [‸]"])', 'a]"])', 'f(["# [a]"])'),
    ("python", '    """Rows [‸]', 'a, 4]."""', '    """Rows [a, 4]."""'),
    ("typescript", "const m = /^v(‸)", "\\d+)$/.exec(s);", "const m = /^v(\\d+)$/.exec(s);"),
    ("typescript", "const m = /^(v[‸])", "0-9])$/.exec(s);", "const m = /^(v[0-9])$/.exec(s);"),
]

IN_ANGLES: list[Case] = [
    ("rust", "let v: Vec<‸>", "String> = Vec::new();", "let v: Vec<String> = Vec::new();"),
    ("rust", "let v: Vec<‸>", "String", "let v: Vec<String>"),
    ("rust", "fn f(a: Vec<‸>)", "u8>, b: u8) -> u8 {\n    b\n}", "fn f(a: Vec<u8>, b: u8) -> u8 {\n    b\n}"),
    ("typescript", "const m = new Map<‸>", "string, number>();", "const m = new Map<string, number>();"),
    (
        "typescript",
        "function f(): Promise<‸> ",
        "A> {\n  return a > b;\n}",
        "function f(): Promise<A> {\n  return a > b;\n}",
    ),
    ("java", "List<‸>", "String> a = new B<>();", "List<String> a = new B<>();"),
    ("cpp", "std::vector<‸>", 'int> v = f("a>", b > c);', 'std::vector<int> v = f("a>", b > c);'),
    ("c", "#include <‸>", "stdio.h>", "#include <stdio.h>"),
    ("html", "<div‸>", ' class="a">Hello</div>', '<div class="a">Hello</div>'),
    (
        "typescriptreact",
        "  return <Foo‸>",
        " a={() => b}>text</Foo>;",
        "  return <Foo a={() => b}>text</Foo>;",
    ),
]

TAKEN_IN_STEPS: list[tuple[str, str, str]] = [
    ("python", "print(‸)\nx = 1\n", "foo(a, b[0]))\n"),
    ("python", "x = ‸\ny = 1\n", "foo(a)[b](c)\n"),
    ("python", "x = [‸]\n", "f(a) for a in b(c)]\n"),
    ("python", "    return max(‸\n\n\ndef g():\n    pass\n", "(a, b), key=lambda x: x[0])\n"),
    ("python", "def f():\n    ‸\n", 'return {"a": [g(1), (2, 3)]}\n'),
    ("javascript", "x = ‸;\n", "[...a.map((b) => ({ b }))];\n"),
]

CLEANED: list[Case] = [
    ("python", "x = ‸ + z", "a b", "x = a + z"),
    ("python", "x = ‸", " 1", "x = 1"),
    ("go", "\tName:   ‸\n\tPlaces: 2,", "  name,", "\tName:     name,\n\tPlaces: 2,"),
    ("python", "return ‸x", "not ", "return not x"),
    ("python", "x =‸ y", " a +", "x = a + y"),
    ("python", "x = ‸", "1   ", "x = 1"),
    ("python", "if x:‸", "\n    a()   \n    b()\n\n\n", "if x:\n    a()\n    b()"),
    ("python", "return total‸", "return total + 1", "return total + 1"),
    ("python", "def f():\n    ‸", "    return 1", "def f():\n    return 1"),
    ("python", "def f():\n‸", "    return 1", "def f():\n    return 1"),
    (
        "python",
        "def f():\n\tx = 1\n\tif x:‸",
        "\n        return 1",
        "def f():\n\tx = 1\n\tif x:\n\t\treturn 1",
    ),
    ("python", "def f():\n  x = 1\n  if x:‸", "\n\t\treturn 1", "def f():\n  x = 1\n  if x:\n    return 1"),
    ("go", "func f() {‸", "\n    return\n}", "func f() {\n\treturn\n}"),
    ("python", "x = ‸", "'a\x00\x1b[0m\u202e\u200bb'", "x = 'ab'"),
    ("python", "x = ‸", "f(1) + '\ufffd'", "x = f(1)"),
    ("python", "x = ‸", "f(1) + \ud83d", "x = f(1)"),
    ("python", "if x:‸", "\r\n    a()\r\n    b()\r\n", "if x:\n    a()\n    b()"),
    ("python", "f(‸, b)", "a, ", "f(a, b)"),
    ("python", "x = foo‸(bar)", "_x(bar", "x = foo_x(bar)"),
]

DROPPED: list[Case] = [
    ("python", "x = 1‸", "", "blank"),
    ("python", "x = 1‸", "  \n\n ", "end-of-statement"),
    ("python", "def f():\n    ‸", " \t \n", "blank"),
    ("python", "x = ‸", "\ufffd\ufffd", "undecodable-text"),
    ("python", "def f():\n    ‸\n    return total\n", "return total", "repeats-document"),
    ("python", "def f():\n    retu‸\n    return total\n", "rn total", "repeats-document"),
    ("python", "    self.add(one)\n    ‸", "self.add(one)", "repeats-document"),
    ("python", "f(‸value)", "g(", "does-not-fit"),
    ("python", "x = ‸value", 'print("', "does-not-fit"),
    ("python", "f(‸value)", "value)", "no-change"),
    ("python", "f(‸)", ")", "no-change"),
    ("javascript", "if (a) {\n  ‸\n}", "}", "does-not-fit"),
]

CUT_OFF: list[Case] = [
    ("python", "x = ‸", "first + sec", "x = first"),
    ("python", "x = ‸", "f(a, b", "x = f(a"),
    ("python", "if x:‸", "\n    a()\n    bar", "if x:\n    a()"),
    ("python", "x = ‸", "'a\\n\\x4", "x = 'a"),
]


def _applied(cursor: CursorContext, shown: Suggestion) -> str:
    return cursor.prefix + shown.text + cursor.suffix[shown.num_replaced :]


@pytest.mark.parametrize(("language", "document", "generated", "after"), COVERED + IN_TEXT + IN_ANGLES)
def test_a_suggestion_covers_what_it_writes_again(
    at: At, language: str, document: str, generated: str, after: str
) -> None:
    cursor = at(language, document)
    assert _applied(cursor, Cutter(cursor).cut(generated)) == after


@pytest.mark.parametrize(("language", "document", "generated"), TAKEN_IN_STEPS)
def test_a_suggestion_that_is_taken_in_steps_goes_on_to_the_same_text(
    at: At, language: str, document: str, generated: str
) -> None:
    """A bracket that the part taken has opened may be closed by the rest."""
    cursor = at(language, document)
    whole = Cutter(cursor).cut(generated)
    assert whole.text
    for num_taken in range(1, len(whole.text)):
        later = CursorContext(cursor.prefix + whole.text[:num_taken], cursor.suffix, language)
        rest = Cutter(later).cut(generated[num_taken:])
        assert _applied(later, rest) == _applied(cursor, whole)


@pytest.mark.parametrize(("language", "document", "generated", "after"), CLEANED + INDENTED)
def test_a_suggestion_fits_its_surroundings(
    at: At, language: str, document: str, generated: str, after: str
) -> None:
    cursor = at(language, document)
    assert _applied(cursor, Cutter(cursor).cut(generated)) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), CONTENT + REPEATED)
def test_what_is_meant_as_it_is_stays(
    at: At, language: str, document: str, generated: str, after: str
) -> None:
    """Blanks that are content, and data that repeats itself."""
    cursor = at(language, document)
    assert _applied(cursor, Cutter(cursor).cut(generated)) == after


@pytest.mark.parametrize(("language", "document", "generated", "rule"), DROPPED)
def test_a_useless_suggestion_is_dropped_by_name(
    at: At, language: str, document: str, generated: str, rule: str
) -> None:
    assert Cutter(at(language, document)).cut(generated) == Suggestion("", 0, rule)


@pytest.mark.parametrize(("language", "document", "generated", "after"), CUT_OFF)
def test_a_suggestion_that_cannot_be_decoded_to_its_end_loses_its_last_piece(
    at: At, language: str, document: str, generated: str, after: str
) -> None:
    cursor = at(language, document)
    assert _applied(cursor, Cutter(cursor).cut(generated + "\ufffd")) == after


@pytest.mark.parametrize(("is_in_time", "shown"), [(True, "1"), (False, "1 2")])
def test_an_error_counts_where_the_line_is_known_to_parse_without_the_text(
    monkeypatch: pytest.MonkeyPatch, *, is_in_time: bool, shown: str
) -> None:
    cursor = CursorContext("x = ", " + 2\n", "python")
    alone = (cursor.prefix + cursor.suffix).encode()

    def parse(parser: Parser, source: bytes, max_s: float, old: Begun | None = None) -> Tree | None:
        return parse_within(parser, source, max_s, old) if is_in_time or source != alone else None

    monkeypatch.setattr(syntax, "parse_within", parse)
    assert Cutter(cursor).cut("1 2").text == shown
