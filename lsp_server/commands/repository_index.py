"""`slipstream index`, and a repository's saved index for the other commands: built, read and forgotten."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from completion_engine.errors import MachineError, UserError
from lsp_server.commands.local_engine import reported_settings, with_target
from lsp_server.commands.terminal import progress_bar, write

if TYPE_CHECKING:
    from completion_engine.prompting.tokenizer import Tokenizer
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import IndexSettings
    from ngram_cache import NgramIndex
    from ngram_cache.planning import IndexSummary


def index(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The repository.", show_default=False)
    ] = Path(),
    *,
    files: Annotated[bool, typer.Option("--files", help="Print the indexed paths, one a line.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the repository's index.")] = False,
) -> None:
    """Build or update the index of the repository in DIR."""
    if files and purge:
        raise typer.BadParameter("--files and --purge exclude each other.")
    if purge:
        # A folder that is gone may still have an index to delete.
        num_deleted = _purge(directory.resolve())
        write(f"{'The index is' if num_deleted else 'There was no index, so nothing is'} deleted.\n")
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


def _purge(root: Path) -> int:
    from ngram_cache.saved_index import forget  # noqa: PLC0415 - loads numpy

    try:
        return forget(root)
    except OSError as error:
        raise MachineError(f"The index cannot be deleted: {error}.") from error


def _update(root: Path) -> list[str]:
    """Update the index, and write to stderr what changed; returns the indexed paths."""
    from completion_engine.models import ModelStore  # noqa: PLC0415 - not needed for help
    from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - loads the tokenizer library

    settings = with_target(reported_settings(root))
    with progress_bar() as report:
        tokenizer = load_tokenizer(ModelStore().ensure(settings.target, report))
        summary, updated = build_index(root, tokenizer, settings.index, report)
    skipped = ", ".join(f"{count} {reason}" for reason, count in summary.skipped.most_common())
    lines = [
        f"{summary.num_documents} files, {summary.num_tokens} tokens; {summary.num_encoded} read anew.",
        f"Left out: {skipped}." if skipped else "",
        summary.message,
    ]
    sys.stderr.write("".join(f"{line}\n" for line in lines if line))
    return updated.paths


def build_index(
    root: Path, tokenizer: Tokenizer, settings: IndexSettings, report: Progress
) -> tuple[IndexSummary, NgramIndex]:
    """Update the index of `root` from the disk and save it."""
    from ngram_cache.indexing import Indexer  # noqa: PLC0415 - loads numpy
    from ngram_cache.planning import IndexHooks  # noqa: PLC0415 - as above
    from ngram_cache.repository import RepositoryOptions  # noqa: PLC0415 - as above

    options = RepositoryOptions(max_files=settings.max_files, exclude=settings.exclude)
    hooks = IndexHooks(lambda done, total, _path: report(f"Indexing {root.name}", done, total))
    indexer = Indexer(root, tokenizer.encode_many, tokenizer.fingerprint, options, hooks)
    return indexer.build(), indexer.index


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """A saved index and its folder."""

    root: Path
    index: NgramIndex


def stored_index(file: Path, tokenizer: Tokenizer) -> StoredIndex | None:
    """The saved index of the nearest folder above `file` that has one; None if it cannot be used."""
    from ngram_cache import NgramIndex, snapshot  # noqa: PLC0415 - loads numpy

    for folder in file.resolve().parents:
        path = snapshot.snapshot_path(snapshot.index_directory(), folder, tokenizer.fingerprint)
        if not path.is_file():
            continue
        try:
            saved = snapshot.load(path, fingerprint=tokenizer.fingerprint, root=str(folder))
            index = NgramIndex()
            index.restore(saved.stored)
        except (snapshot.SnapshotError, ValueError, OSError):
            return None
        return StoredIndex(folder, index)
    return None


def num_saved_bytes(root: Path, fingerprint: str) -> int:
    """The size of a folder's saved index; 0 when there is none."""
    from ngram_cache import snapshot  # noqa: PLC0415 - loads numpy

    path = snapshot.snapshot_path(snapshot.index_directory(), root, fingerprint)
    return path.stat().st_size if path.is_file() else 0
