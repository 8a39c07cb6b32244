"""`slipstream bench remote`: a team's servers beside the target on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from completion_engine.config import DEFAULT_TARGET, EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.windows import PREFIX_CHARS, SUFFIX_CHARS
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.config import RemoteConfig
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.servers import Servers
from completion_engine.remote.transport import Wait
from completion_engine.request import Progress
from lsp_server.tools.bench.prompts import Sample, from_folder, from_tasks
from lsp_server.tools.bench.released_sources import released_sources
from lsp_server.tools.bench.remote import arithmetic, distance, matching, streams
from lsp_server.tools.bench.remote.counters import Counts
from lsp_server.tools.commands.bench_options import Json
from lsp_server.tools.commands.engine import named_target
from lsp_server.tools.commands.terminal import progress_bar, show_rows, write_json
from lsp_server.tools.replay.run import Options

_STREAM_TOKENS = 64
_STREAM_PROMPT = 400  # tokens
_NUMS_STREAMS = (1, 2, 4, 8, 16)
_ARITHMETIC = "Not measured: arithmetic for GPU servers, from key to whole suggestion, ms"


def remote(  # noqa: PLR0913 - one argument per option
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
    tasks: Annotated[Path | None, typer.Option("--tasks", help="Infilling tasks (.jsonl.gz).")] = None,
    typed: Annotated[list[Path] | None, typer.Option("--file", help="A file to type.")] = None,
    keystrokes: Annotated[int, typer.Option("--keystrokes", min=1, help="Keys to type each way.")] = 160,
    round_trip: Annotated[
        list[float] | None, typer.Option("--round-trip", min=0, help="Simulate so many ms; may be repeated.")
    ] = None,
    patience: Annotated[float, typer.Option("--patience", help="The setting patienceMs.")] = 1500.0,
    metrics: Annotated[
        list[str] | None, typer.Option("--metrics", help="Where a replica tells its metrics.")
    ] = None,
    json: Json = False,
) -> None:
    """The same texts? How many tokens a second? How long from key to suggestion, from how far away?"""
    config = RemoteConfig(url, token_file, ca_file, model)
    samples = from_tasks(tasks) if tasks else from_folder(released_sources(), max(16, prompts))
    found: dict[str, Any] = {"bench": "remote", "target": target}
    with progress_bar(quiet=json) as report:
        if prompts:
            found |= _matched(
                config, target, samples[:: max(1, len(samples) // prompts)][:prompts], tokens, report
            )
        if typed:
            options = Options(keystrokes, target=target, patience_ms=patience, has_index=False)
            way = distance.typed_from_afar(
                typed, options, _settings(config), round_trip or [0.0], metrics or [], report
            )
            found |= _told(asyncio.run(way))
    if not json:
        _show(found)
    write_json(found)


def _matched(
    config: RemoteConfig, target: str, samples: Sequence[Sample], num_tokens: int, report: Progress
) -> dict[str, Any]:
    """Texts and paces. The windows of both sides are this machine's."""
    here = CompletionEngine.load(EngineConfig(target=target), report)
    kind = here.target.device.type
    windows = asdict(config) | {"prefix_chars": PREFIX_CHARS[kind], "suffix_chars": SUFFIX_CHARS[kind]}
    there = RemoteCompleter.load(RemoteConfig(**windows), here.tokenizer, report)
    found = matching.matches(
        here, there, samples, num_tokens, lambda done, total: report("Comparing texts", done, total)
    )
    there.close()
    encoded = [here.tokenizer.encode(sample.prefix)[-_STREAM_PROMPT:] for sample in samples]
    servers = Servers(Endpoint.of(config))
    try:
        name = config.model or next(iter(servers.models(Wait.seconds(10))))
        paces = streams.paces(
            servers,
            name,
            encoded,
            _NUMS_STREAMS,
            _STREAM_TOKENS,
            lambda num: report(f"{num} streams beside each other", 0, 0),
        )
    finally:
        servers.close()
    return {
        "match": matching.summary(found),
        "paces": [{**asdict(pace), "tokens_per_s": round(pace.tokens_per_s, 1)} for pace in paces],
    }


def _settings(config: RemoteConfig) -> dict[str, str]:
    """As a person sets them."""
    given = {
        "url": config.url,
        "tokenFile": config.token_file,
        "caFile": config.ca_file,
        "model": config.model,
    }
    return {name: value for name, value in given.items() if value}


def _told(typed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The replays, with what their counts let expect of other servers."""
    asked = [replayed["counts"] for replayed in typed.values() if "counts" in replayed]
    told = {
        name: {**replayed, **({"counts": asdict(replayed["counts"])} if "counts" in replayed else {})}
        for name, replayed in typed.items()
    }
    return {"typed": told, "rows": distance.rows(typed), "arithmetic": _arithmetic(sum(asked, Counts()))}


def _arithmetic(counts: Counts) -> list[dict[str, Any]]:
    """For requests of as many new prompt tokens and written ones as were counted."""
    if not counts.num_requests:
        return []
    num_new = counts.for_each_request(counts.num_prompt_tokens - counts.num_cached_tokens)
    num_passes = counts.for_each_request(counts.num_written_tokens - counts.num_accepted_tokens)
    return [
        {
            "gpu": gpu.name,
            "model": model.name,
            **{
                f"at {ms} ms": round(arithmetic.suggestion_ms(gpu, model, num_new, num_passes, ms), 1)
                for ms in (0, 5, 20, 40)
            },
        }
        for gpu in arithmetic.GPUS
        for model in arithmetic.MODELS
    ]


def _show(found: Mapping[str, Any]) -> None:
    if "match" in found:
        rows = [(name, str(value)) for name, value in found["match"].items()]
        show_rows("The same places, here and there", ("", "value"), rows)
        columns = ("streams", "tokens a second", "tokens", "the last first token, s")
        shown = [
            [str(p["num_streams"]), str(p["tokens_per_s"]), str(p["num_tokens"]), f"{p['first_s']:.2f}"]
            for p in found["paces"]
        ]
        show_rows("Streams beside each other", columns, shown)
    if "typed" in found:
        show_rows("The same files typed, ms", distance.COLUMNS, found["rows"])
    if found.get("arithmetic"):
        shown = [[str(value) for value in row.values()] for row in found["arithmetic"]]
        show_rows(_ARITHMETIC, tuple(found["arithmetic"][0]), shown)
