"""`slipstream demo`: a real server completes while a new module is typed into a small repository.

Owns what the demonstration looks like. Must not do anything that an editor could not do.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from completion_engine.errors import UserError
from lsp_server.commands.local_engine import reported_settings, with_target
from lsp_server.commands.replay import ReplayOptions, replay_repository
from lsp_server.commands.source_file import read_source
from lsp_server.commands.terminal import console, progress_bar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from lsp_server.commands.player import Answer
    from lsp_server.commands.typist import Typist

COLOURS = {"target": "cyan", "ngram": "green", "neural": "magenta", "recycled": "yellow"}
NAMES = {
    "target": "written by the target",
    "ngram": "drafted from the repository and this file",
    "neural": "drafted by a small network",
    "recycled": "drafted from the target's own earlier runners-up",
}


def demo(
    repository: Annotated[Path, typer.Option(help="The repository to work in.")] = Path(
        "docs/sample_repository"
    ),
    source: Annotated[Path, typer.Option(help="The text to type.")] = Path("docs/demo/reservations.py"),
    name: Annotated[str, typer.Option(help="The new file's name.")] = "lending/reservations.py",
) -> None:
    """Fetch the model, index a repository, and type a new module into it."""
    from completion_engine.loading.warmup import compiled_meanwhile  # noqa: PLC0415 - not needed for help
    from completion_engine.models import ModelStore  # noqa: PLC0415 - as above
    from lsp_server.engine.pool import engine_config  # noqa: PLC0415 - as above

    root = repository.resolve()
    if not root.is_dir():
        advice = "Run it in a checkout of Slipstream, or name --repository and --source."
        raise UserError(f"There is no folder {repository} here.", advice=advice)
    text = read_source(source)  # before a model is fetched in vain
    settings = with_target(reported_settings(root))
    with progress_bar() as report, compiled_meanwhile(engine_config(settings), report):
        ModelStore().ensure(settings.target, report)
    asyncio.run(_show_typing(root, root / name, text, settings.target))


async def _show_typing(root: Path, path: Path, text: str, target: str) -> None:
    from lsp_server.commands.replay_report import summary  # noqa: PLC0415 - not needed for help
    from lsp_server.commands.typing_plan import plan_typing  # noqa: PLC0415 - as above

    screen = Screen(console(), path.relative_to(root))
    plan = plan_typing(text, start=0, end=len(text), seed=1)
    with ExitStack() as bars:
        report = bars.enter_context(progress_bar())

        def on_ready(stats: dict[str, Any]) -> None:
            bars.close()
            screen.begin(stats)

        options = ReplayOptions(settings={"target": target})
        answers = await replay_repository(
            root, {path: plan}, options, report, watch=screen.watch, on_ready=on_ready
        )
    screen.end(summary(answers, num_chars=plan.num_chars))


class Screen:
    """The lines that the demonstration prints: one for each new suggestion, and the totals at the end."""

    def __init__(self, shown: Console, path: Path) -> None:
        self._shown = shown
        self._path = path

    def begin(self, stats: dict[str, Any]) -> None:
        """Explain the lines that follow."""
        engine = stats["engine"]
        self._print(f"\nTyping {self._path} with {engine['target']} on {engine['device']}.")
        self._print(
            "Milliseconds from key to answer, new tokens in verifications, the line with its suggestion:"
        )
        width = max(map(len, NAMES))
        for source, meaning in NAMES.items():
            self._print(_text(f"  {source:{width}}", COLOURS[source]).append(f"  {meaning}", style="default"))
        self._print("")

    async def watch(self, answer: Answer, typist: Typist) -> None:
        """Print a suggestion that took a pass of the target."""
        if answer.outcome == "shown" and answer.stats.get("num_forwards"):
            self._print(suggestion_line(typist.buffer.left.rpartition("\n")[2], answer))

    def end(self, result: dict[str, Any]) -> None:
        """Print the totals."""
        warm, tokens = result["latency_ms"]["warm"], result["tokens"]
        by_source = tokens["accepted_by_source"].items()
        sources = ", ".join(f"{name} {count}" for name, count in by_source if count)
        self._print(
            f"\n{result['share_not_typed']:.0%} of {result['num_chars']} characters were not typed. "
            f"Key to answer: median {warm['p50']:.0f} ms, 95 % within {warm['p95']:.0f} ms.\n"
            f"{tokens['num_written']} tokens in {tokens['num_forwards']} verifications "
            f"({tokens['tokens_per_verification']:.2f} each); accepted drafts: {sources or 'none'}."
        )

    def _print(self, line: Text | str) -> None:
        self._shown.print(line, soft_wrap=True, markup=False)


def suggestion_line(left: str, answer: Answer) -> Text:
    """Time and passes, the line up to the cursor, the suggestion in its sources' colours, and the sources."""
    from lsp_server.commands.replay_report import num_written  # noqa: PLC0415 - not needed for help

    stats, pieces = answer.stats, answer.why["pieces"]
    line = _text(f"{answer.ms:6.0f} ms {num_written(stats):3} in {stats['num_forwards']}  ", "dim")
    line.append(f"{left}▏", style="default")
    for piece in pieces:
        colour = COLOURS.get(piece["source"], "default")
        line.append(piece["text"].replace("\n", "⏎"), style=f"{colour} bold")
    evidence: dict[str, list[str]] = {}
    for piece in pieces:
        evidence.setdefault(piece["source"], []).append(piece["evidence"])
    named = (
        f"{source} ({', '.join(filter(None, dict.fromkeys(said)))})" for source, said in evidence.items()
    )
    return line.append(f"   {', '.join(named).replace(' ()', '')}", style="dim")


def _text(content: str, style: str) -> Text:
    from rich.text import Text  # noqa: PLC0415 - not needed for help

    return Text("").append(content, style=style)
