"""One measurement of a team's servers, part by part: a part's results count even if it fails later.

Owns the course and the figures' names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from completion_engine.config import EngineConfig
from completion_engine.errors import SlipstreamError
from completion_engine.load_engine import load_engine
from completion_engine.models import ModelStore
from completion_engine.prompting.tokenizer import load_tokenizer
from completion_engine.remote.answer import Wait
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.endpoint import Endpoint, RemoteConfig
from completion_engine.remote.vllm_client import VllmClient
from completion_engine.request import Progress
from completion_engine.text_window import TextWindow
from lsp_server.commands.local_engine import Sample
from lsp_server.commands.replay import ReplayOptions
from tests.benchmarks.remote import arithmetic, distance, matching, streams
from tests.benchmarks.remote.counters import Counts, read_counts

_STREAM_TOKENS = 64
_STREAM_PROMPT = 400  # tokens


@dataclass(frozen=True, slots=True)
class Asked:
    """The parts of a measurement: both sides at `places`, a number of streams, files `typed` at distances.

    Streams begin after `samples`. Empty parts are left out.
    """

    config: RemoteConfig
    target: str
    places: Sequence[Sample] = ()
    num_tokens: int = 24
    samples: Sequence[Sample] = ()
    nums_streams: Sequence[int] = ()
    typed: Sequence[Path] = ()
    round_trips_ms: Sequence[float] = (0.0,)
    options: ReplayOptions = field(default_factory=ReplayOptions)
    metrics: Sequence[str] = ()


def measure(asked: Asked, found: dict[str, Any], report: Progress) -> None:
    """Each part into `found` as it comes; `found["missing"]` says why a part is not whole."""
    missing: dict[str, str] = found.setdefault("missing", {})
    if asked.places:
        with _part("match", missing):
            _match(asked, found, report)
    if asked.nums_streams:
        with _part("paces", missing):
            _stream(asked, found, report)
    if asked.typed:
        with _part("typed", missing):
            asyncio.run(_type(asked, found, report))


@contextmanager
def _part(name: str, missing: dict[str, str]) -> Iterator[None]:
    try:
        yield
    except SlipstreamError as error:
        missing[name] = str(error)
    except KeyboardInterrupt:
        missing[name] = "It was interrupted."
        raise


def _match(asked: Asked, found: dict[str, Any], report: Progress) -> None:
    """The texts of both sides. The windows of both are this machine's."""
    here = load_engine(EngineConfig(target=asked.target), report)
    window = TextWindow.for_device(here.target.device.type)
    windows = {"prefix_chars": window.num_before, "suffix_chars": window.num_after}
    config = RemoteConfig(**(asdict(asked.config) | windows))
    matches: list[matching.Match] = []
    with closing(RemoteCompleter.load(config, here.tokenizer, report)) as there:
        for match in matching.matches(
            here,
            there,
            asked.places,
            asked.num_tokens,
            lambda done, total: report("Comparing texts", done, total),
        ):
            matches.append(match)
            found["match"] = matching.summary(matches)


def _stream(asked: Asked, found: dict[str, Any], report: Progress) -> None:
    """Tokens a second, of all replicas and of each that tells its metrics."""
    tokenizer = load_tokenizer(ModelStore().ensure(asked.target, report))
    encoded = [tokenizer.encode(sample.prefix)[-_STREAM_PROMPT:] for sample in asked.samples]
    paces: list[dict[str, Any]] = found.setdefault("paces", [])
    with closing(VllmClient(Endpoint.of(asked.config))) as servers:
        name = asked.config.model or next(iter(servers.models(Wait.seconds(10))))
        written = _written_by_each(asked.metrics)
        for pace in streams.paces(
            servers,
            name,
            tokenizer,
            encoded,
            asked.nums_streams,
            _STREAM_TOKENS,
            lambda num: report(f"{num} streams beside each other", 0, 0),
        ):
            before, written = written, _written_by_each(asked.metrics)
            each = [now - then for now, then in zip(written, before, strict=True)]
            paces.append(
                {
                    **asdict(pace),
                    "tokens_per_s": round(pace.tokens_per_s, 1),
                    "tokens_per_s_of_each": [round(num / pace.whole_s, 1) for num in each],
                }
            )


def _written_by_each(metrics: Sequence[str]) -> list[int]:
    return [read_counts([url]).num_written_tokens for url in metrics]


async def _type(asked: Asked, found: dict[str, Any], report: Progress) -> None:
    """The replays, with what their counts let expect of other servers."""
    typed: dict[str, Any] = {}
    remote = _settings(asked.config)
    async for name, replayed in distance.typed_from_afar(
        asked.typed, asked.options, remote, asked.round_trips_ms, asked.metrics, report
    ):
        typed[name] = replayed
        found |= _told(typed)


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
