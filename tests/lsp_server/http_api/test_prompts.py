"""The text around the cursor in the prompts that clients send, as data."""

from __future__ import annotations

import pytest

from lsp_server.http_api.dialects import CursorText, read_prompt
from tests.growth import growth

BEFORE, AFTER = "import os\n\n\ndef load(path):\n    ret", "\n\n\ndef save(path):\n    pass\n"
PLAIN = CursorText(BEFORE, AFTER)
NAMED = CursorText(BEFORE, AFTER, "app/files.py")
OTHER = "def other():\n    pass\n"

# The prompt that each client makes of the text, its suffix, and what is read back.
PROMPTS: dict[str, tuple[str, str, CursorText]] = {
    "a prompt and a suffix": (BEFORE, AFTER, PLAIN),
    "a prompt alone": (BEFORE, "", CursorText(BEFORE, "")),
    "Qwen": (f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>", "", PLAIN),
    "StarCoder": (f"<fim_prefix>{BEFORE}<fim_suffix>{AFTER}<fim_middle>", "", PLAIN),
    "StarCoder with dashes": (f"<fim-prefix>{BEFORE}<fim-suffix>{AFTER}<fim-middle>", "", PLAIN),
    "DeepSeek": (f"<｜fim▁begin｜>{BEFORE}<｜fim▁hole｜>{AFTER}<｜fim▁end｜>", "", PLAIN),  # noqa: RUF001
    "CodeLlama": (f"<PRE> {BEFORE} <SUF>{AFTER} <MID>", "", PLAIN),
    "GLM": (f"<|code_prefix|>{BEFORE}<|code_suffix|>{AFTER}<|code_middle|>", "", PLAIN),
    "Codestral": (f"[SUFFIX]{AFTER}[PREFIX]{BEFORE}", "", PLAIN),
    "Codestral with a middle": (f"[SUFFIX]{AFTER}[PREFIX]{BEFORE}[MIDDLE]", "", PLAIN),
    "the suffix first": (f"<|fim_suffix|>{AFTER}<|fim_prefix|>{BEFORE}<|fim_middle|>", "", PLAIN),
    "a begun middle": (f"<|fim_prefix|>{BEFORE[:-3]}<|fim_suffix|>{AFTER}<|fim_middle|>ret", "", PLAIN),
    "ProxyAI": (f"<|fim_prefix|> {BEFORE} <|fim_suffix|>{AFTER} <|fim_middle|>", "", PLAIN),
    "ProxyAI with other files": (
        f"<|repo_name|>repository\n<|file_sep|>app/other.py \n{OTHER}\n<|file_sep|>app/files.py \n"
        f"<|fim_prefix|> {BEFORE} <|fim_suffix|>{AFTER} <|fim_middle|>",
        "",
        NAMED,
    ),
    "ProxyAI with other files as comments": (
        f"# app/other.py \n{OTHER}\n# app/files.py \n<PRE> {BEFORE} <SUF>{AFTER} <MID>",
        "",
        NAMED,
    ),
    "Continue": (
        f"<|fim_prefix|># Path: app/other.py\n# def other():\n#     pass\n# app/files.py\n{BEFORE}"
        f"<|fim_suffix|>{AFTER}<|fim_middle|>",
        "",
        NAMED,
    ),
    "Continue without other files": (
        f"<|fim_prefix|>\n# app/files.py\n{BEFORE}<|fim_suffix|>{AFTER}<|fim_middle|>",
        "",
        NAMED,
    ),
    "Continue with marks of files": (
        f"<|fim_prefix|><|file_sep|>app/other.py\n{OTHER}\n<|file_sep|>app/files.py\n{BEFORE}"
        f"<|fim_suffix|>{AFTER}<|fim_middle|>",
        "",
        NAMED,
    ),
    "Continue for Codestral": (
        f"[SUFFIX]{AFTER}[PREFIX]+++++ app/other.py\n{OTHER}\n\n+++++ app/files.py\n{BEFORE}",
        "",
        NAMED,
    ),
    "a name in a C comment": (f"// src/a.c\n{BEFORE}", AFTER, CursorText(BEFORE, AFTER, "src/a.c")),
    "minuet": (
        f"# language: python\n# indentation: use 4 spaces for a tab\n{BEFORE}",
        AFTER,
        CursorText(BEFORE, AFTER, language="python"),
    ),
    "a path far down in the text": (f"import os\n# see app/other.py\n# app/other.py\n{BEFORE}", AFTER, None),
    "a licence": (f"# Licensed under the terms of\n# the file LICENSE.\n{BEFORE}", AFTER, None),
    "a mark without the others": (f"{BEFORE} # <|fim_prefix|>", AFTER, None),
    "nothing": ("", "", None),
}  # fmt: skip


@pytest.mark.parametrize("name", PROMPTS)
def test_the_text_around_the_cursor_is_read_back(name: str) -> None:
    prompt, suffix, expected = PROMPTS[name]
    assert read_prompt(prompt, suffix) == (expected or CursorText(prompt, suffix))


@pytest.mark.parametrize(
    "hostile",
    [
        "# a/" * 500_000,
        "# a.py\n" * 300_000,
        "<|file_sep|>" * 200_000,
        "<|fim_prefix|>" * 200_000 + "<|fim_suffix|><|fim_middle|>",
        "\n" * 2_000_000,
        "+++++ " + "a" * 2_000_000,
        " " * 2_000_000,
        "#language: " + "x" * 2_000_000,
        "." * 2_000_000,
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.timeout(60)
def test_reading_is_linear_in_the_prompt(hostile: str) -> None:
    sizes = len(hostile) // 16, len(hostile)  # if linear, 16 to 50 times as long, if quadratic 256
    assert growth(lambda num_chars: read_prompt(hostile[:num_chars]), *sizes, below=100) < 100
