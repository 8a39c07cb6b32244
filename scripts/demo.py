"""A demonstration: a real server completes while a new module is typed into a small repository.

    python -m scripts.demo

Owns what the demonstration looks like. Must not do anything that an editor could not do.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from completion_engine.errors import UserError
from completion_engine.loading.warmup import compiled_meanwhile
from completion_engine.models import ModelStore
from lsp_server.cli import run
from lsp_server.commands.local_engine import read_source, reported, with_target
from lsp_server.commands.player import Answer
from lsp_server.commands.replay import LOCAL, ReplayOptions, replay_repository
from lsp_server.commands.replay_report import facts, num_written, summary
from lsp_server.commands.terminal import console, new_app, progress_bar
from lsp_server.engine.pool import engine_config
from lsp_server.scripted_typing.typing_plan import plan_typing
from lsp_server.scripted_typing.typist import Typist

COLOURS = {"target": "cyan", "ngram": "green", "neural": "magenta"}
NAMES = {
    "target": "written by the target",
    "ngram": "drafted from the repository and this file",
    "neural": "drafted by a small network",
}

app = new_app()

Repository = Annotated[Path, typer.Option(help="The repository to work in.")]
Source = Annotated[Path, typer.Option(help="The text to type.")]
Name = Annotated[str, typer.Option(help="The new file's name.")]


@app.command()
def demo(
    repository: Repository = Path("docs/sample_repository"),
    source: Source = Path("docs/demo/reservations.py"),
    name: Name = "lending/reservations.py",
) -> None:
    """Fetch the model, index a repository, and type a new module into it."""
    root = repository.resolve()
    if not root.is_dir():
        advice = "Run it in a checkout of Slipstream, or name --repository and --source."
        raise UserError(f"There is no folder {repository} here.", advice=advice)
    text = read_source(source)  # fails before a model is downloaded
    settings = with_target(reported(root).settings)
    with progress_bar() as report, compiled_meanwhile(engine_config(settings), report):
        ModelStore().ensure(settings.target, report)
    asyncio.run(_show_typing(root, root / name, text, settings.target))


async def _show_typing(root: Path, path: Path, text: str, target: str) -> None:
    plan = plan_typing(text, start=0, end=len(text), seed=1)
    with ExitStack() as bars:
        report = bars.enter_context(progress_bar())

        def on_ready(stats: dict[str, Any]) -> None:
            bars.close()
            _begin(path.relative_to(root), stats["engine"])

        settings = {**LOCAL, "target": target}
        options, plans = ReplayOptions(settings=settings, typists=["eager"]), {path: plan}
        players = await replay_repository(root, plans, options, report, watch=_watch, on_ready=on_ready)
    result = summary(players[0].answers, num_chars=plan.num_chars)
    warm, said = result["latency_ms"]["warm"], facts(result)
    _print(
        f"\n{said['characters not typed']} characters were not typed. "
        f"Key to answer: median {warm['p50']:.0f} ms, 95 % within {warm['p95']:.0f} ms.\n"
        f"{said['tokens per verification']} tokens per verification; accepted: {said['accepted drafts']}."
    )


def _begin(path: Path, engine: dict[str, Any]) -> None:
    _print(f"\nTyping {path} with {engine['target']} on {engine['device']}.")
    _print("Milliseconds from key to answer, tokens in verification passes, the line with its suggestion:")
    width = max(map(len, NAMES))
    for source, meaning in NAMES.items():
        _print(Text.assemble((f"  {source:{width}}", COLOURS[source]), f"  {meaning}"))
    _print("")


async def _watch(answer: Answer, typist: Typist) -> None:
    """Print a suggestion that took a pass of the target."""
    if answer.outcome == "shown" and answer.stats.get("num_forwards"):
        _print(suggestion_line(typist.buffer.left.rpartition("\n")[2], answer))


def suggestion_line(left: str, answer: Answer) -> Text:
    """Time and passes, the line up to the cursor, the suggestion in its sources' colours, and the sources."""
    stats, pieces = answer.stats, answer.why["pieces"]
    took = f"{answer.ms:6.0f} ms {num_written(stats):3} in {stats['num_forwards']}  "
    line = Text.assemble((took, "dim"), f"{left}▏")
    evidence: dict[str, list[str]] = {}
    for piece in pieces:
        colour = COLOURS.get(piece["source"], "default")
        line.append(piece["text"].replace("\n", "⏎"), style=f"{colour} bold")
        evidence.setdefault(piece["source"], []).append(piece["evidence"])
    files = {source: ", ".join(filter(None, dict.fromkeys(said))) for source, said in evidence.items()}
    named = (f"{source} ({said})" if said else source for source, said in files.items())
    return line.append(f"   {', '.join(named)}", style="dim")


def _print(line: Text | str) -> None:
    console().print(line, soft_wrap=True, markup=False)


if __name__ == "__main__":
    run(app, sys.argv[1:])
