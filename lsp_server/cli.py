"""The `slipstream` program: its commands, and how errors leave it.

Owns the command table and the exit codes: 0, 1 for what cannot be done, 2 for usage. A module of
a command is imported when it runs, so that the program starts quickly.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from completion_engine.errors import MachineError, SlipstreamError
from lsp_server.commands.terminal import new_app, show_error, write
from lsp_server.sharing.system import check_home, protect_files

app = new_app(name="slipstream", no_args_is_help=True, add_completion=True)

# A command's module is imported when the command runs, or when the shell completes its options.
_MODULES: dict[str, str] = {}


class _Deferred(TyperCommand):
    """A command that is known by its name and summary until it is needed."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command, with which the program goes on."""
        check_home(os.environ)
        protect_files()
        module = import_module(f"lsp_server.{_MODULES[self.name or '']}")
        return typer.main.get_command(module.app).make_context(info_name, args, parent, **extra)


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
    http: Annotated[bool, typer.Option("--http", help="Answer plugins over HTTP instead.")] = False,
    token: Annotated[bool, typer.Option("--token", help="With --http: require the token.")] = False,
    places: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PORT] [FOLDER]...", help="With --http.", show_default=False),
    ] = None,
) -> None:
    """Run the language server."""
    del stdio
    if http:
        check_home(os.environ)
        protect_files()
        from lsp_server.http_api.command import serve_http  # noqa: PLC0415 - only here

        serve_http(places or (), needs_token=token)
        return
    if token or places:
        raise typer.BadParameter("PORT, FOLDER and --token need --http.")
    if sys.stdin.isatty():
        sys.stderr.write("The language server waits for an editor's messages on stdin. Ctrl+C ends it.\n")
    from lsp_server.__main__ import serve_alone  # noqa: PLC0415 - only here

    if shared:
        from lsp_server.sharing.relay import serve_shared  # noqa: PLC0415 - only here

        serve_shared(serve_alone)
    else:
        serve_alone()


def _add(name: str, module: str, about: str) -> None:
    """Add a command whose `app` in `module` parses its own arguments."""
    _MODULES[name] = module
    app.command(name, cls=_Deferred, help=about)(lambda: None)


_add("complete", "commands.complete", "Print the completion at FILE:LINE:COLUMN.")
_add("replay", "commands.replay", "Type files; report the typing saved.")
_add("bench", "commands.bench", "Check on your own code that drafts change no text.")
_add("index", "commands.repository_index", "Build, list or delete the index of a repository.")
_add("models", "commands.models", "List, fetch, check and remove models.")
_add("doctor", "commands.doctor", "Report what is missing or slow, and what to do.")
_add("uninstall", "commands.uninstall", "Remove everything that Slipstream stored.")


def main() -> None:
    """Run the program and leave with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--stdio"]:  # how clients of other completion servers start any program
        arguments = ["serve", "--shared"]
    run(app, arguments)


def run(program: typer.Typer, arguments: list[str]) -> None:
    """Run a program with these arguments; an error that a user can do something about ends it with code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console may not know every character
    try:
        program(arguments, prog_name="slipstream")
    except SlipstreamError as error:
        show_error(error)
        sys.exit(1)
    except OSError as error:
        show_error(MachineError(f"{error.filename or 'The system'}: {error.strerror or error}."))
        sys.exit(1)
