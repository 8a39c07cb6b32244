"""`python -m tests.benchmarks.remote`: a team's servers beside the target on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import DEFAULT_TARGET
from completion_engine.remote.endpoint import RemoteConfig
from lsp_server.commands.local_engine import named_target
from lsp_server.commands.replay import ReplayOptions
from lsp_server.commands.terminal import interruptible, progress_bar, show_rows, write_json
from tests.benchmarks.command_line import Json, run
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.remote import distance
from tests.benchmarks.remote.measure import Asked, measure
from tests.benchmarks.samples import from_folder, from_tasks

_NUMS_STREAMS = (1, 2, 4, 8, 16)
_ARITHMETIC = "Not measured: arithmetic for GPU servers, from key to whole suggestion, ms"
_PACE_COLUMNS = (
    "streams",
    "tokens a second",
    "of each replica",
    "tokens",
    "the last first token, s",
    "broke off and went on",
    "lost",
)


def remote(
    *,
    url: Annotated[str, typer.Option("--url", help="The setting remote.url.")],
    token_file: Annotated[str, typer.Option("--token-file", help="The setting remote.tokenFile.")] = "",
    ca_file: Annotated[str, typer.Option("--ca-file", help="The setting remote.caFile.")] = "",
    model: Annotated[str, typer.Option("--model", help="The setting remote.model.")] = "",
    target: Annotated[
        str, typer.Option("--target", help="What runs on this machine.", callback=named_target)
    ] = DEFAULT_TARGET,
    prompts: Annotated[int, typer.Option("--prompts", min=0, help="Places that both answer.")] = 16,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Tokens of each such answer.")] = 24,
    num_streams: Annotated[
        list[int] | None,
        typer.Option("--streams", min=0, help="Streams beside each other; may be repeated, 0 is none."),
    ] = None,
    tasks: Annotated[Path | None, typer.Option("--tasks", help="Infilling tasks (.jsonl.gz).")] = None,
    typed: Annotated[list[Path] | None, typer.Option("--file", help="A file to type.")] = None,
    keystrokes: Annotated[int, typer.Option("--keystrokes", min=1, help="Keys to type each way.")] = 160,
    round_trip: Annotated[
        list[float] | None,
        typer.Option("--round-trip", min=0, help="Simulated round trip (ms); may be repeated."),
    ] = None,
    patience: Annotated[float, typer.Option("--patience", help="The setting patienceMs.")] = 1500.0,
    metrics: Annotated[
        list[str] | None, typer.Option("--metrics", help="Address of a replica's metrics.")
    ] = None,
    json: Json = False,
) -> None:
    """The same texts? How many tokens a second? How long from key to suggestion, from how far away?

    Exit code 1 if a part is missing; the results and the reason are printed.
    """
    samples = from_tasks(tasks) if tasks else from_folder(released_sources(), max(16, prompts))
    asked = Asked(
        RemoteConfig(url, token_file, ca_file, model),
        target,
        samples[:: max(1, len(samples) // prompts)][:prompts] if prompts else (),
        tokens,
        samples,
        [num for num in num_streams if num] if num_streams else _NUMS_STREAMS if prompts else (),
        typed or (),
        round_trip or (0.0,),
        ReplayOptions(keystrokes, settings={"target": target, "patienceMs": patience}, has_index=False),
        metrics or (),
    )
    found: dict[str, Any] = {"bench": "remote", "target": target}
    try:
        with interruptible(), progress_bar(quiet=json) as report:
            measure(asked, found, report)
    finally:
        if not json:
            _show(found)
        write_json(found)
    if found["missing"]:
        raise typer.Exit(1)


def _show(found: Mapping[str, Any]) -> None:
    if "match" in found:
        rows = [(name, str(value)) for name, value in found["match"].items()]
        show_rows("The same places, here and there", ("", "value"), rows)
    if found.get("paces"):
        show_rows("Streams beside each other", _PACE_COLUMNS, [_pace_row(pace) for pace in found["paces"]])
    if "typed" in found:
        show_rows("The same files typed, ms", distance.COLUMNS, found["rows"])
    if found.get("arithmetic"):
        shown = [[str(value) for value in row.values()] for row in found["arithmetic"]]
        show_rows(_ARITHMETIC, tuple(found["arithmetic"][0]), shown)
    if found["missing"]:
        show_rows("Missing", ("", "why"), [*found["missing"].items()])


def _pace_row(pace: Mapping[str, Any]) -> list[str]:
    first = "" if pace["first_s"] is None else f"{pace['first_s']:.2f}"
    lost = [str(len(pace["lost"])), *dict.fromkeys(pace["lost"])] if pace["lost"] else ["0"]
    each = ", ".join(map(str, pace["tokens_per_s_of_each"]))
    told = (pace["num_streams"], pace["tokens_per_s"], each, pace["num_tokens"], first, pace["num_resumed"])
    return [*map(str, told), ": ".join(lost)]


if __name__ == "__main__":
    run(remote)
