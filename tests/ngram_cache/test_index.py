"""The index against the slow truth, under any sequence of changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ngram_cache import NgramIndex, snapshot
from ngram_cache.live_parts import Entry, LiveParts, VersionTable
from ngram_cache.search import Part
from ngram_cache.segment import Segment
from ngram_cache.snapshot import FileRecord, Snapshot
from tests.ngram_cache.integrity import check_integrity

PATHS = ["a.py", "b.py", "c.py", "d.py"]
paths = st.sampled_from(PATHS)
short_text = st.lists(st.integers(0, 2), max_size=6)
contexts = st.lists(st.integers(0, 3), max_size=8)
long_texts = st.lists(st.lists(st.integers(0, 2), max_size=60), max_size=4).filter(
    lambda texts: sum(map(len, texts)) <= 64
)


class AnyHistory(RuleBasedStateMachine):
    """An index with a history answers as one that was built of the final documents, and as the truth."""

    folder: Path
    check: Callable[..., None]

    def __init__(self) -> None:
        super().__init__()
        self.index = NgramIndex()
        self.stored: dict[str, tuple[int, list[int]]] = {}
        self.overlays: dict[str, tuple[int, list[int]]] = {}
        self.now = 0

    def _stamp(self) -> int:
        self.now += 1
        return self.now

    @initialize(folder=st.uuids())
    def start(self, folder: object) -> None:
        self.name = str(folder)

    @rule(path=paths, tokens=short_text)
    def update(self, path: str, tokens: list[int]) -> None:
        self.index.update(path, tokens)
        self.stored[path] = self._stamp(), tokens

    @rule(texts=st.dictionaries(paths, short_text))
    def update_many(self, texts: dict[str, list[int]]) -> None:
        self.index.update_many(list(texts.items()))
        for path, tokens in texts.items():
            self.stored[path] = self._stamp(), tokens

    @rule(path=paths)
    def remove(self, path: str) -> None:
        self.index.remove(path)
        self.stored.pop(path, None)

    @rule(path=paths, tokens=short_text)
    def set_overlay(self, path: str, tokens: list[int]) -> None:
        self.index.set_overlay(path, tokens)
        self.overlays[path] = self._stamp(), tokens

    @rule(path=paths)
    def drop_overlay(self, path: str) -> None:
        self.index.drop_overlay(path)
        self.overlays.pop(path, None)

    @rule(max_segments=st.integers(1, 4))
    def maintain(self, max_segments: int) -> None:
        self.index.maintain(max_segments)
        assert self.index.num_segments <= max_segments

    @rule()
    def save_and_load(self) -> None:
        stored = self.index.stored()
        files = {path: FileRecord(1, 2, b"3") for path in stored.paths.values()}
        path = self.folder / self.name
        snapshot.save(path, Snapshot("f", "r", stored, files))
        self.index = NgramIndex()
        self.index.restore(snapshot.load(path, fingerprint="f", root="r").stored)
        self.overlays = {}

    @rule(
        context=contexts,
        max_nodes=st.integers(0, 9),
        max_depth=st.integers(0, 5),
    )
    def lookup(self, context: list[int], max_nodes: int, max_depth: int) -> None:
        self.index.maintain()
        live = self._live()
        limits = {"max_nodes": max_nodes, "max_depth": max_depth}
        self.check(self.index, live, context, **limits)
        self.check(NgramIndex(live), live, context, **limits)

    @rule(context=contexts, path=paths)
    def lookup_elsewhere(self, context: list[int], path: str) -> None:
        self.index.maintain()
        others = NgramIndex([document for document in self._live() if document[0] != path])
        here = self.index.lookup(context, max_nodes=5, max_depth=3, exclude=path)
        there = others.lookup(context, max_nodes=5, max_depth=3)
        assert (here.match_length, here.num_occurrences) == (there.match_length, there.num_occurrences)
        assert [(node.token, node.parent, node.num_occurrences) for node in here.nodes] == [
            (node.token, node.parent, node.num_occurrences) for node in there.nodes
        ]

    @invariant()
    def is_sound(self) -> None:
        check_integrity(self.index)
        live = self._live()
        assert self.index.num_documents == len(live)
        assert self.index.num_tokens == sum(len(tokens) for _, tokens in live)
        assert self.index.paths == sorted(self.stored)

    def _live(self) -> list[tuple[str, list[int]]]:
        versions = self.stored | self.overlays
        return [(path, tokens) for path, (_, tokens) in sorted(versions.items(), key=lambda item: item[1][0])]


def test_any_history_gives_the_answers_of_a_fresh_index(
    tmp_path: Path, check_lookup: Callable[..., None]
) -> None:
    AnyHistory.folder = tmp_path
    AnyHistory.check = staticmethod(check_lookup)
    AnyHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
    AnyHistory.TestCase("runTest").runTest()


@settings(max_examples=120, deadline=None)
@given(texts=long_texts, context=st.lists(st.integers(0, 2), max_size=40), split=st.booleans())
def test_repetitive_text_is_matched_to_the_full_context(
    check_lookup: Callable[..., None], texts: list[list[int]], context: list[int], split: bool
) -> None:
    documents = [(f"{number}", tokens) for number, tokens in enumerate(texts)]
    index = NgramIndex() if split else NgramIndex(documents)
    if split:
        for document in documents:
            index.update(*document)
    check_integrity(index)
    check_lookup(index, documents, context, max_nodes=8, max_depth=6)
    if texts and texts[0]:
        check_lookup(index, documents, texts[0], max_nodes=8, max_depth=6)


def test_the_most_frequent_continuation_leads_and_ties_go_to_the_most_recent() -> None:
    index = NgramIndex([("old", [1, 2, 3]), ("mid", [1, 2, 4]), ("new", [1, 2, 5])])
    assert index.lookup([1, 2], max_nodes=3, max_depth=1).nodes[0].token == 5
    index.update("more", [9, 1, 2, 3])
    assert index.lookup([1, 2], max_nodes=1, max_depth=1).nodes[0].token == 3
    nodes = index.lookup([1, 2], max_nodes=3, max_depth=1).nodes
    assert [node.token for node in nodes] == [3, 5, 4]
    assert [node.num_occurrences for node in nodes] == [2, 1, 1]


def test_a_short_answer_keeps_the_frequent_over_the_recent() -> None:
    index = NgramIndex([("a", [1, 2, 3]), ("b", [1, 2, 3]), ("c", [1, 2, 5])])
    assert [node.token for node in index.lookup([1, 2], max_nodes=1, max_depth=1).nodes] == [3]


def test_a_draft_says_where_it_was_read() -> None:
    index = NgramIndex([("pkg/module.py", [7, 8, 9, 10])])
    node = index.lookup([7, 8], max_nodes=2, max_depth=2).nodes[1]
    assert (index.path_of(node.document), node.token, node.offset) == ("pkg/module.py", 10, 3)
    assert index.tokens_before(node.document, node.offset).tolist() == [7, 8, 9]
    index.remove("pkg/module.py")
    assert index.path_of(node.document) == ""
    assert index.tokens_before(node.document, node.offset).tolist() == []


def test_context_may_be_an_array_and_only_its_end_counts() -> None:
    tokens = list(range(100))
    index = NgramIndex([("a", tokens)])
    found = index.lookup(np.array(tokens[:90]), max_nodes=4, max_depth=4)
    assert (found.match_length, [node.token for node in found.nodes]) == (32, [90, 91, 92, 93])


@pytest.mark.parametrize("tokens", [[-1], [1 << 21], [[1, 2]]])
def test_what_is_no_token_is_refused(tokens: list[int]) -> None:
    with pytest.raises(ValueError, match="token"):
        NgramIndex().update("a", tokens)


def test_a_context_of_no_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="token"):
        NgramIndex([("a", [1, 2])]).lookup([-5], max_nodes=1, max_depth=1)


def test_counts_over_the_cap_are_estimates_near_the_truth() -> None:
    index = NgramIndex([(f"{number}", [1, 2, 3 if number % 4 else 4]) for number in range(1000)])
    found = index.lookup([1, 2], max_nodes=2, max_depth=1)
    assert found.num_occurrences == 1000
    assert [node.token for node in found.nodes] == [3, 4]
    assert found.nodes[0].num_occurrences + found.nodes[1].num_occurrences <= 64
    assert 0.6 < found.nodes[0].probability < 0.9


def test_segments_stay_a_handful_however_many_edits_there_are() -> None:
    generator = np.random.default_rng(0)
    index = NgramIndex([(f"{n}", generator.integers(0, 50, 400)) for n in range(100)])
    most = 0
    for _ in range(300):
        index.update(f"{generator.integers(100)}", generator.integers(0, 50, 400))
        index.set_overlay("open", generator.integers(0, 50, 100))
        most = max(most, index.num_segments)
    assert most <= 8
    index.maintain()
    num_stored = sum(part.segment.num_tokens for part in index._live.parts)
    assert num_stored <= index.num_tokens / 0.7 + 100
    assert index.nbytes <= 9 * num_stored + 4096
    check_integrity(index)


def test_typing_in_one_buffer_leaves_no_trail() -> None:
    index = NgramIndex([("a", range(1000))])
    for length in range(1, 200):
        index.set_overlay("a", list(range(length)))
    assert index.num_segments == 2
    index.drop_overlay("a")
    assert (index.num_segments, index.num_tokens) == (1, 1000)


def test_readers_and_writers_do_not_disturb_each_other() -> None:
    index = NgramIndex([("base", [1, 2, 3] * 50)])
    stop = threading.Event()
    problems: list[object] = []

    def read() -> None:
        while not stop.is_set():
            found = index.lookup([1, 2], max_nodes=4, max_depth=2)
            if found.nodes[0].token != 3 or found.match_length != 2:
                problems.append(found)

    def compact() -> None:
        while not stop.is_set():
            index.maintain(1)

    threads = [threading.Thread(target=work) for work in (read, compact)]
    for thread in threads:
        thread.start()
    for number in range(300):
        index.update(f"{number % 7}", [1, 2, 3] * (number % 5 + 1))
        index.set_overlay("open", [1, 2, 3, number])
        if number % 11 == 0:
            index.remove(f"{number % 7}")
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    check_integrity(index)


def test_writers_leave_segments_alone_that_are_being_merged() -> None:
    index = NgramIndex([("first", [1, 2, 3])])
    index.update("second", [1, 2, 4])

    def merge_while_others_write(parts: Sequence[Part]) -> Segment:
        for number in range(10):
            index.update(f"{number}", [1, 2, 3])
        index.remove("second")
        return index._live.merged(parts)

    index._replace_aside(list, merge_while_others_write)
    check_integrity(index)
    assert index.lookup([1, 2], max_nodes=1, max_depth=1).num_occurrences == 11


def test_a_restored_index_does_not_displace_what_came_before_it() -> None:
    old = NgramIndex([("a", [1, 2, 3]), ("b", [5, 6, 7])])
    index = NgramIndex([("a", [1, 2, 4])])
    index.set_overlay("b", [5, 6, 8])
    index.restore(old.stored())
    assert index.lookup([1, 2], max_nodes=1, max_depth=1).nodes[0].token == 4
    assert index.lookup([5, 6], max_nodes=1, max_depth=1).nodes[0].token == 8
    index.drop_overlay("b")
    assert index.lookup([5, 6], max_nodes=1, max_depth=1).nodes[0].token == 7
    check_integrity(index)
    with pytest.raises(ValueError, match="numbers"):
        index.restore(old.stored())


@pytest.mark.parametrize("moment", ["while the reader looks", "before it is published"])
@pytest.mark.parametrize("look", ["lookup", "view"])
def test_a_document_never_drafts_from_itself_while_it_changes(
    monkeypatch: pytest.MonkeyPatch, moment: str, look: str
) -> None:
    index = NgramIndex([("other", [7, 8, 9])])
    index.set_overlay("own", [1, 2, 3])
    seen: list[int] = []

    def read() -> None:
        if look == "lookup":
            seen.append(index.lookup([1, 2], max_nodes=1, max_depth=1, exclude="own").match_length)
        else:
            seen.append(index.view(exclude="own").successors([1, 2], 1).match_length)

    publish, entry = LiveParts.publish, VersionTable.entry

    def publish_late(*arguments: Any) -> None:
        read()
        publish(*arguments)

    def change_first(table: VersionTable, path: str) -> Entry:
        monkeypatch.setattr(VersionTable, "entry", entry)
        index.set_overlay("own", [1, 2, 4])
        return entry(table, path)

    if moment == "before it is published":
        monkeypatch.setattr(LiveParts, "publish", publish_late)
        index.set_overlay("own", [1, 2, 4])
    else:
        monkeypatch.setattr(VersionTable, "entry", change_first)
        read()
    assert seen
    assert not any(seen)
