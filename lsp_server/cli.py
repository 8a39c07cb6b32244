"""The `slipstream` program: its commands, and how errors leave it.

Owns the command table and the exit codes: 0, 1 for what cannot be done, 2 for usage. The commands
themselves live in `commands/`; nothing heavy is imported before one of them runs.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from completion_engine.errors import MachineError, SlipstreamError
from lsp_server.commands import complete, demo, doctor, replay, repository_index, uninstall
from lsp_server.commands.terminal import show_error, write

app = typer.Typer(
    name="slipstream",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# The named program parses its own arguments, so that its libraries load only when it is wanted.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def _show_version(*, wanted: bool) -> None:
    if wanted:
        from lsp_server.commands.machine_checks import version_of  # noqa: PLC0415 - only here

        write(f"slipstream {version_of('slipstream-completion') or 'not installed'}\n")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Exact, fast code completion on your own machine."""
    del version


@app.command()
def serve(
    *,
    stdio: Annotated[bool, typer.Option("--stdio", help="Speak on stdin and stdout (the default).")] = True,
    shared: Annotated[
        bool, typer.Option("--shared", help="Share one engine with your other editor windows.")
    ] = False,
) -> None:
    """Run the language server."""
    del stdio
    from lsp_server.__main__ import serve_alone  # noqa: PLC0415 - only here

    if shared:
        from lsp_server.sharing.relay import serve_shared  # noqa: PLC0415 - only here

        serve_shared(serve_alone)
    else:
        serve_alone()


app.command()(complete.complete)
app.command()(replay.replay)


@app.command(context_settings=PASS_ON, add_help_option=False)
def bench(context: typer.Context) -> None:
    """Measure exactness and speed on your own code."""
    from lsp_server.commands.bench import app as bench_app  # noqa: PLC0415 - loads torch

    bench_app(args=context.args, prog_name="slipstream bench")


app.command()(repository_index.index)


@app.command(context_settings=PASS_ON, add_help_option=False)
def models(context: typer.Context) -> None:
    """List, fetch, check and remove models."""
    from lsp_server.commands.models import app as models_app  # noqa: PLC0415 - as above

    models_app(args=context.args, prog_name="slipstream models")


@app.command(context_settings=PASS_ON, add_help_option=False)
def distill(context: typer.Context) -> None:
    """Train a small drafter for a target."""
    from lsp_server.commands.distill import app as distill_app  # noqa: PLC0415 - loads torch

    distill_app(args=context.args, prog_name="slipstream distill")


app.command()(doctor.doctor)
app.command()(uninstall.uninstall)
app.command(hidden=True)(demo.demo)


def main() -> None:
    """Run the program and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console may not know every character
    try:
        app(prog_name="slipstream")
    except SlipstreamError as error:
        show_error(error)
        sys.exit(1)
    except OSError as error:
        show_error(MachineError(f"{error.filename or 'The system'}: {error.strerror or error}."))
        sys.exit(1)
