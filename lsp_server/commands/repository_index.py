"""`slipstream index`, and a repository's saved index for the other commands: built, read and forgotten."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from completion_engine.errors import MachineError, UserError
from completion_engine.models import ModelStore
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import Progress
from lsp_server.commands.local_engine import indexed, with_target
from lsp_server.commands.terminal import progress_bar, write
from ngram_cache import NgramIndex
from ngram_cache.indexing import Indexer
from ngram_cache.planning import IndexHooks, IndexSummary
from ngram_cache.repository import RepositoryOptions
from ngram_cache.saved_index import forget

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def index(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The repository.", show_default=False)
    ] = Path(),
    *,
    files: Annotated[bool, typer.Option("--files", help="Print the indexed paths, one per line.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the repository's index.")] = False,
) -> None:
    """Build or update the index of the repository in DIR."""
    if files and purge:
        raise typer.BadParameter("Use either --files or --purge.")
    if purge:
        _purge(directory.resolve())  # a folder that is gone may still have an index
        return
    paths = _update(checked_folder(directory))
    write("".join(f"{path}\n" for path in (paths if files else ())))


def checked_folder(folder: Path) -> Path:
    """The folder, resolved. Raises UserError when it is missing, not a folder, or not readable."""
    if not folder.exists():
        raise UserError(f"There is no folder {folder}.")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder.", advice="Name the folder of a repository.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UserError(f"{folder} cannot be read: permission denied.")
    return folder.resolve()


def _purge(root: Path) -> None:
    try:
        num_deleted = forget(root)
    except OSError as error:
        raise MachineError(f"The index cannot be deleted: {error}.") from error
    write(f"{'The index is' if num_deleted else 'There was no index, so nothing is'} deleted.\n")


def _update(root: Path) -> list[str]:
    """Update the index, and write to stderr what changed; returns the indexed paths."""
    settings, options = indexed(root)
    settings = with_target(settings)
    with progress_bar() as report:
        tokenizer = load_tokenizer(ModelStore().ensure(settings.target, report))
        summary, updated = build_index(root, tokenizer, options, report)
    skipped = ", ".join(f"{count} {reason}" for reason, count in summary.skipped.most_common())
    counts = f"{summary.num_documents} files, {summary.num_tokens} tokens; {summary.num_encoded} read again."
    lines = (counts, f"Left out: {skipped}." if skipped else "", summary.message)
    sys.stderr.write("".join(f"{line}\n" for line in lines if line))
    return updated.paths


def build_index(
    root: Path, tokenizer: Tokenizer, options: RepositoryOptions, report: Progress
) -> tuple[IndexSummary, NgramIndex]:
    """Update the index of `root` from the disk and save it."""
    hooks = IndexHooks(lambda done, total, _path: report(f"Indexing {root.name}", done, total))
    indexer = Indexer(root, tokenizer.encode_many, tokenizer.fingerprint, options, hooks)
    return indexer.build(), indexer.index
