"""Makes docs/film.svg: fifteen seconds of a real Neovim with suggestions, and the source of one.

Run as `python -m tests.editors.neovim.film docs/film.svg`, after `make editors`. The screen is read
while keys are pressed at a person's pace, and each picture is shown for as long as it stood.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from completion_engine.config import DEFAULT_TARGET
from tests.editors import programs
from tests.editors.neovim.editor import SERVER, Neovim
from tests.hosts import own_hosts

ROOT = Path(__file__).parents[3]
NAME = "lending/reservations.py"
BEGINS_AT = "        book = self.books.get("
SIZE = (112, 26)
SECONDS = 15.0
KEY_S = 0.12
READING_S = 0.7  # a person reads a suggestion before accepting it
WHY_S = 3.5  # at the end, a window shows where a suggestion came from
MIN_ACCEPTED = 4
MIN_EXPLAINED = 12
CELL, LINE = 8.4, 19
INK, PAPER = "#d4be98", "#1d2021"
INIT = """
vim.o.swapfile, vim.o.laststatus, vim.o.ruler, vim.o.showmode = false, 2, false, false
vim.o.termguicolors, vim.o.background, vim.o.autoindent = true, 'dark', false
vim.cmd.colorscheme('retrobox')
vim.cmd('filetype indent off')
vim.o.statusline = " %t%=%{{v:lua.require'slipstream'.status()}} "
require('slipstream').setup({{ cmd = '{server}', settings = {{ target = '{target}' }} }})
"""

Row = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """The screen from `at_s` on: its rows as runs of text and look, and the cursor."""

    at_s: float
    rows: tuple[Row, ...]
    cursor: tuple[int, int]


@dataclass(slots=True)
class Recorder:
    """Types `wanted` into an editor as a person would, and keeps what the screen showed."""

    editor: Neovim
    wanted: str
    began: float = field(default_factory=time.monotonic)
    pictures: list[Picture] = field(default_factory=list)

    @property
    def now_s(self) -> float:
        """Seconds since the film began."""
        return time.monotonic() - self.began

    def watch(self, seconds: float) -> None:
        """Look at the screen for some time."""
        end = self.now_s + seconds
        while True:
            found: dict[str, Any] = self.editor.call("return Screen.rows()")
            rows = tuple(tuple((text, look) for text, look in row) for row in found["rows"])
            at_s = self.now_s if self.pictures else 0.0
            picture = Picture(at_s, rows, tuple(found["cursor"]))
            last = self.pictures[-1] if self.pictures else None
            if last is None or (picture.rows, picture.cursor) != (last.rows, last.cursor):
                self.pictures.append(picture)
            if self.now_s >= end:
                return

    def play(self) -> int:
        """Type until the text or the time ends; returns the number of characters that were accepted."""
        offset = num_accepted = 0
        while offset < len(self.wanted) and self.now_s < SECONDS - WHY_S:
            ghost = self.editor.ghost()
            if self.now_s > SECONDS - WHY_S - 2 and len(ghost) >= MIN_EXPLAINED:
                break
            if len(ghost) >= MIN_ACCEPTED and self.wanted.startswith(ghost, offset):
                self.watch(READING_S)
                if self.editor.ghost() == ghost:
                    self.editor.type("<Tab>")
                    offset, num_accepted = offset + len(ghost), num_accepted + len(ghost)
                    self.watch(2 * KEY_S)
                continue
            key = self._next_key(offset)
            self.editor.type(key.replace("<", "<lt>").replace("\n", "<CR>"))
            offset += len(key)
            self.watch(KEY_S)
        if len(self.editor.ghost()) >= MIN_EXPLAINED:
            self.editor.type("<Cmd>Slipstream why<CR>")
        self.watch(WHY_S)
        return num_accepted

    def _next_key(self, offset: int) -> str:
        """The next character; an editor indents a new line by itself."""
        rest = self.wanted[offset:]
        num_blanks = len(rest[1:]) - len(rest[1:].lstrip(" ")) if rest[0] == "\n" else 0
        return rest[: 1 + num_blanks]


def film(pictures: list[Picture], end_s: float) -> str:
    """The pictures as an animated SVG. A row that stays the same is drawn once."""
    columns, lines = SIZE
    width, height = columns * CELL + 24, lines * LINE + 24
    shown: dict[tuple[int, Row], list[tuple[float, float]]] = {}
    cursors: list[tuple[float, tuple[int, int]]] = [(picture.at_s, picture.cursor) for picture in pictures]
    ends = [*(later.at_s for _, later in pairwise(pictures)), end_s]
    for picture, end in zip(pictures, ends, strict=True):
        for at in enumerate(picture.rows):
            spans = shown.setdefault(at, [])
            if spans and spans[-1][1] == picture.at_s:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((picture.at_s, end))
    rows = "".join(_row(row, runs, spans, end_s) for (row, runs), spans in shown.items())
    xs = ";".join(f"{12 + CELL * column:.1f}" for _, (_, column) in cursors)
    ys = ";".join(f"{14 + LINE * row}" for _, (row, _) in cursors)
    times = ";".join(f"{_share(at, end_s)}" for at, _ in cursors)
    moves = "".join(
        f'<animate attributeName="{name}" values="{values}" keyTimes="{times}" dur="{end_s:.2f}s" '
        'calcMode="discrete" repeatCount="indefinite"/>'
        for name, values in (("x", xs), ("y", ys))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
        "<title>Neovim: suggestions are typed along and accepted</title>"
        "<style>text { font: 14px 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre; }</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>{rows}'
        f'<rect width="2" height="{LINE}" fill="{INK}">{moves}</rect></svg>\n'
    )


def _share(at_s: float, end_s: float) -> str:
    return f"{min(1.0, at_s / end_s):.4f}"


def _row(row: int, runs: Row, spans: list[tuple[float, float]], end_s: float) -> str:
    """One look of one row, and the spans of time at which the screen showed it."""
    if all(not text.strip() and not _paper(look) for text, look in runs):
        return ""
    drawn = "".join(_runs(row, runs))
    if spans == [(0.0, end_s)]:
        return drawn
    steps = [(0.0, "none")] if spans[0][0] > 0 else []
    for start, end in spans:
        steps += [(start, "inline"), (end, "none")]
    steps = [step for step in steps if step[0] < end_s]
    times, values = ";".join(_share(at, end_s) for at, _ in steps), ";".join(value for _, value in steps)
    if len(steps) == 1:
        return drawn
    return (
        f'<g display="none"><animate attributeName="display" values="{values}" keyTimes="{times}" '
        f'dur="{end_s:.2f}s" calcMode="discrete" repeatCount="indefinite"/>{drawn}</g>'
    )


def _paper(look: str) -> str:
    """The background of a look, "" for the screen's own."""
    ink, paper, _, _, is_reverse = look.split(",")
    return (ink or INK) if is_reverse else paper


