"""The text in the editor, as what stands left and right of the cursor, and the changes made to it.

Knows LSP positions and content changes. Must not know why a change is made, nor send anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsp_server.workspace.positions import PositionEncoding, index_of, units_of


@dataclass(slots=True)
class Buffer:
    """Text around a cursor. Every change returns the LSP content change that says the same."""

    left: str
    right: str
    encoding: PositionEncoding = "utf-16"

    @property
    def text(self) -> str:
        """The whole text."""
        return self.left + self.right

    @property
    def position(self) -> dict[str, int]:
        """The cursor as an LSP position."""
        return self.position_of(len(self.left))

    def position_of(self, offset: int) -> dict[str, int]:
        """An offset into the text as an LSP position."""
        before = self.left if offset == len(self.left) else self.text[:offset]
        start = before.rfind("\n") + 1
        return {"line": before.count("\n"), "character": units_of(before[start:], self.encoding)}

    def offset_of(self, position: dict[str, int]) -> int:
        """An LSP position as an offset into the text."""
        lines = self.text.split("\n")
        line = min(position["line"], len(lines) - 1)
        above = sum(len(text) + 1 for text in lines[:line])
        return above + index_of(lines[line], position["character"], self.encoding)

    def write(
        self, before: str, after: str = "", *, num_erased: int = 0, num_replaced: int = 0
    ) -> dict[str, Any]:
        """Put `before` left and `after` right of the cursor.

        First `num_erased` characters left and `num_replaced` right of the cursor go.
        """
        start, end = len(self.left) - num_erased, len(self.left) + num_replaced
        change = {
            "range": {"start": self.position_of(start), "end": self.position_of(end)},
            "text": before + after,
        }
        self.left = self.left[:start] + before
        self.right = after + self.right[num_replaced:]
        return change

    def move(self, num_chars: int) -> None:
        """Move the cursor to the right, as typing over a closing bracket does."""
        self.left, self.right = self.left + self.right[:num_chars], self.right[num_chars:]
