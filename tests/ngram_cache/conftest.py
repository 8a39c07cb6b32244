"""The slow truth: the same lookup by looking at every position of every document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ngram_cache import Lookup, NgramIndex
from ngram_cache.indexing import Indexer
from ngram_cache.lookup import FEW_OCCURRENCES
from ngram_cache.planning import SILENT, IndexHooks
from ngram_cache.repository import DEFAULT_OPTIONS, RepositoryOptions

ESCAPE, SHORTER_ESCAPE = 0.9, 2.0
MAX_CONTEXT = 32

Node = tuple[int, int, int, int, str, int, int, float]
Answer = tuple[int, int, list[Node]]


@dataclass(frozen=True)
class Place:
    """One occurrence: the tokens after it, and its recency."""

    rest: tuple[int, ...]
    age: int
    path: str
    offset: int


def _brute_force(
    documents: Sequence[tuple[str, Sequence[int]]],
    context: Sequence[int],
    *,
    max_nodes: int,
    max_depth: int,
) -> Answer:
    """`documents` from the oldest to the most recent."""

    def places(length: int) -> list[Place]:
        tail = tuple(context[len(context) - length :])
        return [
            Place(tuple(tokens[at : at + max_depth]), age, path, at)
            for age, (path, tokens) in enumerate(documents)
            for at in range(length, len(tokens))
            if tuple(tokens[at - length : at]) == tail
        ]

    for length in range(min(len(context), MAX_CONTEXT), 0, -1):
        longest = places(length)
        if longest:
            break
    else:
        return 0, 0, []
    shorter_length = max(1, length // 2)
    blends = len(longest) < FEW_OCCURRENCES and shorter_length < length
    shorter = [place for place in places(shorter_length) if place not in longest] if blends else []
    lengths = length, shorter_length if blends else 0
    return length, len(longest), _best_first(longest, shorter, lengths, max_nodes, max_depth)


def _best_first(
    longest: list[Place], shorter: list[Place], lengths: tuple[int, int], max_nodes: int, max_depth: int
) -> list[Node]:
    """The most probable continued paths, by one linear pass per node."""
    nodes: list[Node] = []
    paths: list[tuple[int, ...]] = [()]
    open_children = _children((), longest, shorter, lengths, 1.0)
    while open_children and len(nodes) < max_nodes:
        best = max(range(len(open_children)), key=lambda at: (open_children[at][0], -at))
        probability, path, (count, where, match_length) = open_children.pop(best)
        if len(path) > max_depth:
            continue
        parent = paths.index(path[:-1]) - 1
        paths.append(path)
        depth = len(path) - 1
        nodes.append(
            (path[-1], parent, depth, count, where.path, where.offset + depth, match_length, probability)
        )
        open_children += _children(path, longest, shorter, lengths, probability)
    return nodes


def _children(
    path: tuple[int, ...],
    longest: list[Place],
    shorter: list[Place],
    lengths: tuple[int, int],
    reached: float,
) -> list[tuple[float, tuple[int, ...], tuple[int, Place, int]]]:
    here_longest = [place for place in longest if place.rest[: len(path)] == path]
    here_shorter = [place for place in shorter if place.rest[: len(path)] == path]
    total = len(here_longest) + len(here_shorter)
    children = []
    for token in {
        place.rest[len(path)] for place in here_longest + here_shorter if len(place.rest) > len(path)
    }:
        child = (*path, token)
        of_longest = [place for place in here_longest if place.rest[: len(child)] == child]
        of_shorter = [place for place in here_shorter if place.rest[: len(child)] == child]
        probability = (len(of_longest) + len(of_shorter)) / (total + SHORTER_ESCAPE)
        if here_longest:
            probability = (len(of_longest) + ESCAPE * probability) / (len(here_longest) + ESCAPE)
        told = of_longest or of_shorter
        newest = max(told, key=lambda place: (place.age, place.offset))
        evidence = (len(told), newest, lengths[0] if of_longest else lengths[1])
        order = (-probability * reached, not of_longest, -newest.age, -newest.offset)
        children.append((order, (reached * probability, child, evidence)))
    return [child for _, child in sorted(children, key=lambda item: item[0])]


def _described(lookup: Lookup, path_of: Callable[[int], str]) -> Answer:
    """A lookup in the terms of `_brute_force`."""
    nodes = [
        (
            node.token,
            node.parent,
            node.depth,
            node.num_occurrences,
            path_of(node.document),
            node.offset,
            node.match_length,
            node.probability,
        )
        for node in lookup.nodes
    ]
    return lookup.match_length, lookup.num_occurrences, nodes


def _check_lookup(
    index: NgramIndex, documents: Sequence[tuple[str, Sequence[int]]], context: Sequence[int], **limits: int
) -> None:
    """The index answers as the slow truth does."""
    expected = _brute_force(documents, context, **limits)  # type: ignore[arg-type]  # limits by name
    found = _described(index.lookup(context, **limits), index.path_of)  # type: ignore[arg-type]  # the same
    assert found == expected


def _encode_letters(texts: list[str]) -> list[list[int]]:
    """A tokenizer that anybody can read: one token a character."""
    return [[ord(letter) for letter in text] for text in texts]


@pytest.fixture(scope="session")
def brute_force() -> Callable[..., Answer]:
    return _brute_force


@pytest.fixture(scope="session")
def described() -> Callable[[Lookup, Callable[[int], str]], Answer]:
    return _described


@pytest.fixture(scope="session")
def check_lookup() -> Callable[..., None]:
    return _check_lookup


@pytest.fixture
def index_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "indexes"
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


@pytest.fixture
def make_indexer(root: Path, index_folder: Path) -> Callable[..., Indexer]:
    assert not index_folder.exists()

    def make(
        fingerprint: str = "letters", options: RepositoryOptions = DEFAULT_OPTIONS, hooks: IndexHooks = SILENT
    ) -> Indexer:
        return Indexer(root, _encode_letters, fingerprint, options, hooks)

    return make


@pytest.fixture
def write(root: Path) -> Callable[[dict[str, str]], None]:
    """Writes files below the root as they are."""

    def write_files(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")

    return write_files
