"""A file that is read for a choice: its lines, and what it defines as soon as somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from completion_engine.context.outline import Definition, outline
from completion_engine.grammars import new_parser

_HEADS = ("import ", "from ", "use ", "pub use ", "#include", "using ", "package ", "export * ", "export {")


@dataclass(frozen=True)
class Source:
    """One file's text, of a language by its LSP id."""

    path: str
    language: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, without their ends."""
        return self.text.split("\n")

    @cached_property
    def definitions(self) -> list[Definition]:
        """What it defines; nothing where there is no grammar."""
        parser = new_parser(self.language)
        return outline(parser, self.text) if parser is not None else []


def brings_names_in(line: str) -> bool:
    """Whether a line looks like an import."""
    return line.startswith(_HEADS)
