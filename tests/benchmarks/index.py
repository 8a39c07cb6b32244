"""Figures of the n-gram index: time to build, size, time to look up and to update.

Run as `python -m tests.benchmarks.index`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from completion_engine.config import DEFAULT_TARGET
from completion_engine.models import ModelStore
from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.commands.terminal import progress_bar, show_figures
from ngram_cache import snapshot
from ngram_cache.construction import IntArray
from ngram_cache.index import NgramIndex
from ngram_cache.snapshot import FileRecord, Snapshot
from tests.benchmarks.command_line import Json, Sources, Target, run
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.samples import source_files

_MAX_CONTEXT_SHOWN = 64
_MIN_CHARS = 1_000  # shorter files say little about lookups
_HELD_OUT = 20  # one file in this many is looked up instead of indexed


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """The cost of an index of `num_tokens` tokens. Percentiles are over single lookups and updates.

    `build_seconds` is for sorting alone, tokens given. `lookup_us` is one lookup of up to `max_nodes` drafted
    tokens, `lookup_us_per_token` all lookups' time over all tokens they drafted.
    """

    num_tokens: int
    num_documents: int
    build_seconds: float
    memory_bytes_per_token: float
    disk_bytes_per_token: float
    save_seconds: float
    load_seconds: float
    lookup_us_p50: float
    lookup_us_p99: float
    lookup_us_per_token: float
    tokens_per_lookup: float
    update_ms_p50: float
    update_ms_p99: float
    num_segments: int

    def as_dict(self) -> dict[str, float]:
        """The figures as plain JSON values."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


def synthetic_documents(num_tokens: int, *, seed: int = 0, num_words: int = 30_000) -> list[IntArray]:
    """Documents of about 4,000 tokens that repeat themselves and each other about as code does.

    Tokens follow Zipf's law; most text is made of phrases drawn, by Zipf's law too, from a common stock.
    """
    generator = np.random.default_rng(seed)
    ranks = np.minimum(generator.zipf(1.2, size=num_tokens), num_words) - 1
    stock = ranks[: max(64, num_tokens // 8)]
    documents: list[IntArray] = []
    total = 0
    while total < num_tokens:
        length = int(generator.integers(500, 7_500))
        pieces, num_pieces = [], 0
        while num_pieces < length:
            size = int(generator.integers(3, 40))
            start = min(int(generator.zipf(1.3)) * 41 % len(stock), max(0, len(stock) - size))
            fresh = generator.random() < 0.3
            first = int(generator.integers(0, len(ranks))) if fresh else start
            piece = (ranks if fresh else stock)[first : first + size]
            pieces.append(piece)
            num_pieces += len(piece)
        documents.append(np.concatenate(pieces).astype(np.int32))
        total += len(documents[-1])
    return documents


def measure_index(
    documents: Sequence[IntArray],
    held_out: Sequence[IntArray],
    *,
    num_lookups: int = 2_000,
    num_updates: int = 100,
    max_nodes: int = 16,
) -> IndexFigures:
    """Build an index of `documents`, look up contexts out of `held_out`, update documents, save and load."""
    named = [(f"{number}", tokens) for number, tokens in enumerate(documents)]
    index = NgramIndex()
    started = time.perf_counter()
    index.update_many(named)
    build_seconds = time.perf_counter() - started
    num_tokens, num_bytes = index.num_tokens, index.nbytes
    disk, save_seconds, load_seconds = _save_and_load(index)
    generator = np.random.default_rng(0)
    lookup_us, num_drafted = _lookups(index, held_out, generator, num_lookups, max_nodes)
    update_ms = _updates(index, named, generator, num_updates)
    return IndexFigures(
        num_tokens=num_tokens,
        num_documents=len(documents),
        build_seconds=build_seconds,
        memory_bytes_per_token=num_bytes / max(1, num_tokens),
        disk_bytes_per_token=disk / max(1, num_tokens),
        save_seconds=save_seconds,
        load_seconds=load_seconds,
        lookup_us_p50=float(np.percentile(lookup_us, 50)),
        lookup_us_p99=float(np.percentile(lookup_us, 99)),
        lookup_us_per_token=sum(lookup_us) / max(1, num_drafted),
        tokens_per_lookup=num_drafted / max(1, num_lookups),
        update_ms_p50=float(np.percentile(update_ms, 50)),
        update_ms_p99=float(np.percentile(update_ms, 99)),
        num_segments=index.num_segments,
    )


def _save_and_load(index: NgramIndex) -> tuple[int, float, float]:
    stored = index.stored()
    files = {path: FileRecord(0, 0, b"") for path in stored.paths.values()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        started = time.perf_counter()
        snapshot.save(path, Snapshot("measure", "", stored, files))
        saved = time.perf_counter()
        NgramIndex().restore(snapshot.load(path, fingerprint="measure", root="").stored)
        loaded = time.perf_counter()
        return path.stat().st_size, saved - started, loaded - saved


def _lookups(
    index: NgramIndex,
    held_out: Sequence[IntArray],
    generator: np.random.Generator,
    num_lookups: int,
    max_nodes: int,
) -> tuple[list[float], int]:
    times, num_drafted = [], 0
    for _ in range(num_lookups):
        tokens = held_out[int(generator.integers(len(held_out)))]
        end = int(generator.integers(1, len(tokens) + 1))
        context = tokens[max(0, end - _MAX_CONTEXT_SHOWN) : end].tolist()
        started = time.perf_counter()
        found = index.lookup(context, max_nodes=max_nodes, max_depth=max_nodes)
        times.append((time.perf_counter() - started) * 1e6)
        num_drafted += len(found.nodes)
    return times, num_drafted


def _updates(
    index: NgramIndex,
    named: Sequence[tuple[str, IntArray]],
    generator: np.random.Generator,
    num_updates: int,
) -> list[float]:
    times = []
    for _ in range(num_updates):
        path, tokens = named[int(generator.integers(len(named)))]
        edited = np.delete(tokens, int(generator.integers(len(tokens))))
        started = time.perf_counter()
        index.update(path, edited)
        times.append((time.perf_counter() - started) * 1e3)
    return times


def index(*, sources: Sources = None, target: Target = DEFAULT_TARGET, json: Json = False) -> None:
    """Build time, bytes per token, lookup and update time of the n-gram index over Python sources."""
    root = sources or released_sources()
    with progress_bar(quiet=json) as report:
        tokenizer = load_tokenizer(ModelStore().ensure(target, report))
        report("Reading sources", 0, 0)
        files = source_files(root, (".py",))
        texts = [path.read_text(encoding="utf-8", errors="ignore") for path in files]
        encoded = tokenizer.encode_many([text for text in texts if len(text) > _MIN_CHARS])
        documents = [np.asarray(tokens, dtype=np.int32) for tokens in encoded]
    held_out = documents[::_HELD_OUT]
    kept = [tokens for at, tokens in enumerate(documents) if at % _HELD_OUT]
    figures = measure_index(kept, held_out).as_dict()
    show_figures({"bench": "index", **figures}, json=json, title="The n-gram index")


if __name__ == "__main__":
    run(index)
