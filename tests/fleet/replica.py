"""One vLLM that serves a target, and its metrics.

Owns vLLM's command line as the tests run it, and the names of its metrics.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.fleet.processes import ServerProcess, free_port
from tests.parts import FLEET

MODEL = "target"
_SAMPLE = re.compile(r"^([\w:]+)(?:\{.*\})? (\S+)$", re.MULTILINE)
_LENGTHS = re.compile(r'^vllm:request_generation_tokens_bucket{.*le="(500.0|\+Inf)".*} (\S+)$', re.MULTILINE)
# Two replicas and the tests share two cores: one thread each, bound to none.
_ENV = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
_DRAFTS = '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}'
_OPTIONS = (
    *("--served-model-name", MODEL, "--host", "127.0.0.1", "--block-size", "32"),
    *("--max-model-len", "4096", "--max-num-seqs", "64", "--enforce-eager", "--enable-prompt-tokens-details"),
    *("--speculative-config", _DRAFTS),
)


class Replica(ServerProcess):
    """A vLLM process on a port of its own. `cache_bytes` holds the keys and values of all requests."""

    def __init__(
        self, model: Path, folder: Path, *, cache_bytes: int = 64 << 20, options: tuple[str, ...] = ()
    ) -> None:
        python = FLEET.find("vllm", "environment/bin/python")
        self.port = free_port()
        command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        command += [
            *_OPTIONS,
            "--port",
            str(self.port),
            "--kv-cache-memory-bytes",
            str(cache_bytes),
            *options,
        ]
        url = f"http://127.0.0.1:{self.port}"
        # Without Intel's OpenMP in front vLLM drafts slowly on CPUs.
        openmp = python.parent.parent / "lib" / "libiomp5.so"
        env = {**_ENV, **({"LD_PRELOAD": str(openmp)} if openmp.exists() else {})}
        super().__init__(command, env, url, folder / f"replica-{self.port}.log")

    def metrics(self) -> dict[str, float]:
        """Each metric by its name, summed over its labels."""
        found: dict[str, float] = defaultdict(float)
        for name, value in _SAMPLE.findall(self.read("/metrics")):
            found[name] += float(value)
        return found

    @property
    def num_written(self) -> int:
        """Tokens that it has written so far."""
        return int(self.metrics()["vllm:generation_tokens_total"])

    @property
    def num_running(self) -> int:
        """Requests that it works on, or has waiting."""
        found = self.metrics()
        return int(found["vllm:num_requests_running"] + found["vllm:num_requests_waiting"])

    @property
    def num_long(self) -> int:
        """Requests so far that ended with more than 500 tokens."""
        counts = {"500.0": 0, "+Inf": 0}
        for limit, count in _LENGTHS.findall(self.read("/metrics")):
            counts[limit] += int(float(count))
        return counts["+Inf"] - counts["500.0"]

    @property
    def num_cached(self) -> int:
        """Prompt tokens so far that it had cached."""
        return int(self.metrics()["vllm:prefix_cache_hits_total"])
