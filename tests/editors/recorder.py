"""Stands between an editor and its language server and writes down what they say.

Run as `python recorder.py FOLDER SERVER...`: starts the server, passes every message on unchanged, and writes
it with its time to FOLDER/<start>-<process id of the server>.jsonl. Imported, reads those files. Owns the
files' format. Has no access to the package: it stays light.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

HOLD = "hold"  # the file in a folder of recordings that keeps the server's messages back
TYPING = "typing"  # the one that keeps the editor's messages back, up to one with its text


@dataclass(frozen=True, slots=True)
class Heard:
    """One message: when it went by, in milliseconds since the epoch, and whether the editor sent it."""

    at_ms: float
    from_editor: bool
    message: dict[str, Any]


def recordings(folder: Path) -> list[Path]:
    """One file for each server that was started, in the order of their starts."""
    return sorted(folder.glob("*.jsonl"))


def server_pid(recording: Path) -> int:
    """The process id of the server that a recording belongs to."""
    return int(recording.stem.partition("-")[2])


def read(recording: Path) -> list[Heard]:
    """All that was said so far; a line that is being written is left out."""
    lines = recording.read_bytes().split(b"\n")[:-1]
    return [Heard(**json.loads(line)) for line in lines]


@contextmanager
def holding(folder: Path, text: str) -> Iterator[Callable[[], bool]]:
    """Until the end, keep back the server's first message with `text` in it, and all that follows.

    Yields whether there is such a message.
    """
    hold = folder / HOLD
    hold.write_text(text)
    try:
        yield hold.with_suffix(".kept").exists
    finally:
        hold.unlink()
        hold.with_suffix(".kept").unlink(missing_ok=True)


def send_at_once(folder: Path, text: str) -> None:
    """Keep the editor's messages back until one has `text`: the server computes nothing before."""
    (folder / TYPING).write_text(text)


class Recorder:
    """Passes messages between two streams and writes each one down after it went on its way."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file = path.open("wb")
        self._hold, self._typing = path.with_name(HOLD), path.with_name(TYPING)

    def pump(self, source: IO[bytes], target: IO[bytes], *, from_editor: bool) -> None:
        """Pass on until the source ends or the target is gone; then close the target."""
        waiting: list[tuple[bytes, bytes]] = []
        try:
            while frame := _read_frame(source):
                waiting.append(frame)
                if from_editor and self._waits_for_more(frame[-1]):
                    continue
                if not from_editor:
                    self._hold_back(frame[-1])
                for header, body in waiting:
                    at_ms = time.time() * 1000
                    target.write(header + body)
                    target.flush()
                    self._write(at_ms, from_editor, body)
                waiting.clear()
            target.close()
        except OSError:
            return

    def _waits_for_more(self, body: bytes) -> bool:
        with suppress(FileNotFoundError):
            if self._typing.read_bytes() not in body:
                return True
            self._typing.unlink()
        return False

    def _hold_back(self, body: bytes) -> None:
        with suppress(FileNotFoundError):
            while self._hold.read_bytes() in body:
                self._hold.with_suffix(".kept").touch()
                time.sleep(0.002)

    def _write(self, at_ms: float, from_editor: bool, body: bytes) -> None:
        head = json.dumps({"at_ms": round(at_ms, 3), "from_editor": from_editor})
        with self._lock:
            self._file.write(head[:-1].encode() + b', "message": ' + body.replace(b"\n", b" ") + b"}\n")
            self._file.flush()


def _read_frame(source: IO[bytes]) -> tuple[bytes, bytes] | None:
    """Header and body of the next message; None at the end of the stream."""
    header = b""
    length = 0
    while (line := source.readline()).strip():
        header += line
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = source.read(length)
    return (header + b"\r\n", body) if body and len(body) == length else None


def main(folder: Path, command: list[str]) -> int:
    """Run the server between this process' own streams; returns its exit code."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin
    assert server.stdout
    folder.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(folder / f"{time.time_ns()}-{server.pid}.jsonl")
    told = threading.Thread(
        target=recorder.pump, args=(sys.stdin.buffer, server.stdin), kwargs={"from_editor": True}, daemon=True
    )
    told.start()
    recorder.pump(server.stdout, sys.stdout.buffer, from_editor=False)
    return server.wait()


if __name__ == "__main__":
    # The reading thread may wait for the editor for ever: leave without asking it.
    os._exit(main(Path(sys.argv[1]), sys.argv[2:]) & 0xFF)
