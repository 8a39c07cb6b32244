"""`slipstream models`: lists, fetches, checks and removes models.

Owns the output in a terminal. The model store owns where models come from.
"""

from __future__ import annotations

from typing import Annotated

import typer

from completion_engine.config import EngineConfig
from completion_engine.errors import DataError
from completion_engine.loading.warmup import compiled_meanwhile
from completion_engine.models import ModelStore, StoredModel
from lsp_server.commands.terminal import new_app, progress_bar, show_rows, write

app = new_app()

Id = Annotated[str, typer.Argument(metavar="ID", help="A model's id, as `slipstream models list` shows it.")]
Target = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A model's id, a folder, a .gguf file, or owner/name of a hub repository."
    ),
]


@app.callback(invoke_without_command=True)
def models(context: typer.Context) -> None:
    """List, fetch, check and remove models."""
    if context.invoked_subcommand is None:
        list_models()


@app.command("list")
def list_models() -> None:
    """Show the available models, and what of them is on this machine."""
    store, rows = ModelStore(), []
    for model in store.list():
        spec, on_disk = model.spec, model.num_bytes_on_disk
        sizes = _gigabytes(spec.num_bytes), _gigabytes(on_disk) if on_disk else "-"
        rows.append((spec.id, _state(model), *sizes, spec.licence, spec.description))
    columns = ("model", "state", "download", "on disk", "licence", "description")
    show_rows(f"Models in {store.root}", columns, rows, has_lines=False)


@app.command()
def pull(model: Target) -> None:
    """Fetch a model and make it ready to load. Nothing is fetched twice."""
    with progress_bar() as report, compiled_meanwhile(EngineConfig(model), report):
        folder = ModelStore().ensure(model, report)
    write(f"{model} is ready: {folder}\n")


@app.command()
def verify(model: Id) -> None:
    """Compare the hashes of all stored files of a model, and remove damaged ones."""
    with progress_bar() as report:
        result = ModelStore().verify(model, report)
    if result.damaged:
        raise DataError(
            f"Slipstream removed damaged files: {', '.join(result.damaged)}.",
            advice=f"Run: slipstream models pull {model}",
        )
    write(f"{model} is intact: {', '.join(result.checked)}\n")


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
    return "partly downloaded" if model.num_bytes_on_disk else "-"


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.2f} GB"
