"""`slipstream learned`: what was learned here of how sure each model's texts are, and forgetting it."""

from __future__ import annotations

from typing import Annotated

import typer

from lsp_server.tools.commands.terminal import write


def learned(
    *, purge: Annotated[bool, typer.Option("--purge", help="Forget all that was learned.")] = False
) -> None:
    """Show what the setting learnFromUse has learned here."""
    from completion_engine.calibration import SHIPPED  # noqa: PLC0415 - not needed for help
    from completion_engine.calibration import learned as calibration_of  # noqa: PLC0415 - as above
    from lsp_server.workspace.learned import forget_learned, learned_path, read_learned  # noqa: PLC0415 - as above

    path = learned_path()
    if purge:
        write("What was learned is deleted.\n" if forget_learned(path) else "Nothing was learned here.\n")
        return
    known = read_learned(path)
    if not known:
        write("Nothing was learned here.\n")
    for target, evidence in known.items():
        found = calibration_of(evidence)
        write(
            f"{target}: {evidence.num_tokens:.0f} tokens; what the model gives 0.5 is right with"
            f" {found.of(0.5):.2f} (as shipped {SHIPPED.of(0.5):.2f}), what it gives 0.9 with"
            f" {found.of(0.9):.2f} ({SHIPPED.of(0.9):.2f}).\n"
        )
