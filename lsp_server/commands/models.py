"""`slipstream models`: list, fetch, check and remove models.

Owns how the model store's answers look in a terminal. Must not know where models come from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.table import Table

from completion_engine.config import EngineConfig
from completion_engine.errors import DataError
from completion_engine.loading.warmup import compiled_meanwhile
from completion_engine.models import ModelStore, StoredModel
from completion_engine.request import Progress
from lsp_server.commands.terminal import console, progress_bar, write

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
)

Id = Annotated[str, typer.Argument(metavar="ID", help="A model's id, as `slipstream models list` shows it.")]
Target = Annotated[
    str, typer.Argument(metavar="ID", help="A model's id; a folder, a .gguf file or owner/name works too.")
]


@app.callback(invoke_without_command=True)
def models(context: typer.Context) -> None:
    """List, fetch, check and remove models."""
    if context.invoked_subcommand is None:
        list_models()


@app.command("list")
def list_models() -> None:
    """Show the models that can be had, and what of them is on this machine."""
    store = ModelStore()
    table = Table("model", "state", "download", "on disk", "licence", "description", box=None, pad_edge=False)
    for model in store.list():
        on_disk = _gigabytes(model.num_bytes_on_disk) if model.num_bytes_on_disk else "-"
        spec = model.spec
        table.add_row(
            spec.id, _state(model), _gigabytes(spec.num_bytes), on_disk, spec.licence, spec.description
        )
    shown = console()
    if not shown.is_terminal:
        shown.width = 200  # a pipe has no width; what is cut off cannot be searched for
    shown.print(table)
    shown.print(f"\nModels lie in {store.root}", soft_wrap=True)


@app.command()
def pull(model: Target) -> None:
    """Fetch a model and make it ready to load; nothing is fetched twice."""
    with _progress() as report, compiled_meanwhile(EngineConfig(model), report):
        folder = ModelStore().ensure(model, report)
    write(f"{model} is ready: {folder}\n")


@app.command()
def verify(model: Id) -> None:
    """Read all that is stored of a model and compare hashes; what is damaged is removed."""
    with _progress() as report:
        result = ModelStore().verify(model, report)
    if result.damaged:
        raise DataError(
            f"Damaged and removed: {', '.join(result.damaged)}.",
            advice=f"Build it again: slipstream models pull {model}",
        )
    write(f"{model} is intact: {', '.join(result.checked)}\n")


@app.command()
def path(
    model: Id,
    *,
    converted: Annotated[
        bool, typer.Option("--converted", help="The folder with safetensors instead of the official file.")
    ] = False,
) -> None:
    """Print where a model's official file lies."""
    store = ModelStore()
    write(f"{store.converted_path(model) if converted else store.path(model)}\n")


@app.command()
def remove(model: Id) -> None:
    """Delete all that is stored of a model."""
    num_bytes = ModelStore().remove(model)
    write(f"{model}: {_gigabytes(num_bytes)} freed\n")


def _state(model: StoredModel) -> str:
    if model.is_ready:
        return "ready"
    if model.has_file:
        return "fetched"
    return "partly fetched" if model.num_bytes_on_disk else "-"


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.2f} GB"


@contextmanager
def _progress() -> Iterator[Progress]:
    """Bars on a terminal, one plain line per tenth otherwise; both on stderr."""
    if sys.stderr.isatty():
        with progress_bar() as report:
            yield report
    else:
        yield _PlainLines()


class _PlainLines:
    """A report for logs: a line when something new begins and at every tenth of it."""

    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        tenth = 10 * done // total if total else 0
        if (what, tenth) != self._last:
            self._last = (what, tenth)
            sys.stderr.write(f"{what} {10 * tenth} %\n" if total else f"{what}\n")
            sys.stderr.flush()
