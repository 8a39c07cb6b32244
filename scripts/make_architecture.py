"""Draws docs/architecture.svg out of the import contracts and the packages' own first lines.

Run as `python scripts/make_architecture.py`. What it draws is what `lint-imports` holds.
"""

from __future__ import annotations

import ast
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "architecture.svg"
ROW, GAP, HEAD, MARGIN = 50, 8, 34, 16
LEFT, MIDDLE, RIGHT = 430, 40, 620  # widths: the server, the space beside it, the engine
COLORS = {"lsp_server": "#dbeafe", "completion_engine": "#dcfce7", "ngram_cache": "#fef3c7"}
FONT = "ui-sans-serif, system-ui, sans-serif"
STROKE = 'fill="none" stroke="#111" stroke-width="2"'


class Column(NamedTuple):
    """A package and where it stands; its floors from the top down, each the names of its rooms."""

    package: str
    floors: list[list[str]]
    left: int
    width: int

    @property
    def height(self) -> int:
        """In pixels."""
        return HEAD + len(self.floors) * (ROW + GAP)


def floors_of(package: str) -> list[list[str]]:
    """The layers that the package's contract names, from the top down."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    contract = next(one for one in contracts if one.get("containers") == [package])
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def caption_of(package: str, room: str) -> str:
    """The first sentence of a module's or package's docstring."""
    folder, file = ROOT / package / room / "__init__.py", ROOT / package / f"{room}.py"
    source = folder if folder.exists() else file
    said = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    first = said.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")
    plain = first.removeprefix("Owns ").replace("`", "")
    return plain[:1].upper() + plain[1:]


def text(left: float, top: float, size: int, words: str, style: str = "") -> str:
    """One line of text."""
    return f'<text x="{left:.0f}" y="{top:.0f}" font-size="{size}" {style}>{escape(words)}</text>'


def box(package: str, room: str, left: float, top: float, width: float) -> str:
    """One room."""
    lines = textwrap.wrap(caption_of(package, room), max(12, int(width / 5.4)), max_lines=2, placeholder=" …")
    name = f"{room}/" if (ROOT / package / room).is_dir() else room
    return "".join(
        (
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{ROW}" rx="5" ',
            f'fill="{COLORS[package]}" stroke="#6b7280"/>',
            text(left + 8, top + 16, 12, name, 'font-weight="600"'),
            *(
                text(left + 8, top + 30 + 12 * at, 10, line, 'fill="#374151"')
                for at, line in enumerate(lines)
            ),
        )
    )


def draw(column: Column, top: float) -> list[str]:
    """A package: its name, and a row for each floor."""
    parts = [text(column.left, top + 20, 16, column.package, 'font-weight="700"')]
    for at, rooms in enumerate(column.floors):
        width = (column.width - GAP * (len(rooms) - 1)) / len(rooms)
        y = top + HEAD + at * (ROW + GAP)
        for number, room in enumerate(rooms):
            parts.append(box(column.package, room, column.left + number * (width + GAP), y, width))
    return parts


def picture() -> str:
    """The whole picture: the server beside the engine, the index below both."""
    whole = LEFT + MIDDLE + RIGHT
    server = Column("lsp_server", floors_of("lsp_server"), MARGIN, LEFT)
    engine = Column("completion_engine", floors_of("completion_engine"), MARGIN + LEFT + MIDDLE, RIGHT)
    index = Column("ngram_cache", floors_of("ngram_cache"), MARGIN, whole)
    upper = max(server.height, engine.height)
    center = MARGIN + LEFT + MIDDLE + RIGHT // 2
    arrows = (
        f'<path d="M{MARGIN + LEFT + 8},{MARGIN + 120} h26 m-7,-6 l8,6 l-8,6" {STROKE}/>'
        f'<path d="M{center},{MARGIN + upper - 4} v26 m-6,-7 l6,8 l6,-8" {STROKE}/>'
    )
    size = f"0 0 {whole + 2 * MARGIN} {2 * MARGIN + upper + index.height + 10}"
    parts = [*draw(server, MARGIN), *draw(engine, MARGIN), *draw(index, MARGIN + upper + 10)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="{FONT}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}{arrows}</svg>\n'
    )


if __name__ == "__main__":
    OUT.write_text(picture(), encoding="utf-8")
    sys.stdout.write(f"{OUT}\n")
