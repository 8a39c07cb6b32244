"""How often the first suggestion is the rest of the line that a person wrote.

Over LSP, from a real server, beside the same target with the plain prefix/suffix prompt that most
tools build, on the same positions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from completion_engine.decoding.run import NoRules
from completion_engine.engine import PREFIX_CHARS, SUFFIX_CHARS, CompletionEngine
from completion_engine.prompting.prompt import Prompt
from completion_engine.request import CompletionRequest
from completion_engine.suggestions.rules import Stop
from lsp_server.tools.bench.prompts import Sample
from lsp_server.tools.client import LanguageClient
from lsp_server.tools.replay.server_process import running_server, wait_until_ready

_MAX_TOKENS = 48
Progress = Callable[[int, int], None]


class FirstLine(NoRules):
    """Writes one line."""

    def check(self, generated: str) -> Stop | None:
        """Stops behind the first line end."""
        end = generated.find("\n")
        return None if end < 0 else Stop("single-line", end)


@dataclass(slots=True)
class QualityReport:
    """Matches of one way of asking."""

    name: str
    num_positions: int = 0
    num_exact: int = 0
    num_shown: int = 0
    similarities: list[float] = field(default_factory=list)

    def add(self, expected: str, suggested: str) -> None:
        """Count one answer; only its first line is judged."""
        line = suggested.split("\n", maxsplit=1)[0].rstrip()
        self.num_positions += 1
        self.num_shown += bool(suggested)
        self.num_exact += line == expected.rstrip()
        self.similarities.append(SequenceMatcher(None, line, expected.rstrip(), autojunk=False).ratio())

    def as_dict(self) -> dict[str, Any]:
        """One JSON object."""
        count = max(1, self.num_positions)
        return {
            "name": self.name,
            "num_positions": self.num_positions,
            "num_shown": self.num_shown,
            "exact": round(self.num_exact / count, 3),
            "similarity": round(sum(self.similarities) / count, 3),
        }


def plain_answers(engine: CompletionEngine, samples: Sequence[Sample], progress: Progress) -> QualityReport:
    """The target alone with the prompt `<prefix> before <suffix> after <middle>`, nothing healed."""
    report = QualityReport("plain prefix/suffix prompt")
    tokenizer, fim = engine.tokenizer, engine.tokenizer.fim
    kind = engine.target.device.type
    for sample in samples:
        before = tokenizer.encode(sample.prefix[-PREFIX_CHARS[kind] :])
        after = tokenizer.encode(sample.suffix[: SUFFIX_CHARS[kind]])
        tokens = [fim.prefix, *before, fim.suffix, *after, fim.middle] if fim else before
        request = CompletionRequest(sample.prefix, sample.suffix, sample.language, sample.name)
        writing = engine.write(request, FirstLine(), _MAX_TOKENS, Prompt(tuple(tokens), b""))
        report.add(sample.expected, writing.written.text)
        progress(report.num_positions, len(samples))
    return report


def suggested_answers(
    samples: Sequence[Sample], root: Path, settings: Mapping[str, Any], progress: Progress
) -> QualityReport:
    """The first suggestion of a real server for each position, as an editor would get it.

    `settings` name the target and how it runs.
    """
    return asyncio.run(_ask_server(samples, root, settings, progress))


async def _ask_server(
    samples: Sequence[Sample], root: Path, settings: Mapping[str, Any], progress: Progress
) -> QualityReport:
    report = QualityReport("Slipstream over LSP")
    fixed = {"deadlineMs": 0, "maxTokens": _MAX_TOKENS, "index": {"enabled": False}}
    async with running_server(root, settings={**settings, **fixed}, env=dict(os.environ)) as client:
        await wait_until_ready(client, lambda *_: None)
        for sample in samples:
            report.add(sample.expected, await _first_suggestion(client, sample, root))
            progress(report.num_positions, len(samples))
    return report


async def _first_suggestion(client: LanguageClient, sample: Sample, root: Path) -> str:
    uri = (root / f"{sample.name.replace(':', '-')}").as_uri()
    client.open(uri, sample.prefix + sample.suffix, language=sample.language)
    line = sample.prefix.count("\n")
    column = len(sample.prefix[sample.prefix.rfind("\n") + 1 :].encode("utf-16-le")) // 2
    result = await client.request(
        "textDocument/inlineCompletion",
        {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": column},
            "context": {"triggerKind": 1},
        },
    )
    client.close(uri)
    items = (result or {}).get("items", [])
    return str(items[0]["insertText"]) if items else ""
