"""The counters of replicas: requests, prompt tokens that they had cached, tokens that they wrote.

Owns the names of vLLM's metrics that are read, and how.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from completion_engine.errors import UserError

_NAMES = {
    # Those with a first token: a request that its editor ends is in no count of ended ones.
    "num_requests": "vllm:time_to_first_token_seconds_count",
    "num_prompt_tokens": "vllm:prefix_cache_queries_total",
    "num_cached_tokens": "vllm:prefix_cache_hits_total",
    "num_written_tokens": "vllm:generation_tokens_total",
    "num_drafted_tokens": "vllm:spec_decode_num_draft_tokens_total",
    "num_accepted_tokens": "vllm:spec_decode_num_accepted_tokens_total",
}
_SAMPLE = re.compile(r"^([\w:]+)(?:\{.*\})? (\S+)$", re.MULTILINE)
_MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over all replicas, since their start, or between two readings."""

    num_requests: int = 0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_written_tokens: int = 0
    num_drafted_tokens: int = 0
    num_accepted_tokens: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in _NAMES})

    def __sub__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) - getattr(other, name) for name in _NAMES})

    @property
    def share_cached(self) -> float:
        """Cached share of the prompts' tokens."""
        return self.num_cached_tokens / max(1, self.num_prompt_tokens)

    def for_each_request(self, num_tokens: int) -> float:
        """The mean of a number of tokens."""
        return num_tokens / max(1, self.num_requests)


def read_counts(urls: Sequence[str]) -> Counts:
    """The sum over the replicas whose metrics lie at `urls`. Raises UserError."""
    found = dict.fromkeys(_NAMES, 0)
    by_metric = {metric: name for name, metric in _NAMES.items()}
    for url in urls:
        for metric, value in _SAMPLE.findall(_text_at(url)):
            if metric in by_metric:
                found[by_metric[metric]] += int(float(value))
    return Counts(**found)


def _text_at(url: str) -> str:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().read(_MAX_BYTES).decode(errors="replace")
    except (OSError, HTTPException) as error:
        raise UserError(
            f"No metrics at {url}: {error}.", advice="Name http://REPLICA:PORT/metrics."
        ) from error
    finally:
        connection.close()
