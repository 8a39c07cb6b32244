"""Options that several measurements take, each with one name and one help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lsp_server.tools.commands.engine import named_target

Json = Annotated[bool, typer.Option("--json", help="Print the JSON line only.")]
Target = Annotated[str, typer.Option("--target", help="Model id, path or auto.", callback=named_target)]
Results = Annotated[
    Path | None, typer.Option("--results", help="JSON lines to go on with; what is there is not asked.")
]
Minutes = Annotated[float, typer.Option("--minutes", min=0, help="Begin nothing after so long.")]