def _runs(row: int, runs: Row) -> list[str]:
    """The markup of a row: backgrounds, then texts."""
    parts: list[str] = []
    column = 0
    for text, look in runs:
        ink, paper, bold, italic, is_reverse = look.split(",")
        x, y, width = 12 + CELL * column, 14 + LINE * row, CELL * len(text)
        if background := _paper(look):
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LINE}" fill="{background}"/>'
            )
        if text.strip():
            color = (paper or PAPER) if is_reverse else (ink or INK)
            style = (' font-weight="bold"' if bold else "") + (' font-style="italic"' if italic else "")
            shown = escape(text.rstrip())
            length = f'textLength="{CELL * len(text.rstrip()):.1f}" lengthAdjust="spacingAndGlyphs"'
            parts.append(f'<text x="{x:.1f}" y="{y + 14}" fill="{color}" {length}{style}>{shown}</text>')
        column += len(text)
    return parts


def record(program: Path, folder: Path, environment: dict[str, str]) -> tuple[list[Picture], float, int]:
    """Record one session in a copy of the sample repository."""
    project = folder / "sample_repository"
    shutil.copytree(ROOT / "docs" / "sample_repository", project)
    (project / ".git").mkdir()
    text = (ROOT / "docs" / "demo" / "reservations.py").read_text(encoding="utf-8")
    start = text.index(BEGINS_AT)
    path = project / NAME
    path.write_text(text[:start].rstrip("\n") + "\n", encoding="utf-8")
    init = INIT.format(server=SERVER, target=DEFAULT_TARGET)
    editor = Neovim(program, init, folder / "home", environment)
    try:
        editor.call("dofile(...)", str(Path(__file__).with_name("screen.lua")))
        editor.vim.ui_attach(*SIZE, rgb=True, ext_linegrid=True)
        editor.call("vim.cmd.cd(...)", str(project))
        editor.edit(path)
        editor.wait_ready()
        editor.until("return #require('slipstream').status() > 0")
        editor.type("Go")
        editor.wait_quiet()
        time.sleep(2.0)  # the index is built and the place is warm, as it is where a person thinks
        recorder = Recorder(editor, text[start:])
        recorder.watch(0.5)
        num_accepted = recorder.play()
        return recorder.pictures, recorder.now_s, num_accepted
    finally:
        editor.close()


def main() -> None:
    """Record, and write the film to the path that is given."""
    program = programs.find("neovim-0.12", "nvim")
    with tempfile.TemporaryDirectory() as name, own_hosts() as hosts:
        environment = {"SLIPSTREAM_INDEX_DIR": name, "HF_HUB_OFFLINE": "1", **hosts.env}
        pictures, end_s, num_accepted = record(program, Path(name), environment)
    if not num_accepted:
        sys.exit("No suggestion was accepted; there is nothing to show.")
    written = film(pictures, end_s)
    Path(sys.argv[1]).write_text(written, encoding="utf-8")
    sys.stdout.write(f"{len(pictures)} pictures, {end_s:.1f} s, {num_accepted} characters accepted, ")
    sys.stdout.write(f"{len(written.encode()) / 1e3:.0f} kB\n")


if __name__ == "__main__":
    main()
