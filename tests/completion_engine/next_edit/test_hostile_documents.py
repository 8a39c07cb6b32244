"""Documents that are made to be slow: the processor time and memory of the next edit stay bounded."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import pytest

from completion_engine.next_edit.candidates import find_candidates
from completion_engine.next_edit.certain_edits import certain_edit
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk
from completion_engine.next_edit.module_paths import Module, is_imported
from completion_engine.next_edit.parsing import DocumentParser
from completion_engine.next_edit.proposer import EditProposer
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.language_model import LanguageModel

MAX_S = 1.5  # the limits together, twice: parsing takes 0.2 s of a tree at most
MAX_BYTES = 300 << 20
RENAME = ("fetch = job", "load = job")

DOCUMENTS = [
    pytest.param("plaintext", ["a = [" + "fetch, " * 140_000 + "]"], 0, id="1 MB in one line of no language"),
    pytest.param("python", ["x = " + "(" * 60_000 + "fetch" + ")" * 60_000], 0, id="brackets"),
    pytest.param("python", ["x = fetch" + " + fetch" * 30_000], 0, id="a sum"),
    pytest.param("javascript", ["x = a" + ".fetch" * 40_000], 0, id="members of members"),
    pytest.param(
        "javascript",
        ["function f(){ fetch = job"] * 5_000 + ["}"] * 5_000,
        4_000,
        id="functions in functions",
    ),
    pytest.param("python", ["def fetch(("] * 20_000, 0, id="nothing is closed"),
    pytest.param("python", ["fetch = job"] * 250_000, 100_000, id="3 MB"),
    pytest.param("python", ["fetch = " + "job + " * 500_000 + "1"], 0, id="3 MB in one line"),
]


def took_s(function: Callable[[], object]) -> float:
    """The thread's processor time."""
    begin_s = time.thread_time()
    function()
    return time.thread_time() - begin_s


@pytest.mark.parametrize(("language", "lines", "at"), DOCUMENTS)
def test_a_hostile_document_takes_bounded_time_and_memory(
    target: LanguageModel, tokenizer: Tokenizer, language: str, lines: list[str], at: int
) -> None:
    old, new = RENAME
    document = EditDocument("a", "a", language, (*lines[:at], new, *lines[at:]))
    request = EditRequest([document], [Hunk("a", at, (old,), (new,))], at)
    num_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert took_s(lambda: certain_edit(request)) < MAX_S
    candidates = find_candidates(request)
    proposer = EditProposer(target, tokenizer)
    assert took_s(lambda: next(proposer.scored(request, candidates), None)) < MAX_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - num_kb < MAX_BYTES >> 10


@pytest.mark.parametrize("depth", [10, 100, 1_000])
def test_a_name_that_is_nested_too_deeply_is_not_looked_up(depth: int) -> None:
    line = "(" * depth + "fetch" + ")" * depth
    parsed = DocumentParser().parsed(EditDocument("a", "a", "python", (line,)))
    assert parsed is not None
    node = parsed.node_at(depth, depth + len("fetch"))
    assert (node is not None and node.type == "identifier") is (depth < 256)


def test_a_long_import_is_not_read_for_each_name_of_its_module_in_it() -> None:
    lines = ("from net import (", *(f"    net, name_{number}," for number in range(2_000)), ")")
    parsed = DocumentParser().parsed(EditDocument("b", "b.py", "python", lines))
    assert parsed is not None
    assert took_s(lambda: is_imported(parsed, "b.py", Module("net", "other/net.py"))) < 0.1
