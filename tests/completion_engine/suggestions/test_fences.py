"""Code ends before the fence by which a chat would end it; where text may hold a fence it is text.

Each case: language, document, what the model writes, what is kept of it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

Stops = Callable[..., tuple[str, str]]

CHATS: list[tuple[str, str, str, str]] = [
    ("python", "def f():\n    return 1\n‸", "```", ""),
    ("python", "def f():\n    return 1\n\n\n‸", "```\n\nThis function returns 1.", ""),
    ("python", "‸", "x = 1\n```\nThis sets x.", "x = 1"),
    ("typescript", "function f() {\n  return 1;\n}\n‸", "```\n", ""),
    ("go", "func f() {\n\t‸\n}\n", "return\n\t```", "return"),
    ("rust", "fn f() {}\n‸", "\n```", ""),
]

TEXTS: list[tuple[str, str, str]] = [
    ("markdown", "Run this:\n\n‸", "```sh\nmake\n```"),
    ("python", 'def f():\n    """Add.\n\n    ‸', "```\n    f()\n    ```"),
    ("rust", "/// Adds.\n///\n‸", "/// ```\n/// f();"),
    ("typescript", "const a = `\n‸", "```\nf()\n```"),
    ("shellscript", "cat <<END\n‸", "```\nmake\n```"),
    ("yaml", "body: |\n  Run:\n\n  ‸", "```\n  make\n  ```"),
    ("html", "<pre>\n‸", "```\nmake\n```"),
    ("julia", "x = 1\n‸", "```ls```"),
]


@pytest.mark.parametrize(("language", "document", "generated", "kept"), CHATS)
def test_code_ends_before_a_fence(
    stops: Stops, language: str, document: str, generated: str, kept: str
) -> None:
    assert stops(language, document, generated) == (kept, "chat-fence")


@pytest.mark.parametrize(("language", "document", "generated"), TEXTS)
def test_a_fence_is_text_where_text_stands(
    stops: Stops, language: str, document: str, generated: str
) -> None:
    assert stops(language, document, generated)[1] != "chat-fence"
