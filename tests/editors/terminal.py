"""A program in a terminal, driven by keys and read by its screen, which is recorded.

Owns the terminal: a tmux server of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

from tests.waiting import first_true

COLUMNS, ROWS = 110, 34

# The machine may be busy, and the model takes its time to load.
LOADING_S = 540.0
PATIENCE_S = 120.0

# Colours and other looks in what tmux prints.
_LOOKS = re.compile(r"\x1b\[[0-9;:]*m|\x1b\(B|\x0f|\x0e")


class Terminal:
    """One program in a terminal of its own, which ends with it. A recording keeps all that `screen` saw."""

    def __init__(
        self,
        argv: list[str],
        folder: Path,
        environment: dict[str, str],
        size: tuple[int, int] = (COLUMNS, ROWS),
    ) -> None:
        self._began_s = time.monotonic()
        self._pictures: list[tuple[float, str]] = []
        self._socket = str(folder / "terminal")
        start = ["-f", os.devnull, "new-session", "-d", "-x", str(size[0]), "-y", str(size[1])]
        start += ["-c", str(folder)]
        variables = [f"{name}={value}" for name, value in environment.items()]
        self._tmux(*start, "env", *variables, *argv)

    def press(self, *keys: str) -> None:
        """Presses keys in tmux's notation, with the pauses of a hand: Escape and a letter are not Alt."""
        for key in keys:
            self._tmux("send-keys", key)
            time.sleep(0.15)

    def screen(self) -> str:
        """The text on the screen now."""
        picture = self._tmux("capture-pane", "-p", "-e")
        if not self._pictures or self._pictures[-1][1] != picture:
            self._pictures.append((time.monotonic() - self._began_s, picture))
        return _LOOKS.sub("", picture)

    @property
    def looks(self) -> str:
        """The text that `screen` saw last, with its colours."""
        return self._pictures[-1][1]

    def save_recording(self, path: Path) -> None:
        """Write what the screen showed as an asciicast, which `asciinema play` plays."""
        lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS})]
        for at_s, picture in self._pictures:
            drawn = picture.rstrip("\n").replace("\n", "\r\n")
            lines.append(json.dumps([round(at_s, 2), "o", f"\x1b[H\x1b[0m\x1b[2J{drawn}"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*lines, ""]))

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *command: str) -> str:
        argv = ["tmux", "-S", self._socket, *command]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def retype_until(terminal: Terminal, word: str, pattern: str) -> str:
    """Types a word anew until `pattern` is on the screen: editors ask when a key is typed, not when a
    model has loaded. Returns the pattern's group."""
    end = time.monotonic() + LOADING_S
    while time.monotonic() < end:
        terminal.press(*word)
        try:
            return until_shown(terminal, pattern, within_s=3.0)
        except TimeoutError:
            terminal.press(*["BSpace"] * len(word))
    raise TimeoutError(f"no {pattern} on the screen:\n{terminal.screen()}")


def until_shown(terminal: Terminal, pattern: str, within_s: float = PATIENCE_S) -> str:
    """The group of a pattern, once a line of the screen matches it."""
    match = first_true(lambda: re.search(pattern, terminal.screen(), re.MULTILINE), within_s)
    if match is None:
        raise TimeoutError(f"no {pattern} on the screen:\n{terminal.screen()}")
    return match[1]
