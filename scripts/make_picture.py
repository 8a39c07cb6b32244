"""Run the demonstration in a terminal of its own and save what it shows as docs/demo.svg."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

NUM_LINES = 26
WIDTH = 132


def terminal_output(argv: list[str]) -> str:
    """What `argv` writes to a terminal."""
    chunks: list[bytes] = []

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 65536)
        chunks.append(data)
        return data

    os.environ.update(COLUMNS=str(WIDTH * 2), TERM="xterm-256color")
    pty.spawn(argv, read)
    return b"".join(chunks).decode("utf-8", "replace").replace("\r\n", "\n")


def main() -> None:
    """Keep the explanation, the last suggestions and the sum."""
    output = terminal_output([sys.executable, "-m", "scripts.demo"])
    lines = [Text.from_ansi(line) for line in output[output.index("Typing ") :].split("\n")]
    head = next(at for at, line in enumerate(lines) if " ms " in line.plain)
    kept = [*lines[:head], *lines[-NUM_LINES:]]
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for line in kept:
        line.truncate(WIDTH, overflow="ellipsis")
        console.print(line, soft_wrap=False)
    svg = console.export_svg(title="make demo")
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)  # no font from elsewhere
    Path("docs/demo.svg").write_text(svg.replace("Fira Code", "ui-monospace"), encoding="utf-8")


if __name__ == "__main__":
    main()
