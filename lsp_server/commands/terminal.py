"""The commands in a terminal: help, JSON and tables on stdout, errors and progress on stderr.

The only module that uses rich.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from completion_engine.errors import SlipstreamError

if TYPE_CHECKING:
    from rich.console import Console

    from completion_engine.request import Progress

_PIPE_WIDTH = 200


def new_app(**options: Any) -> typer.Typer:
    """A command line with `-h`, and with help in plain text, which shows no type after a flag."""
    names = {"help_option_names": ["-h", "--help"]}
    options = {"add_completion": False, "pretty_exceptions_enable": False, **options}
    return typer.Typer(context_settings=names, rich_markup_mode=None, **options)


def console(*, stderr: bool = False) -> Console:
    """A rich console: colours on a terminal, wide plain text in a pipe, where nothing may be cut off."""
    from rich.console import Console  # noqa: PLC0415 - 50 ms that `--help` need not pay

    shown = Console(stderr=stderr, highlight=False)
    if not shown.is_terminal:
        shown.width = _PIPE_WIDTH
    return shown


def write(text: str) -> None:
    """Write `text` to stdout as UTF-8, whatever encoding the terminal claims to have."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def write_json(value: Mapping[str, Any]) -> None:
    """Write one JSON object as one line to stdout."""
    write(json.dumps(value, ensure_ascii=False) + "\n")


def show_rows(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, has_lines: bool = True
) -> None:
    """Write a table to stdout; without lines, each row begins with its first value."""
    from rich.table import Table  # noqa: PLC0415 - 50 ms that `--help` need not pay

    table = Table(*columns, title=title, title_justify="left")
    if not has_lines:
        table.box, table.pad_edge = None, False
    for row in rows:
        table.add_row(*row)
    console().print(table, markup=False)


def show_figures(found: Mapping[str, Any], *, title: str, json: bool) -> None:
    """Write one JSON line if `json` is wanted, otherwise a table of names, in words, and values."""
    if json:
        write_json(found)
        return
    groups = {name: value if isinstance(value, dict) else {"": value} for name, value in found.items()}
    rows = [
        (in_words(name), in_words(str(key)), _value(value))
        for name, group in groups.items()
        for key, value in group.items()
    ]
    show_rows(title, ("", "", "value"), rows)


def in_words(name: str) -> str:
    """A name of the code as people say it: `num_prompt_tokens` is "prompt tokens"."""
    return name.removeprefix("num_").replace("_num_", "_").replace("_", " ")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def show_error(error: SlipstreamError) -> None:
    """Write to stderr what went wrong and what to do about it."""
    lines = [f"slipstream: {error.message}", *error.advice.splitlines()]
    sys.stderr.write("\n  ".join(lines) + "\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGTERM end the block as Ctrl+C does, so that a measurement can report what it has by then."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """Yield a `report(what, done, total)` that draws one bar for each `what` on stderr.

    `total` is 0 while it is unknown. If stderr is not a terminal, a line is written for each `what` and
    each tenth of it. `quiet` writes nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield (lambda *_: None) if quiet else _PlainLines()
        return
    from rich import progress as bars  # noqa: PLC0415 - as above

    tasks: dict[str, bars.TaskID] = {}
    columns = (*bars.Progress.get_default_columns()[:3], bars.TimeElapsedColumn())
    with bars.Progress(*columns, console=console(stderr=True)) as shown:

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=None)
            shown.update(tasks[what], completed=done, total=total or None)

        yield report


class _PlainLines:
    """A report for logs: a line when a new step begins, and for each tenth of it."""

    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        tenth = 10 * done // total if total else 0
        if (what, tenth) != self._last:
            self._last = (what, tenth)
            sys.stderr.write(f"{what} {10 * tenth} %\n" if total else f"{what}\n")
            sys.stderr.flush()
