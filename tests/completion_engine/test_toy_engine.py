"""A whole engine in miniature, with all its drafters, writes what it writes without them."""

from __future__ import annotations

import pytest
import torch

from completion_engine.compile_kernels import DRAFTER, TARGET, write_toy_model
from completion_engine.config import EngineConfig
from completion_engine.cpu.linear import can_quantise
from completion_engine.decoding.ending import NoRules
from completion_engine.engine import CompletionEngine
from completion_engine.load_engine import load_engine_from
from completion_engine.request import CompletionRequest
from tests.prices import make_rows_free

NUM_TOKENS = 40
PLACES = (
    ("def add(first, second):\n    return ", "\n"),
    ("total = 0\nfor number in numbers:\n    total += ", "\nprint(total)\n"),
    ("class Table:\n    def __init__(self, rows):\n        self.rows = rows\n        self.", ""),
)

pytestmark = pytest.mark.skipif(
    not can_quantise(torch.device("cpu")), reason="this machine does not multiply bytes fast"
)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompletionEngine, CompletionEngine]:
    """One that drafts, to which verifying costs nothing, and one that does not."""
    folder = tmp_path_factory.mktemp("toy")
    write_toy_model(folder)
    draft_model = str(folder / DRAFTER)
    found = []
    for drafters in (("ngram", "neural"), ()):
        config = EngineConfig(TARGET, drafters, draft_model if drafters else "", device="cpu", dtype="int8")
        found.append(load_engine_from(folder / TARGET, config))
        make_rows_free(found[-1].target)
    return found[0], found[1]


def test_drafts_of_all_kinds_change_no_token(engines: tuple[CompletionEngine, CompletionEngine]) -> None:
    num_accepted = 0
    for prefix, suffix in PLACES:
        request = CompletionRequest(prefix, suffix, "python", deadline_ms=0, max_tokens=NUM_TOKENS)
        drafted, plain = (engine.write(request, NoRules(), NUM_TOKENS) for engine in engines)
        assert drafted.tokens[:NUM_TOKENS] == plain.tokens[:NUM_TOKENS]
        assert not plain.stats.num_accepted
        num_accepted += drafted.stats.num_accepted
    assert num_accepted
