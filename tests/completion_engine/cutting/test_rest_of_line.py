"""Suggestions fit the rest of the line, in prose and markup too, and beside marks that close themselves.

Each case: language, document, what the model writes, what the document is once that is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Accepted = Callable[[str, str, str], str]
Case = tuple[str, str, str, str]

IN_TEXT: list[Case] = [
    (
        "latex",
        "\\section{‸}\\label{sec:intro}",
        "Introduction}\n",
        "\\section{Introduction}\\label{sec:intro}",
    ),
    ("latex", "see \\cite{‸} for more", "knuth}\n", "see \\cite{knuth} for more"),
    ("latex", "\\frac{‸}{2}", "a + b}{2}\n", "\\frac{a + b}{2}"),
    ("latex", "\\href{‸}{docs}", "https://a.org}\n", "\\href{https://a.org}{docs}"),
    ("latex", "the set $‸$ is open", "U$\n", "the set $U$ is open"),
    ("markdown", "See [‸](https://a.org)", "docs](https://a.org) for more\n", "See [docs](https://a.org)"),
    ("markdown", "See [docs](‸) for more", "https://a.org)\n", "See [docs](https://a.org) for more"),
    ("markdown", "A list (‸) of them", "see below)\n", "A list (see below) of them"),
    ("markdown", "Use **‸** here", "bold**\n", "Use **bold** here"),
    ("markdown", "Use *‸* here", "this*\n", "Use *this* here"),
    ("markdown", "Call `‸` first", "f()`\n", "Call `f()` first"),
    ("markdown", "The area $‸$ grows", "r^2$\n", "The area $r^2$ grows"),
    ("restructuredtext", "See `‸`_ for more", "docs`\n", "See `docs`_ for more"),
    ("html", '<a href="‸">docs</a>', '/docs">docs</a>\n', '<a href="/docs">docs</a>'),
    ("html", "<li><b>‸</b>: text</li>", "Name</b>\n", "<li><b>Name</b>: text</li>"),
    ("html", "<p>‸</p>", "Hello <b>you</b></p>\n", "<p>Hello <b>you</b></p>"),
    ("xml", "<name>‸</name>", "app</name>\n", "<name>app</name>"),
    ("xml", '<item id="‸" kind="b"/>', 'a"\n', '<item id="a" kind="b"/>'),
    ("vue", "<p>{{ ‸ }}</p>", "count }}\n", "<p>{{ count }}</p>"),
    ("jinja", "<p>{{ ‸ }}</p>", "count }}\n", "<p>{{ count }}</p>"),
    ("jinja", "{{ ‸ }}", "count }}\n", "{{ count }}"),
    ("jinja", "{% if ‸ %}", "user %}\n", "{% if user %}"),
    ("jinja", "{%- if ‸ -%}", "user -%}\n", "{%- if user -%}"),
    ("jinja", "{# ‸ #}", "a note #}\n", "{# a note #}"),
    ("liquid", "{{ ‸ | upcase }}", "page.title | upcase }}\n", "{{ page.title | upcase }}"),
    ("erb", "<%= ‸ %>", "@user.name %>\n", "<%= @user.name %>"),
    ("ejs", "<p><%= ‸ %></p>", "user.name %>\n", "<p><%= user.name %></p>"),
    ("go-template", "{{- ‸ -}}", ".Values.name -}}\n", "{{- .Values.name -}}"),
    ("handlebars", "<p>{{‸}}</p>", "name}}\n", "<p>{{name}}</p>"),
    ("php", "<p><?= ‸ ?></p>", "$name ?>\n", "<p><?= $name ?></p>"),
    ("plaintext", "The list (‸) is long", "of names)\n", "The list (of names) is long"),
    ("plaintext", 'He said "‸" twice', 'no"\n', 'He said "no" twice'),
    ("git-commit", "Fix `‸` in the parser", "read()`\n", "Fix `read()` in the parser"),
    ("python", "# call foo(‸) first", "bar)\n", "# call foo(bar) first"),
    ("python", 'x = "a (‸) b"', 'c)"\n', 'x = "a (c) b"'),
    ("c", "/* see f(‸) */", "x) */\n", "/* see f(x) */"),
    ("typst", "the set $‸$ is open", "U$\n", "the set $U$ is open"),
]

OWN_CLOSERS: list[Case] = [
    ("rust", "let a = b.map(|‸|);", "x| x + 1);\n", "let a = b.map(|x| x + 1);"),
    ("rust", "let a = b.map(|‸|)", "&x| x)\n", "let a = b.map(|&x| x)"),
    ("rust", "    .filter(|‸| x.is_some())", "x|\n", "    .filter(|x| x.is_some())"),
    ("rust", "a.for_each(move |‸| {", "(k, v)| {\n", "a.for_each(move |(k, v)| {"),
    ("ruby", "xs.each { |‸| puts x }", "x|\n", "xs.each { |x| puts x }"),
    ("ruby", "xs.each do |‸|", "x, i|\n", "xs.each do |x, i|"),
    ("crystal", "xs.map { |‸| x }", "x|\n", "xs.map { |x| x }"),
    ("zig", "if (a) |‸| {", "b| {\n", "if (a) |b| {"),
    ("zig", "for (xs) |‸| {", "x|\n", "for (xs) |x| {"),
    ("markdown", "the *‸* one", "first*\n", "the *first* one"),
    ("markdown", "the $‸$ term", "n^2$\n", "the $n^2$ term"),
    ("latex", "for $‸$ we have", "n > 0$\n", "for $n > 0$ we have"),
    ("jinja", "{%- ‸ -%}", "endif -%}\n", "{%- endif -%}"),
    ("jinja", "a {# ‸ #} b", "note #}\n", "a {# note #} b"),
    ("typescript", "const a = /‸/g;", "\\d+/\n", "const a = /\\d+/g;"),
    ("sql", "select `‸` from t", "name`\n", "select `name` from t"),
]

GOOD_HEADS: list[Case] = [
    ("javascript", "if (‸) {\n  f();\n}\n", "a > b)\n", "if (a > b) {\n  f();\n}\n"),
    ("c", "while (‸) {\n", "i < n)\n", "while (i < n) {\n"),
    ("java", "for (‸) {\n", "int i = 0; i < n; i++)\n", "for (int i = 0; i < n; i++) {\n"),
    ("rust", "fn f(‸) -> i32 {\n", "a: i32)\n", "fn f(a: i32) -> i32 {\n"),
    ("go", "func f(‸) error {\n", "a int)\n", "func f(a int) error {\n"),
    ("python", "def f(‸) -> int:\n", "a)\n", "def f(a) -> int:\n"),
    (
        "typescriptreact",
        "return <p>Hello, {user.‸}</p>;",
        "name}!</p>;\n",
        "return <p>Hello, {user.name}!</p>;",
    ),
    ("javascriptreact", "<li key={‸}>{item}</li>", "item.id}\n", "<li key={item.id}>{item}</li>"),
    ("javascriptreact", "<b onClick={() => ‸}>Go</b>", "go()}>\n", "<b onClick={() => go()}>Go</b>"),
    ("svelte", "<p>{‸}</p>", "name}\n", "<p>{name}</p>"),
    ("csharp", "if (‸) return;", "a == null)\n", "if (a == null) return;"),
    ("swift", "func f(‸) -> Int {\n", "a: Int)\n", "func f(a: Int) -> Int {\n"),
    ("kotlin", "if (‸) {\n", "a > b)\n", "if (a > b) {\n"),
    ("php", "<?php if (‸) {\n", "$a > $b)\n", "<?php if ($a > $b) {\n"),
    ("scss", "@include a(‸) { b: c }", "1px)\n", "@include a(1px) { b: c }"),
    ("lua", "if f(‸) then\n", "a)\n", "if f(a) then\n"),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), IN_TEXT)
def test_prose_and_markup_go_with_the_rest_of_the_line(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), OWN_CLOSERS)
def test_a_mark_that_closes_itself_is_not_doubled(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), GOOD_HEADS)
def test_the_part_that_fits_is_shown(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


SEPARATED: list[tuple[str, str, str, str]] = [
    (
        "erlang",
        "loop(State) ->\n    From ! {ok, ‸},\n    loop(State).\n",
        "Item} ! {pop, From};\n        {quit} ->\n",
        "loop(State) ->\n    From ! {ok, Item},\n    loop(State).\n",
    ),
    ("javascript", "f(‸),\n", "a) + {\n", "f(a),\n"),
    ("javascript", "f(‸);\n", "a)\n  .then(b);\n", "f(a)\n  .then(b);\n"),
    ("javascript", "f(‸);\n", "() => {\n  a();\n});\n", "f(() => {\n  a();\n});\n"),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), SEPARATED)
def test_a_separator_of_the_rest_does_not_follow_a_line_that_goes_on(
    accepted: Callable[[str, str, str], str], language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


SIGNS_OF_NAMES: list[Case] = [
    ("shellscript", 'cp "$file" "‸/"; done\n', "$target\n", 'cp "$file" "$target/"; done\n'),
    ("shellscript", 'rm -f "$dir"/"‸" other\n', "*.txt\n", 'rm -f "$dir"/"*.txt" other\n'),
    ("python", 'f("‸", name)\n', "_private\n", 'f("_private", name)\n'),
    ("php", '<?php f("‸", 1);\n', "$name\n", '<?php f("$name", 1);\n'),
    ("xml", "<item>‸</item><item/>\n", " _Imaginary \n", "<item> _Imaginary </item><item/>\n"),
    ("python", "x = 1  # a is (2**‸ b\n", "n) * b\n", "x = 1  # a is (2**n) * b\n"),
]
UNUSUAL_PAIRS: list[Case] = [
    ("bat", 'if "%a%"=="‸" exit\n', 'b" ;\n', 'if "%a%"=="b" exit\n'),
    ("ada", "V : Vector := [‸];\n", "0, 0]\n", "V : Vector := [0, 0];\n"),
]
CLOSED_BELOW: list[Case] = [
    ("clojure", "(when-not (f a (‸))\n  (g))\n", "h i))\n", "(when-not (f a (h i))\n  (g))\n"),
    ("javascript", "f(g(‸),\n  b);\n", "a),\n", "f(g(a),\n  b);\n"),
]
WHOLE_RESTS: list[Case] = [
    (
        "restructuredtext",
        "``map(f, a)``‸``f(b[0],\nc)`` and so on\n",
        " returns a list of ``f(b[0],\n",
        "``map(f, a)`` returns a list of ``f(b[0],\nc)`` and so on\n",
    ),
    (
        "html",
        '<b class="‸">It</b>(<i class="e">&#39;</i><i>neither \'a\n',
        'exc"\n',
        '<b class="exc">It</b>(<i class="e">&#39;</i><i>neither \'a\n',
    ),
]
BLANKS_INSIDE: list[Case] = [
    ("vue", "<p>{{‸}}</p>", " index ", "<p>{{ index }}</p>"),
    (
        "typescript",
        "class A {\n  constructor() {‸}\n}\n",
        " super(); ",
        "class A {\n  constructor() { super(); }\n}\n",
    ),
    ("toml", "a = [ {‸} ]\n", " x = 2 ", "a = [ { x = 2 } ]\n"),
    ("perl", 'print "‸";\n', "name: ", 'print "name: ";\n'),
    ("typescript", "f(‸)\n", "a ", "f(a)\n"),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), SIGNS_OF_NAMES)
def test_signs_of_names_and_patterns_need_no_partner(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(
    ("language", "document", "generated", "after"), CLOSED_BELOW + WHOLE_RESTS + UNUSUAL_PAIRS
)
def test_a_rest_that_the_text_repeats_is_replaced_whatever_other_lines_close(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), BLANKS_INSIDE)
def test_a_pair_that_begins_with_a_blank_ends_with_one(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after
