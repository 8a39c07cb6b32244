"""Cold places: the answers of a real server where nothing is computed yet, their latency and quality.

Each position lies in a file of its own, which is opened, asked once and closed; everything else as an editor
without settings has it. Owns the course of the measurement and its figures.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_server.commands.language_client import LanguageClient
from lsp_server.commands.local_engine import Sample
from lsp_server.commands.player import running_server, stats_of, wait_until_ready
from lsp_server.scripted_typing.screen import Buffer
from lsp_server.workspace.measurements import percentiles
from tests.benchmarks import judging

_POLL_S = 0.2
_MAX_MOVE_S = 600.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ColdAnswer:
    """The answer at one position after `ms`, the statistics of the completion, and without an answer the
    rule.
    """

    sample: Sample
    text: str
    ms: float
    stats: Mapping[str, Any]
    rule: str = ""


def cold_answers(
    samples: Sequence[Sample], root: Path, settings: Mapping[str, Any], progress: Progress
) -> list[ColdAnswer]:
    """One answer for each position, from one server on these settings that begins with the first."""
    return asyncio.run(_ask_all(samples, root, settings, progress))


def one_of_each_file(samples: Sequence[Sample]) -> list[Sample]:
    """The first position of each file."""
    first: dict[str, Sample] = {}
    for sample in samples:
        first.setdefault(sample.document, sample)
    return list(first.values())


def summary(answers: Sequence[ColdAnswer]) -> dict[str, Any]:
    """The figures; times in ms, of the answered places alone."""
    shown = [answer for answer in answers if answer.text]
    judged = judging.summary([judging.judge(answer.sample, answer.text) for answer in answers])
    took = percentiles(answer.ms for answer in shown)
    return {
        "num_places": len(answers),
        "share_answered": round(len(shown) / max(1, len(answers)), 3),
        **{f"ms_{name}": took[name] for name in ("p50", "p90", "p95", "max")},
        "exact": judged["exact"],
        "similarity": judged["similarity"],
        "share_whole": _share(shown, lambda stats: stats["finish_reason"] != "deadline"),
        "rules": dict(Counter(answer.rule for answer in answers if not answer.text)),
        "share_provisional": _share(shown, lambda stats: stats["is_provisional"]),
        "written_by": dict(Counter(answer.stats["target"] for answer in shown)),
        "num_prompt_tokens_p50": percentiles(answer.stats["num_prompt_tokens"] for answer in shown)["p50"],
    }


def _share(answers: Sequence[ColdAnswer], holds: Callable[[Mapping[str, Any]], bool]) -> float:
    return round(sum(holds(answer.stats) for answer in answers) / max(1, len(answers)), 3)


async def _ask_all(
    samples: Sequence[Sample], root: Path, settings: Mapping[str, Any], progress: Progress
) -> list[ColdAnswer]:
    fixed = {"index": {"enabled": False}}
    answers: list[ColdAnswer] = []
    async with running_server(root, settings={**settings, **fixed}, env=dict(os.environ)) as client:
        await wait_until_ready(client)
        await until_settled(client)
        for sample in samples:
            answers.append(await _ask(client, sample, root))
            progress(len(answers), len(samples))
    return answers


async def until_settled(client: LanguageClient) -> None:
    """Until the server answers with the model that the target `auto` chose, or cannot."""
    until = time.monotonic() + _MAX_MOVE_S
    while time.monotonic() < until:
        choice = (await stats_of(client))["engine"].get("auto") or {}
        if choice.get("running") == choice.get("target"):
            return
        await asyncio.sleep(_POLL_S)


async def _ask(client: LanguageClient, sample: Sample, root: Path) -> ColdAnswer:
    uri = (root / sample.document).as_uri()
    client.open(uri, sample.prefix + sample.suffix, language=sample.language)
    position = Buffer(sample.prefix, "").position
    begin = time.perf_counter()
    result = await client.ask(uri, position)
    ms = (time.perf_counter() - begin) * 1e3
    items = (result or {}).get("items", [])
    why = await client.request("slipstream/why", {"textDocument": {"uri": uri}, "position": position}) or {}
    client.close(uri)
    text = str(items[0]["insertText"]) if items else ""
    return ColdAnswer(sample, text, ms, why.get("stats") or {}, "" if text else why.get("rule") or "none")
