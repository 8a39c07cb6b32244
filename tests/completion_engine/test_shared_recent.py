"""Two engines that draft from each other's recent completions, as `auto` runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from completion_engine.config import EngineConfig
from completion_engine.decoding.ending import NoRules
from completion_engine.decoding.loop import Decoding
from completion_engine.engine import CompletionEngine
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.small_first import SmallFirst
from completion_engine.target_model.language_model import LanguageModel
from tests.prices import make_rows_free

Make = Callable[..., CompletionEngine]

HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
PLACES = (
    HEAD,
    HEAD + "        result",
    "class Loan:\n    def __init__(self, member):\n        self.",
    "x = ",
)
NUM_TOKENS = 16


def wrote(engine: CompletionEngine, prefix: str) -> Decoding:
    request = CompletionRequest(prefix, "\n", "python", "a.py", recent_scope="folder", deadline_ms=0)
    return engine.write(request, NoRules(), NUM_TOKENS)


@pytest.fixture(scope="module")
def other_target(write_tiny: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A target with other weights and the same tokens."""
    folder = write_tiny(tmp_path_factory.mktemp("other") / "model", seed=1, num_layers=3)
    return make_rows_free(load_language_model(folder, "cpu", "auto", 512))


def test_what_one_engine_wrote_is_a_draft_of_the_other(make_engine: Make) -> None:
    small, large, alone = (make_engine(drafters=("ngram",)) for _ in range(3))
    large.share_recent(small)
    for place in PLACES:
        wrote(small, place)
        shared, plain = wrote(large, place), wrote(alone, place)
        assert shared.tokens[:NUM_TOKENS] == plain.tokens[:NUM_TOKENS]
        assert 2 * shared.stats.num_forwards < plain.stats.num_forwards


def test_the_draft_of_another_model_changes_no_token(
    make_engine: Make, other_target: LanguageModel, tokenizer: Tokenizer
) -> None:
    small = make_engine()
    large, alone = (CompletionEngine(EngineConfig("other"), other_target, tokenizer) for _ in range(2))
    large.share_recent(small)
    for place in PLACES:
        wrote(small, place)
        wanted = wrote(alone, place).tokens[:NUM_TOKENS]
        assert wrote(large, place).tokens[:NUM_TOKENS] == wanted
        typed = place + tokenizer.decode(wrote(small, place).tokens[:2])
        assert wrote(large, typed).tokens[:NUM_TOKENS] == wrote(alone, typed).tokens[:NUM_TOKENS]


def test_a_closed_document_is_forgotten_by_both(make_engine: Make) -> None:
    small, large = (make_engine(drafters=("ngram",)) for _ in range(2))
    large.share_recent(small)
    wrote(small, HEAD)
    small.forget("a.py")
    assert wrote(large, HEAD).stats.num_forwards >= NUM_TOKENS // 2


def test_engines_with_other_tokens_share_nothing(
    make_engine: Make, target: LanguageModel, tiny_model_dir: Path, tmp_path: Path
) -> None:
    text = (tiny_model_dir / "tokenizer.json").read_text(encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text(text.replace(r"|\\p{N}|", r"|\\p{N}+|"), encoding="utf-8")
    other = CompletionEngine(EngineConfig("tiny", ("ngram",)), target, load_tokenizer(tmp_path))
    engine, alone = (make_engine(drafters=("ngram",)) for _ in range(2))
    assert other.tokenizer.fingerprint != engine.tokenizer.fingerprint
    engine.share_recent(other)
    wrote(other, HEAD)
    assert wrote(engine, HEAD).stats.num_forwards == wrote(alone, HEAD).stats.num_forwards


def test_where_the_larger_model_has_become_warm_the_next_answer_needs_no_pass(
    make_engine: Make, other_target: LanguageModel, tokenizer: Tokenizer
) -> None:
    small = make_engine(target="small")
    large, alone = (CompletionEngine(EngineConfig("large"), other_target, tokenizer) for _ in range(2))
    both = SmallFirst(small, large)
    large.share_recent(small)
    whole = CompletionRequest(HEAD * 24, "\n", "python", "a.py", deadline_ms=0)
    asked = replace(whole, deadline_ms=1e-6, patience_ms=50 * other_target.prompt_token_ms)
    assert both.complete(asked).stats.target == "small"
    while both.idle(Cancellation()):
        pass
    later = both.complete(asked)
    assert (later.stats.target, later.stats.num_forwards) == ("large", 0)
    assert later.text == alone.complete(whole).text
