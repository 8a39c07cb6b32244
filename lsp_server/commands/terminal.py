"""What the commands say to people and to programs: JSON on stdout, everything else on stderr.

Knows rich. Must not know what a command does.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from completion_engine.errors import SlipstreamError
from completion_engine.request import Progress

if TYPE_CHECKING:
    from rich.console import Console


PIPE_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """A rich console: colours on a terminal, wide plain text in a pipe, where nothing is to be cut off."""
    from rich.console import Console  # noqa: PLC0415 - 50 ms that `--help` need not pay

    shown = Console(stderr=stderr, highlight=False)
    if not shown.is_terminal:
        shown.width = PIPE_WIDTH
    return shown


def write(text: str) -> None:
    """Write `text` to stdout as it is, whatever encoding the terminal claims to have."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def write_json(value: Mapping[str, Any]) -> None:
    """Write one JSON object as one line to stdout."""
    write(json.dumps(value, ensure_ascii=False) + "\n")


def show_rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on stdout."""
    from rich.table import Table  # noqa: PLC0415 - 50 ms that `--help` need not pay

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def show_error(error: SlipstreamError) -> None:
    """Tell on stderr what went wrong and what to do about it."""
    lines = [f"slipstream: {error.message}", *error.advice.splitlines()]
    sys.stderr.write("\n  ".join(lines) + "\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends what runs inside as Ctrl+C does, so that a measurement can tell what it has by then."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """A `report(what, done, total)` that draws one bar per `what` on stderr.

    `total` is 0 while it is not known. Where stderr is no terminal each `what` is written once; nothing
    is when `quiet`.
    """
    from rich.progress import (  # noqa: PLC0415 - as above
        BarColumn,
        Progress,
        TaskID,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    shown = console(stderr=True)
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=shown, disable=quiet or not shown.is_terminal) as progress:

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=None)
                if not (quiet or shown.is_terminal):
                    shown.print(what, markup=False)
            progress.update(tasks[what], completed=done, total=total or None)

        yield report
