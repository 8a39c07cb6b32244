"""A closing line is not written again if it is below the cursor already.

Each case: language, document, what the model writes, what the document is once that is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Accepted = Callable[[str, str, str], str]
Case = tuple[str, str, str, str]

WRITTEN_AGAIN: list[Case] = [
    ("markdown", "```python\n‸\n```\n", "x = 1\n```\n", "```python\nx = 1\n```\n"),
    ("markdown", "```\n‸\n```\n\nMore.\n", "make\n```\n\nThen", "```\nmake\n```\n\nMore.\n"),
    ("markdown", "- a\n\n  ```sh\n  ‸\n  ```\n", "make\n  ```\n", "- a\n\n  ```sh\n  make\n  ```\n"),
    ("markdown", "~~~js\n‸\n~~~\n", "f();\n~~~\n", "~~~js\nf();\n~~~\n"),
    (
        "markdown",
        "---\ntitle: A\n‸\n---\n\n# A\n",
        "date: 2024\n---\n",
        "---\ntitle: A\ndate: 2024\n---\n\n# A\n",
    ),
    ("markdown", "+++\n‸\n+++\n", 'title = "A"\n+++\n', '+++\ntitle = "A"\n+++\n'),
    ("markdown", "$$\n‸\n$$\n", "x^2\n$$\n", "$$\nx^2\n$$\n"),
    ("markdown", ":::note\n‸\n:::\n", "Take care.\n:::\n", ":::note\nTake care.\n:::\n"),
    ("mdx", "```jsx\n‸\n```\n", "<A />\n```\n", "```jsx\n<A />\n```\n"),
    ("quarto", "::: {.callout}\n‸\n:::\n", "Take care.\n:::\n", "::: {.callout}\nTake care.\n:::\n"),
    ("shellscript", "cat <<EOF\n‸\nEOF\n", "hello\nEOF\n", "cat <<EOF\nhello\nEOF\n"),
    ("shellscript", "cat <<-'END'\n\t‸\n\tEND\n", "hello\n\tEND\n", "cat <<-'END'\n\thello\n\tEND\n"),
    ("dockerfile", "RUN <<EOF\n‸\nEOF\n", "apt-get update\nEOF\n", "RUN <<EOF\napt-get update\nEOF\n"),
    (
        "yaml",
        "- run: |\n    cat <<EOF\n    ‸\n    EOF\n",
        "hello\n    EOF\n",
        "- run: |\n    cat <<EOF\n    hello\n    EOF\n",
    ),
    ("ruby", "x = <<~SQL\n  ‸\nSQL\n", "select 1\nSQL\n", "x = <<~SQL\n  select 1\nSQL\n"),
    ("php", "<?php\n$a = <<<EOT\n‸\nEOT;\n", "hello\nEOT;\n", "<?php\n$a = <<<EOT\nhello\nEOT;\n"),
    ("perl", "print <<END;\n‸\nEND\n", "hello\nEND\n", "print <<END;\nhello\nEND\n"),
    ("terraform", "a = <<-EOT\n  ‸\n  EOT\n", "hello\n  EOT\n", "a = <<-EOT\n  hello\n  EOT\n"),
    ("asm", "f:\n    ‸\n    ret\n", "xor eax, eax\n    ret\n", "f:\n    xor eax, eax\n    ret\n"),
    (
        "latex",
        "\\begin{itemize}\n  ‸\n\\end{itemize}\n",
        "\\item A\n\\end{itemize}\n",
        "\\begin{itemize}\n  \\item A\n\\end{itemize}\n",
    ),
    ("latex", "$$\n‸\n$$\n", "x^2\n$$\n", "$$\nx^2\n$$\n"),
    ("latex", "\\[\n‸\n\\]\n", "x^2\n\\]\n", "\\[\nx^2\n\\]\n"),
    ("vue", "<script>\n‸\n</script>\n", "const a = 1\n</script>\n", "<script>\nconst a = 1\n</script>\n"),
    ("html", "<style>\n‸\n</style>\n", "a { b: c }\n</style>\n", "<style>\na { b: c }\n</style>\n"),
    (
        "xml",
        "<a>\n  <b>\n    ‸\n  </b>\n</a>\n",
        "<c/>\n  </b>\n</a>\n",
        "<a>\n  <b>\n    <c/>\n  </b>\n</a>\n",
    ),
    ("xml", "<![CDATA[\n‸\n]]>\n", "a < b\n]]>\n", "<![CDATA[\na < b\n]]>\n"),
    (
        "jinja",
        "{% if a %}\n  ‸\n{% endif %}\n",
        "{{ a }}\n{% endif %}\n",
        "{% if a %}\n  {{ a }}\n{% endif %}\n",
    ),
    ("erb", "<% if a %>\n  ‸\n<% end %>\n", "<%= a %>\n<% end %>\n", "<% if a %>\n  <%= a %>\n<% end %>\n"),
    ("handlebars", "{{#if a}}\n  ‸\n{{/if}}\n", "{{a}}\n{{/if}}\n", "{{#if a}}\n  {{a}}\n{{/if}}\n"),
    (
        "go-template",
        "{{ if .A }}\n  ‸\n{{ end }}\n",
        "{{ .A }}\n{{ end }}\n",
        "{{ if .A }}\n  {{ .A }}\n{{ end }}\n",
    ),
    ("blade", "@if ($a)\n  ‸\n@endif\n", "{{ $a }}\n@endif\n", "@if ($a)\n  {{ $a }}\n@endif\n"),
    ("svelte", "{#if a}\n  ‸\n{/if}\n", "<p>{a}</p>\n{/if}\n", "{#if a}\n  <p>{a}</p>\n{/if}\n"),
    ("cmake", "if(A)\n  ‸\nendif()\n", "set(B 1)\nendif()\n", "if(A)\n  set(B 1)\nendif()\n"),
    ("makefile", "ifdef A\n‸\nendif\n", "B = 1\nendif\n", "ifdef A\nB = 1\nendif\n"),
    ("fortran", "do i = 1, n\n  ‸\nend do\n", "a(i) = 0\nend do\n", "do i = 1, n\n  a(i) = 0\nend do\n"),
    ("vb", "If a Then\n    ‸\nEnd If\n", "B()\nEnd If\n", "If a Then\n    B()\nEnd If\n"),
    ("sql", "begin\n  ‸\nEND;\n", "select 1;\nEND;\n", "begin\n  select 1;\nEND;\n"),
    (
        "systemverilog",
        "module a;\n  ‸\nendmodule\n",
        "wire b;\nendmodule\n",
        "module a;\n  wire b;\nendmodule\n",
    ),
    ("julia", "function f()\n    ‸\nend\n", "1\nend\n", "function f()\n    1\nend\n"),
    ("c", "/*\n * ‸\n */\nint a;\n", "Adds.\n */\n", "/*\n * Adds.\n */\nint a;\n"),
    (
        "rust",
        "/// ```\n/// ‸\n/// ```\nfn f() {}\n",
        "f();\n/// ```\n",
        "/// ```\n/// f();\n/// ```\nfn f() {}\n",
    ),
    (
        "python",
        'def f():\n    """\n    ‸\n    """\n',
        'Add.\n    """\n',
        'def f():\n    """\n    Add.\n    """\n',
    ),
    (
        "org",
        "#+BEGIN_SRC python\n‸\n#+END_SRC\n",
        "x = 1\n#+END_SRC\n",
        "#+BEGIN_SRC python\nx = 1\n#+END_SRC\n",
    ),
    ("asciidoc", "----\n‸\n----\n", "make\n----\n", "----\nmake\n----\n"),
    ("lua", "local a = [[\n‸\n]]\n", "hello\n]]\n", "local a = [[\nhello\n]]\n"),
    ("powershell", '$a = @"\n‸\n"@\n', 'hello\n"@\n', '$a = @"\nhello\n"@\n'),
    ("asciidoc", "|===\n|A |B\n\n‸\n|===\n", "|c |d\n|===\n", "|===\n|A |B\n\n|c |d\n|===\n"),
    ("asciidoc", "[NOTE]\n====\n‸\n====\n", "Take care.\n====\n", "[NOTE]\n====\nTake care.\n====\n"),
    ("asciidoc", "A\n\n****\n‸\n****\n", "An aside.\n****\n", "A\n\n****\nAn aside.\n****\n"),
    ("haskell", "{-\n‸\n-}\n", "Adds.\n-}\n", "{-\nAdds.\n-}\n"),
]

