"""`slipstream index`: builds, lists and forgets a repository's index."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lsp_server.commands.local_engine import told_settings, with_target
from lsp_server.commands.terminal import progress_bar, write


def index(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The repository.", show_default=False)
    ] = Path(),
    *,
    files: Annotated[bool, typer.Option("--files", help="Print the indexed paths, one a line.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Forget the repository's index.")] = False,
) -> None:
    """Build or update the index of the repository in DIR."""
    from lsp_server.commands.repository import checked_folder, purge_index  # noqa: PLC0415 - loads numpy

    if files and purge:
        raise typer.BadParameter("--files and --purge exclude each other.")
    if purge:
        # A folder that is gone may still have an index to forget.
        num_deleted = purge_index(directory.resolve())
        write(f"{'The index is' if num_deleted else 'There was no index, so nothing is'} deleted.\n")
        return
    lines = update(checked_folder(directory))
    write("".join(f"{line}\n" for line in (lines if files else ())))


def update(root: Path) -> list[str]:
    """Bring the index in line with the disk, say on stderr what was done; returns the indexed paths."""
    from completion_engine.models import ModelStore  # noqa: PLC0415 - not needed for help
    from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - loads the tokenizer library
    from lsp_server.commands.repository import build_index  # noqa: PLC0415 - loads numpy

    settings = with_target(told_settings(root))
    with progress_bar() as report:
        tokenizer = load_tokenizer(ModelStore().ensure(settings.target, report))
        what = f"Indexing {root.name}"
        summary, paths = build_index(
            root, tokenizer, settings.index, lambda done, total, _path: report(what, done, total)
        )
    skipped = ", ".join(f"{count} {reason}" for reason, count in summary.skipped.most_common())
    said = [
        f"{summary.num_documents} files, {summary.num_tokens} tokens; {summary.num_encoded} read anew.",
        f"Left out: {skipped}." if skipped else "",
        summary.message,
    ]
    sys.stderr.write("".join(f"{line}\n" for line in said if line))
    return paths
