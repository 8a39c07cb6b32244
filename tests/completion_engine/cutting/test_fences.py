"""Code ends before the fence of a chat. In a text that may hold a fence, it is text.

Each case: language, document, what the model writes, what is kept of it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Shows = Callable[..., tuple[str, str]]

CHATS: list[tuple[str, str, str, str]] = [
    ("python", "def f():\n    return 1\n‸", "```", ""),
    ("python", "def f():\n    return 1\n\n\n‸", "```\n\nThis function returns 1.", ""),
    ("python", "‸", "x = 1\n```\nThis sets x.", "x = 1"),
    ("typescript", "function f() {\n  return 1;\n}\n‸", "```\n", ""),
    ("go", "func f() {\n\t‸\n}\n", "return\n\t```", "return"),
    ("rust", "fn f() {}\n‸", "\n```", ""),
    ("fortran", "program a\n  x = 1\n‸", "end program\n```\n", "end program"),
    ("java", "class A {\n    ‸\n}\n", "int b;```\n", "int b;"),
    ("kotlin", "val a = ‸", "1```", "1"),
    ("swift", "let a = ‸", "1```\nThis", "1"),
    ("json", '{"a": ‸}', "1```", "1"),
    ("toml", "a = ‸", "1```\n", "1"),
    ("yaml", "a:\n  ‸", "b: 1```\n", "b: 1"),
    ("css", "a { ‸ }", "b: c;```", "b: c;"),
    ("html", "<div>\n  ‸\n</div>\n", "<p>a</p>```\n", "<p>a</p>"),
    ("vue", "<script>\nconst a = ‸\n</script>\n", "1```\n", "1"),
    ("shellscript", "ls ‸", "-l```", "-l"),
    ("dockerfile", "FROM a\n‸", "RUN b\n```\n", "RUN b"),
    ("makefile", "all:\n\t‸", "cc a.c```\n", "cc a.c"),
    ("sql", "select ‸", "1;```", "1;"),
    ("haskell", "f = ‸", "1```", "1"),
    ("my-language", "let a = ‸", "1```", "1"),
    ("javascript", "const a = ‸;", "f()```", "f()"),
    ("typescriptreact", "return (\n  ‸\n);\n", "<p>a</p>```\n", "<p>a</p>"),
]

MARKS_OF_MODELS: list[tuple[str, str, str, str]] = [
    ("python", "x = ‸", "1<|endoftext|>y = 2", "1"),
    ("markdown", "Text ‸", "here.<|im_end|>\n", "here."),
    ("rust", "let a = ‸", "1;<|fim_middle|>", "1;"),
    ("c", "int a = ‸", "1; <|file_sep|>b.c\n", "1;"),
]

TEXTS: list[tuple[str, str, str]] = [
    ("markdown", "Run this:\n\n‸", "```sh\nmake\n```"),
    ("python", 'def f():\n    """Add.\n\n    ‸', "```\n    f()\n    ```"),
    ("rust", "/// Adds.\n///\n‸", "/// ```\n/// f();"),
    ("shellscript", "cat <<END\n‸", "```\nmake\n```"),
    ("yaml", "body: |\n  Run:\n\n  ‸", "```\n  make\n  ```"),
    ("html", "<pre>\n‸", "```\nmake\n```"),
    ("html", "<!-- Run:\n‸", "```\nmake\n```"),
    ("mdx", "Run this:\n\n‸", "```sh\nmake\n```"),
    ("ruby", "x = <<~EOS\n  ‸", "```\n  make\n  ```"),
    ("php", "<?php\n/**\n * ‸", "```\n * f();\n * ```"),
    ("kotlin", "/**\n * ‸", "```\n * f()\n * ```"),
    ("plaintext", "Run this:\n\n‸", "```\nmake\n```"),
    ("my-language", "```\na\n```\n‸", "```\nb\n```"),
]


@pytest.mark.parametrize(("language", "document", "generated", "kept"), CHATS + MARKS_OF_MODELS)
def test_code_ends_before_a_fence(
    shows: Shows, language: str, document: str, generated: str, kept: str
) -> None:
    assert shows(language, document, generated) == kept


@pytest.mark.parametrize(("language", "document", "generated"), TEXTS)
def test_a_fence_is_text_where_text_stands(
    shows: Shows, language: str, document: str, generated: str
) -> None:
    assert "```" in shows(language, document, generated)
