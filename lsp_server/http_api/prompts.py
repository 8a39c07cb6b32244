"""The text around a cursor in a prompt: templates for fill-in-the-middle, and notes before the text.

Clients format prompts for one family of models. The parts are read back; the engine builds its own prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CursorText:
    """The text around a cursor, and what the client says about its file.

    The text may be from one of the `other_names`, files that the client has read.
    """

    prefix: str
    suffix: str
    name: str = ""
    language: str = ""
    other_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of files that the text may be from."""
        return tuple(name.replace("\\", "/") for name in (self.name, *self.other_names) if name)


# Marks of the prefix, the suffix and the middle, in any order in a prompt. Codestral has none for the middle.
_TEMPLATES = (
    ("<|fim_prefix|> ", " <|fim_suffix|>", " <|fim_middle|>"),  # ProxyAI adds the spaces
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 - DeepSeek's own
    ("<PRE> ", " <SUF>", " <MID>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    ("[PREFIX]", "[SUFFIX]", "[MIDDLE]"),
)
_COMMENT = r"(?:#|//|--|;|%|<!--|/\*|\")"
# The name of the file whose text follows: after a mark of a model's family, or as a comment.
_NAME = re.compile(
    r"(?P<mark><\|file_sep\|>|<file_sep>|<filename>|<\|file_separator\|>|<｜file▁sep｜>|^\+{5} )?"  # noqa: RUF001
    rf"(?(mark)|^{_COMMENT} ?)((?:[\w.@~ -]{{1,80}}/)*[\w.@-]{{1,80}}\.\w{{1,12}}) *(?:-->|\*/)?\n",
    re.MULTILINE,
)
_LEADING_COMMENTS = re.compile(rf"\n?(?:[ \t]*{_COMMENT}[^\n]*\n)*")
_LANGUAGE = re.compile(rf"\W{{1,8}}language: (\S{{1,40}})[^\n]*\n(?:{_COMMENT}+ *indentation: [^\n]*\n)?")


def read_prompt(prompt: str, suffix: str = "") -> CursorText:
    """Return the text around the cursor of a prompt, which may have the marks of a template."""
    before, prefix = "", prompt
    for template in _TEMPLATES:
        if all(mark in prompt or mark == "[MIDDLE]" for mark in template):
            before, *pieces = re.split(f"({'|'.join(map(re.escape, template))})", prompt)
            parts = dict(zip(pieces[::2], pieces[1::2], strict=True))
            first, suffix, middle = (parts.get(mark, "") for mark in template)
            prefix = first + middle
            break
    if note := _LANGUAGE.match(prefix):  # minuet
        return CursorText(prefix[note.end() :], suffix, language=note[1])
    comments = _LEADING_COMMENTS.match(prefix)
    num_comments = comments.end() if comments else 0
    named = [it for it in _NAME.finditer(prefix) if it["mark"] or it.start() < num_comments]
    if named:  # texts of other files come first, then the name of this one
        return CursorText(prefix[named[-1].end() :], suffix, named[-1][2])
    names = [found[2] for found in _NAME.finditer(f"{before}\n")]
    return CursorText(prefix, suffix, names[-1] if names else "")
