"""`slipstream index`, and a repository's saved index for the other commands: built, read and forgotten.

Libraries are imported after the first line of progress.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from completion_engine.errors import MachineError, UserError
from lsp_server.commands.terminal import new_app, progress_bar, write

if TYPE_CHECKING:
    from completion_engine.prompting.tokenizer import Tokenizer
    from completion_engine.request import Progress
    from ngram_cache import NgramIndex
    from ngram_cache.planning import IndexSummary
    from ngram_cache.repository import RepositoryOptions

app = new_app()


@app.command()
def index(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The repository.", show_default=False)
    ] = Path(),
    *,
    files: Annotated[bool, typer.Option("--files", help="Print the indexed paths; changes nothing.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the repository's index.")] = False,
) -> None:
    """Build or update the index of the repository in DIR, or list or delete it."""
    if files and purge:
        raise typer.BadParameter("Use either --files or --purge.")
    if purge:
        _purge(directory.resolve())  # a folder that is gone may still have an index
        return
    root = checked_folder(directory)
    if files:
        _list(root)
    else:
        _update(root)


def checked_folder(folder: Path) -> Path:
    """The folder, resolved. Raises UserError when it is missing, not a folder, or not readable."""
    if not folder.exists():
        raise UserError(f"There is no folder {folder}.")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder.", advice="Name the folder of a repository.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UserError(f"{folder} cannot be read: permission denied.")
    return folder.resolve()


def _list(root: Path) -> None:
    """Print the paths in the saved index. Raises SlipstreamError without a readable one."""
    from ngram_cache.snapshot import SnapshotError, index_directory, saved_paths  # noqa: PLC0415 - loads numpy

    try:
        paths = saved_paths(index_directory(), root)
    except (SnapshotError, OSError) as error:
        advice = f"Build it again: slipstream index {root}"
        raise MachineError(f"The index of {root} cannot be read: {error}.", advice=advice) from error
    if paths is None:
        advice = f"An editor builds it. Or run: slipstream index {root}"
        raise UserError(f"{root} has no index.", advice=advice)
    write("".join(f"{path}\n" for path in paths))


def _purge(root: Path) -> None:
    from ngram_cache.saved_index import forget  # noqa: PLC0415 - loads numpy

    try:
        num_deleted = forget(root)
    except OSError as error:
        raise MachineError(f"The index cannot be deleted: {error}.") from error
    write(f"{'The index is' if num_deleted else 'There was no index, so nothing is'} deleted.\n")


def _update(root: Path) -> None:
    """Update the index, and write to stderr what changed."""
    with progress_bar() as report:
        report("Loading libraries", 0, 0)
        from completion_engine.models import ModelStore  # noqa: PLC0415 - after the first line
        from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - as above
        from lsp_server.commands.local_engine import indexed, with_target  # noqa: PLC0415 - as above

        own, options = indexed(root)
        settings = with_target(own)
        tokenizer = load_tokenizer(ModelStore().ensure(settings.target, report))
        summary, _ = build_index(root, tokenizer, options, report)
    skipped = ", ".join(f"{count} {reason}" for reason, count in summary.skipped.most_common())
    counts = f"{summary.num_documents} files, {summary.num_tokens} tokens; {summary.num_encoded} read again."
    lines = (counts, f"Left out: {skipped}." if skipped else "", summary.message)
    sys.stderr.write("".join(f"{line}\n" for line in lines if line))


def build_index(
    root: Path, tokenizer: Tokenizer, options: RepositoryOptions, report: Progress
) -> tuple[IndexSummary, NgramIndex]:
    """Update the index of `root` from the disk and save it."""
    from ngram_cache.indexing import Indexer  # noqa: PLC0415 - loads numpy
    from ngram_cache.planning import IndexHooks  # noqa: PLC0415 - as above

    hooks = IndexHooks(lambda done, total, _path: report(f"Indexing {root.name}", done, total))
    indexer = Indexer(root, tokenizer.encode_many, tokenizer.fingerprint, options, hooks)
    return indexer.build(), indexer.index
