"""`slipstream replay`: types files through a real server, and reports what a person would experience."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from completion_engine.config import AUTO
from completion_engine.errors import UserError
from completion_engine.request import Progress
from lsp_server.commands.local_engine import named_target, read_source, reported, repository_of
from lsp_server.commands.player import Answer, Player, Watch, running_server, wait_until_ready
from lsp_server.commands.replay_report import show, summary
from lsp_server.commands.terminal import interruptible, new_app, progress_bar, write_json
from lsp_server.scripted_typing.screen import ScreenLog, sum_of
from lsp_server.scripted_typing.typing_plan import TypingPlan, plan_stretch
from lsp_server.scripted_typing.typist import TYPISTS, Typist, TypistName
from lsp_server.workspace.settings_reading import merge

app = new_app()

# No server of the user's settings gets the text that is typed.
LOCAL = {"remote.url": ""}

OnReady = Callable[[dict[str, Any]], None]

START_SHARE = 0.3  # share of a file above the typed text, as in most of a day's work

Keystrokes = Annotated[
    int, typer.Option("--limit-keystrokes", min=1, help="Approximate number of keys to type.")
]
StartLine = Annotated[
    int | None, typer.Option("--start-line", min=0, help="First line to type, counted from 0.")
]
Pace = Annotated[
    float, typer.Option("--pace", min=0, help="Milliseconds between keys. 0 waits for each answer.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the typing errors.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Override a setting; repeatable.")
]
Target = Annotated[str, typer.Option("--target", help="Model to use instead of the configured one.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What is typed, and how.

    About `num_keystrokes` in all files together, from line `start_line` on, counted from 0, or from
    `START_SHARE` of each file. `pace_ms` 0 waits for each answer. `settings` override the user's own. Each
    of the `typists` types all of it; answers are counted and watched for the first one.
    """

    num_keystrokes: int = 400
    start_line: int | None = None
    pace_ms: float = 0.0
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_index: bool = True
    typists: Sequence[TypistName] = ("eager", "reader")


@app.command()
def replay(  # noqa: PLR0913 - one argument for each option
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Source files.")],
    *,
    limit_keystrokes: Keystrokes = 400,
    start_line: StartLine = None,
    pace: Pace = 0.0,
    seed: Seed = 0,
    target: Target = "",
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Type files through a server as a person would. Reports latency and typing saved."""
    given = settings_given(settings or [], target)
    options = ReplayOptions(limit_keystrokes, start_line, pace, seed, given)
    with progress_bar(quiet=as_json) as report, interruptible():
        result = asyncio.run(replay_files(files, options, report))
    if as_json:
        write_json(result)
    else:
        show(result)


def settings_given(pairs: Sequence[str], target: str) -> dict[str, Any]:
    """The settings in `NAME=VALUE` pairs, in JSON or plain text, and the model's name. Raises UserError.

    Servers get text only if a pair names their URL, whatever the user's own settings say.
    """
    values = {name: _value(text) for name, _, text in (pair.partition("=") for pair in pairs)}
    values = {**LOCAL, **values}
    own = reported(Path.cwd()).settings
    checked = merge(own, values | ({"target": target} if target else {}), "--set")
    if checked.problems:
        raise UserError(" ".join(checked.problems), advice="docs/settings.md lists the settings.")
    return {**values, "target": checked.settings.target}


def with_named_target(settings: Mapping[str, Any], report: Progress) -> dict[str, Any]:
    """The settings with a model in place of `auto`. May load torch, so arguments are checked before."""
    report("Loading libraries", 0, 0)
    return {**settings, "target": named_target(settings.get("target", AUTO))}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def replay_files(
    files: Sequence[Path],
    options: ReplayOptions,
    report: Progress,
    *,
    watch: Watch | None = None,
    on_ready: OnReady = lambda _stats: None,
) -> dict[str, Any]:
    """Type the files through one server for each repository, and return the report.

    The typed files are left out of the index, which is built for this run alone, so that no answer can be
    read from text that the person has not typed yet. `on_ready` receives a server's stats once it can answer.
    Raises SlipstreamError.
    """

    async def see(answer: Answer, typist: Typist) -> None:
        report("Typing", typist.offset - typist.plan.start, typist.plan.num_chars)
        if watch is not None:
            await watch(answer, typist)

    plans = {path.resolve(): planned(path, options, len(files)) for path in files}
    options = replace(options, settings=with_named_target(options.settings, report))
    answers: list[Answer] = []
    screens: dict[str, list[ScreenLog]] = {name: [] for name in TYPISTS}
    roots = Counter(map(repository_of, plans))
    for root in roots:
        mine = {path: plan for path, plan in plans.items() if repository_of(path) == root}
        for player in await replay_repository(root, mine, options, report, watch=see, on_ready=on_ready):
            screens[player.typist].append(player.person.screen)
            answers += player.answers if player.typist == options.typists[0] else ()
    num_chars = sum(plan.num_chars for plan in plans.values())
    result = summary(answers, num_chars=num_chars)
    result["typists"] = {name: sum_of(logs).figures(num_chars) for name, logs in screens.items() if logs}
    first = next((answer.stats for answer in answers if answer.stats), {})
    about = {"target": first.get("target", ""), "device": first.get("device", "")}
    return {**about, "files": {str(root): count for root, count in roots.items()}, **result}


def planned(path: Path, options: ReplayOptions, num_files: int) -> TypingPlan:
    """The whole lines of a file that are typed, and how. Raises UserError when there are none."""
    text = read_source(path).replace("\r\n", "\n").replace("\r", "\n")
    line = int(text.count("\n") * START_SHARE) if options.start_line is None else options.start_line
    if plan := plan_stretch(text, line, options.num_keystrokes // num_files, options.seed):
        return plan
    advice = "Choose another --start-line, or a longer file."
    raise UserError(f"There is nothing to type in {path} from line {line} on.", advice=advice)


async def replay_repository(  # noqa: PLR0913 - see `replay_files`
    root: Path,
    plans: Mapping[Path, TypingPlan],
    options: ReplayOptions,
    report: Progress,
    *,
    watch: Watch,
    on_ready: OnReady,
) -> list[Player]:
    """Type files of one repository through a server of their own; see `replay_files`."""
    typed = [f"/{path.relative_to(root)}" for path in plans]
    index = {"exclude": typed} if options.has_index else {"enabled": False}
    players: list[Player] = []
    with TemporaryDirectory(prefix="slipstream-replay-", ignore_cleanup_errors=True) as index_dir:
        settings, env = {**options.settings, "index": index}, {"SLIPSTREAM_INDEX_DIR": index_dir}
        async with running_server(root, settings=settings, env=env) as client:
            on_ready(await wait_until_ready(client, report))
            for name in options.typists:
                seen = watch if name == options.typists[0] else None
                for path, plan in plans.items():
                    players.append(
                        Player(client, path, plan, pace_ms=options.pace_ms, watch=seen, typist=name)
                    )
                    await players[-1].play()
    return players
