"""Proves that the servers' tokenizer is ours, once, before any prompt is sent as token ids."""

from __future__ import annotations

from dataclasses import dataclass

from completion_engine.errors import RemoteError
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.answer import Wait
from completion_engine.remote.vllm_client import VllmClient

# Tokenizers differ in words, runs of blanks, digits, signs, and characters of one to four bytes.
PROBE = (
    "def naïve_sum(values: list[int]) -> int:\n\t    return sum(v ** 2 for v in values if v >= 1_024)\n"
    "        print(f'{total:>8.3f} %', 3.14159)\n"
    "\r\n  const größe = `${münze}…`;\n\n\n// 你好, мир! \U0001f9ee ÿ\u00a0\u2028 don't\n"
)
_MIN_POSITIONS, _MAX_POSITIONS = 512, 1 << 20
_USUAL_POSITIONS = 4096


@dataclass(frozen=True, slots=True)
class Served:
    """The servers' name of a model, and its limit for the tokens of prompt and answer together."""

    name: str
    num_positions: int = _USUAL_POSITIONS


def prove(servers: VllmClient, wanted: str, tokenizer: Tokenizer, wait: Wait) -> Served:
    """Return the served model that is `wanted`, or the first, once its tokens are known to be ours.

    Raises RemoteError.
    """
    served = _served(servers, wanted, wait)
    if servers.tokenize(served.name, PROBE, wait) != tokenizer.encode(PROBE):
        raise RemoteError(
            "tokenizer",
            f"{servers.endpoint.authority} serves {served.name!r}, which has another tokenizer.",
            advice="Set remote.tokenizer to a folder with that model's tokenizer.json, or remote.model.",
        )
    return served


def _served(servers: VllmClient, wanted: str, wait: Wait) -> Served:
    models = servers.models(wait)
    if wanted and wanted not in models:
        names = ", ".join(list(models)[:5])
        raise RemoteError(
            "refused",
            f"{servers.endpoint.authority} has no model {wanted!r}.",
            advice=f"Set remote.model to one of: {names or 'none is there'}.",
        )
    if not models:
        raise RemoteError(
            "unavailable",
            f"{servers.endpoint.authority} serves no model.",
            advice="Ask the servers' administrator.",
        )
    name = wanted or next(iter(models))
    num_positions = models[name] or _USUAL_POSITIONS
    return Served(name, max(_MIN_POSITIONS, min(num_positions, _MAX_POSITIONS)))
