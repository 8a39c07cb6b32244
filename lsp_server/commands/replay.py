"""Types files through a real server, and reports what a person would experience."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from completion_engine.config import AUTO
from completion_engine.errors import UserError
from completion_engine.request import Progress
from lsp_server.commands.local_engine import named_target, read_source, reported, repository_of
from lsp_server.commands.player import (
    Answer,
    Player,
    Watch,
    running_server,
    wait_until_ready,
)
from lsp_server.commands.temporary_folder import temporary_folder
from lsp_server.commands.terminal import show_rows
from lsp_server.scripted_typing.screen import ScreenLog, sum_of
from lsp_server.scripted_typing.typing_plan import TypingPlan, plan_stretch
from lsp_server.scripted_typing.typist import TYPISTS, Typist, TypistName
from lsp_server.workspace.measurements import percentiles
from lsp_server.workspace.settings_reading import merge

# No server of the user's settings gets the text that is typed.
LOCAL = {"remote.url": ""}

OnReady = Callable[[dict[str, Any]], None]

START_SHARE = 0.3  # share of a file above the typed text, as in most of a day's work

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
    with temporary_folder() as index_dir:
        settings, env = {**options.settings, "index": index}, {"SLIPSTREAM_INDEX_DIR": str(index_dir)}
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


AnswerClass = Literal["typed through", "accepted draft", "decode", "no verification"]
KINDS: tuple[AnswerClass, ...] = ("typed through", "accepted draft", "decode", "no verification")
_COUNTS = (
    "num_tokens", "num_forwards", "num_drafted", "num_accepted", "num_prompt_tokens", "num_cached_tokens",
)  # fmt: skip


_TYPIST_ROWS = (
    ("seconds_saved", "seconds saved, reading included", "{:.0f}"),
    ("keys_saved", "keys saved, those that accept included", "{}"),
    ("share_not_typed", "characters not typed", "{:.1%}"),
    ("chars_per_accepted", "characters for each accepted suggestion", "{:.1f}"),
    ("share_units", "shown texts that end a unit", "{:.0%}"),
    ("replaced_per_100", "texts replaced by the next key, for 100 characters", "{:.1f}"),
    ("broken_per_100", "the same, where the key was their next character", "{:.1f}"),
    ("wrong_per_100", "wrong characters shown, for 100 typed", "{:.0f}"),
    ("wrong_per_100_by_time", "wrong characters of 100 on the screen, by time", "{:.0f}"),
)


def kind_of(answer: Answer) -> AnswerClass:
    """What the target had to do: nothing, verify a draft that was right, or write alone.

    `no verification` is an empty answer without a pass: no suggestion was wanted here, or the deadline came
    first.
    """
    if not answer.stats.get("num_forwards"):
        return "typed through" if answer.outcome == "shown" else "no verification"
    return "accepted draft" if answer.stats["num_accepted"] else "decode"


def num_written(stats: Mapping[str, Any]) -> int:
    """Number of tokens that an answer's passes wrote: accepted drafts, and one of the target for each.

    `num_tokens` also counts those of an earlier answer or of background work.
    """
    return int(stats["num_accepted"] + stats["num_forwards"])


def summary(answers: Sequence[Answer], *, num_chars: int) -> dict[str, Any]:
    """The report of replays that brought `num_chars` characters into files. Times in ms."""
    in_time = [answer for answer in answers if answer.outcome in {"shown", "empty"}]
    empty = [answer for answer in in_time if answer.outcome == "empty"]
    num_taken = sum(answer.num_taken_chars for answer in answers)
    outcomes = Counter(answer.outcome for answer in answers)
    return {
        "num_requests": len(answers),
        **{f"num_{name}": outcomes[name] for name in ("shown", "empty", "cancelled", "failed")},
        "num_accepted": sum(answer.how == "full" for answer in answers),
        "num_partially_accepted": sum(answer.how == "word" for answer in answers),
        "num_chars": num_chars,
        "num_chars_not_typed": num_taken,
        "share_not_typed": ratio(num_taken, num_chars),
        "latency_ms": _latencies(in_time),
        "cancel_ms": percentiles(answer.ms for answer in answers if answer.outcome == "cancelled"),
        "tokens": _tokens(in_time),
        "answered_on": dict(Counter(answer.stats["device"] for answer in in_time if answer.stats)),
        "rules": dict(Counter(answer.why.get("rule") or "none" for answer in empty).most_common()),
    }


def ratio(part: float, whole: float) -> float:
    """`part / whole` in four digits; 0 for a `whole` of 0."""
    return round(part / whole, 4) if whole else 0.0


def _latencies(answers: Sequence[Answer]) -> dict[str, Any]:
    warm = [answer for answer in answers if not answer.is_first]
    groups: dict[str, Iterable[Answer]] = {
        "warm": warm,
        "shown": (answer for answer in warm if answer.outcome == "shown"),
        **{kind: [answer for answer in warm if kind_of(answer) == kind] for kind in KINDS},
        "first": (answer for answer in answers if answer.is_first),
    }
    return {name: percentiles(answer.ms for answer in group) for name, group in groups.items()}


def _tokens(answers: Sequence[Answer]) -> dict[str, Any]:
    all_stats = [answer.stats for answer in answers if answer.stats]
    total = {name: sum(stats[name] for stats in all_stats) for name in _COUNTS}
    by_source: Counter[str] = Counter()
    for stats in all_stats:
        by_source.update(stats["accepted_by_source"])
    return {
        **total,
        "num_written": num_written(total),
        "tokens_per_verification": ratio(num_written(total), total["num_forwards"]),
        "share_cached": ratio(total["num_cached_tokens"], total["num_prompt_tokens"]),
        "accepted_by_source": dict(by_source),
    }


def show(result: Mapping[str, Any]) -> None:
    """Print the tables for people on stdout."""
    columns = ("count", "p50", "p90", "p95", "p99", "max")
    latencies = {**result["latency_ms"], "cancelled, until answered": result["cancel_ms"]}
    rows = [
        (name, str(row["count"]), *(f"{row[column]:.1f}" for column in columns[1:]))
        for name, row in latencies.items()
        if row["count"]
    ]
    show_rows("Milliseconds from key to answer", ("", *columns), rows)
    show_rows(f"{result['target']} on {result['device']}", ("", "value"), list(facts(result).items()))
    show_typists(result["typists"])


def show_typists(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print what each scripted typist saw and saved."""
    rows = [
        (title, *(form.format(figures[name]) for figures in found.values()))
        for name, title, form in _TYPIST_ROWS
    ]
    show_rows("What two typists see", ("", *found), rows)


def facts(result: Mapping[str, Any]) -> dict[str, str]:
    """The counts of the report, in words."""
    tokens = result["tokens"]
    sources = ", ".join(f"{name} {count}" for name, count in tokens["accepted_by_source"].items() if count)
    return {
        "characters not typed": f"{result['share_not_typed']:.1%} of {result['num_chars']}",
        "requests": str(result["num_requests"]),
        "shown, empty": f"{result['num_shown']}, {result['num_empty']}",
        "accepted, by words": f"{result['num_accepted']}, {result['num_partially_accepted']}",
        "cancelled, failed": f"{result['num_cancelled']}, {result['num_failed']}",
        "tokens per verification": f"{tokens['tokens_per_verification']:.2f}",
        "prompt tokens from the cache": f"{tokens['share_cached']:.1%}",
        "accepted drafts": sources or "none",
        "empty because": ", ".join(f"{rule} {count}" for rule, count in result["rules"].items()) or "-",
    }
