"""The `slipstream` program: its commands, and how errors leave it.

Owns the command table and the exit codes: 0, 1 for what cannot be done, 2 for usage. A module of
a command is imported when it runs, so that the program starts quickly.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from completion_engine.errors import MachineError, SlipstreamError
from lsp_server.commands.terminal import show_error, write
from lsp_server.sharing.system import check_home, protect_files

app = typer.Typer(
    name="slipstream",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# A command parses its own arguments, so that its libraries load only when it runs.
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
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Communicate over stdin and stdout (the default).")
    ] = True,
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


def _add(name: str, module: str, about: str, *, hidden: bool = False) -> None:
    """Add a command that is imported when it runs: its `app` parses its own arguments."""

    @app.command(name, help=about, hidden=hidden, context_settings=PASS_ON, add_help_option=False)
    def run(context: typer.Context) -> None:
        check_home(os.environ)
        protect_files()
        command = import_module(f"lsp_server.{module}").app
        if code := command(args=context.args, prog_name=f"slipstream {name}", standalone_mode=False):
            raise typer.Exit(code)


_add("complete", "commands.complete", "Complete FILE at a cursor and print the text to insert there.")
_add(
    "replay",
    "history.command",
    "Type files, or your own commits, through a server as a person would; report latency and typing saved.",
)
_add("bench", "commands.bench", "Measure exactness and speed on your own code.")
_add("index", "commands.repository_index", "Build or update the index of the repository in DIR.")
_add("models", "commands.models", "List, fetch, check and remove models.")
_add("distill", "commands.distill", "Train a small drafter for a target.")
_add("doctor", "commands.doctor", "Report what is missing or slow on this machine, and what to do about it.")
_add(
    "uninstall",
    "commands.uninstall",
    "Remove models, kernels, indexes, logs and settings; end the shared process.",
)
_add(
    "demo",
    "commands.demo",
    "Fetch the model, index a repository, and type a new module into it.",
    hidden=True,
)


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