CLOSED_OTHERWISE: list[Case] = [
    ("powershell", '$a = @"\n‸\n"@\nf $a\n', 'b\n"\nf $a\n', '$a = @"\nb\n"@\nf $a\n'),
    ("python", 'A = """\n‸\n"""\nf(A)\n', "b\n'''\ng()\n", 'A = """\nb\n"""\nf(A)\n'),
    ("python", 'A = """\n‸\n"""\n', "It\n's\n", 'A = """\nIt\n\'s\n"""\n'),
    (
        "cmake",
        "if(A)\n  ‸\nelse()\n  b()\nendif()\n",
        "c()\nendif()\n",
        "if(A)\n  c()\nelse()\n  b()\nendif()\n",
    ),
    ("lua", "if a then\n  ‸\nelse\n  b()\nend\n", "c()\nend\nd()\n", "if a then\n  c()\nelse\n  b()\nend\n"),
    ("ruby", "if a\n  ‸\nelse\n  b\nend\n", "c\nend\n", "if a\n  c\nelse\n  b\nend\n"),
    ("mdx", "---\na: b\n‸\n---\n", 'c: d\nimport { E } from "e";\n', "---\na: b\nc: d\n---\n"),
    ("yaml", "a: 1\n‸\n", "b: 2\nThis sets both.\n", "a: 1\nb: 2\n"),
    ("yaml", "a:\n  ‸\n", "b: one\n    two\n  c: 3\n", "a:\n  b: one\n    two\n  c: 3\n"),
    ("yaml", "a:\n  ‸\n", "{{- if .B }}\n  - c\n", "a:\n  {{- if .B }}\n  - c\n"),
    ("toml", "[a]\n‸\n", "b = [\n  1,\n]\nAnd more\n", "[a]\nb = [\n  1,\n]\n"),
]

LEFT_OPEN: list[Case] = [
    ("markdown", "```python\n‸", "x = 1\n```\n\nThis sets x.\n", "```python\nx = 1\n```"),
    ("shellscript", "cat <<EOF\n‸", "hello\nEOF\necho\n", "cat <<EOF\nhello\nEOF"),
    ("markdown", "---\ntitle: A\n‸\n\n# A\n", "date: 2024\n---\n", "---\ntitle: A\ndate: 2024\n---\n\n# A\n"),
    ("markdown", "$$\n‸\n\nText.\n", "x^2\n$$\n", "$$\nx^2\n$$\n\nText.\n"),
    ("vue", "<script>\n‸", "const a = 1\n</script>\n\n<style>\n", "<script>\nconst a = 1\n</script>"),
    (
        "latex",
        "\\begin{verbatim}\n‸",
        "make\n\\end{verbatim}\n\nText\n",
        "\\begin{verbatim}\nmake\n\\end{verbatim}",
    ),
    ("ruby", "x = <<~EOS\n  ‸", "hello\nEOS\ny = 1\n", "x = <<~EOS\n  hello\nEOS"),
    ("dockerfile", "RUN <<EOF\n‸", "apt-get update\nEOF\nCOPY a b\n", "RUN <<EOF\napt-get update\nEOF"),
]

MEANT_TWICE: list[Case] = [
    ("c", "int a[] = {\n    ‸\n    0,\n};\n", "0,\n", "int a[] = {\n    0,\n    0,\n};\n"),
    ("json", "[\n  ‸\n  {},\n  {}\n]\n", "{},\n", "[\n  {},\n  {},\n  {}\n]\n"),
    ("asm", "    ‸\n    nop\n    nop\n", "nop\n", "    nop\n    nop\n    nop\n"),
    ("csv", "1,2\n‸\n1,2\n", "1,2\n", "1,2\n1,2\n1,2\n"),
]


@pytest.mark.parametrize(("language", "document", "generated", "after"), WRITTEN_AGAIN)
def test_a_closing_line_is_not_written_again(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), CLOSED_OTHERWISE)
def test_a_text_ends_before_a_line_that_would_leave_its_block_or_language(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), LEFT_OPEN)
def test_a_part_in_another_language_ends_with_the_line_that_closes_it(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after


@pytest.mark.parametrize(("language", "document", "generated", "after"), MEANT_TWICE)
def test_data_may_follow_its_like(
    accepted: Accepted, language: str, document: str, generated: str, after: str
) -> None:
    assert accepted(language, document, generated) == after
