"""A smaller model of the same family drafts: right guesses are accepted, wrong ones change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from completion_engine.config import EngineConfig
from completion_engine.decoding.loop import Decoding
from completion_engine.drafting.model_drafter import ModelDrafter, check_same_vocabulary
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.load_engine import load_engine
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

PROMPT = tuple(range(20, 60))
Write = Callable[..., tuple[Decoding, object]]


@pytest.fixture(scope="module")
def twin(target: LanguageModel, tokenizer: Tokenizer) -> ModelDrafter:
    """The target itself as its own drafter: always right. Its steps pass for cheap, so it is asked."""
    drafter = ModelDrafter(target, tokenizer.num_tokens)
    drafter.step_ms = 1e-3
    return drafter


@pytest.fixture(scope="module")
def stranger(
    write_tiny: Callable[..., Path], tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> ModelDrafter:
    """Other weights, the same tokenizer: nearly always wrong."""
    folder = write_tiny(tmp_path_factory.mktemp("stranger") / "model", seed=5, num_layers=1)
    drafter = ModelDrafter(load_language_model(folder, "cpu", "auto", 512), tokenizer.num_tokens)
    drafter.step_ms = 1e-3
    return drafter


def test_a_drafter_that_is_the_target_is_always_right(write: Write, twin: ModelDrafter) -> None:
    plain, _ = write(PROMPT)
    drafted, _ = write(PROMPT, [twin])
    num_shared = min(len(plain.tokens), len(drafted.tokens))
    assert drafted.tokens[:num_shared] == plain.tokens[:num_shared]
    assert drafted.stats.accepted_by_source["neural"] > 0
    assert drafted.stats.num_forwards < plain.stats.num_forwards


def test_a_drafter_that_is_wrong_changes_nothing(write: Write, stranger: ModelDrafter) -> None:
    plain, _ = write(PROMPT)
    drafted, _ = write(PROMPT, [stranger])
    num_shared = min(len(plain.tokens), len(drafted.tokens))
    assert drafted.tokens[:num_shared] == plain.tokens[:num_shared]


@pytest.mark.parametrize("max_tokens", [1, 3, 7])
def test_a_draft_is_no_deeper_than_asked(twin: ModelDrafter, target: LanguageModel, max_tokens: int) -> None:
    twin.begin(PROMPT, KVCache(target.cache_shape))
    (draft,) = twin.drafts(max_tokens, lambda _: True, 0.0)
    depths: list[int] = []
    for guess in draft:
        depths.append(0 if guess.parent < 0 else depths[guess.parent] + 1)
    assert max(depths) == max_tokens - 1


def test_the_first_guesses_are_allowed_ones(twin: ModelDrafter, target: LanguageModel) -> None:
    twin.begin(PROMPT, KVCache(target.cache_shape))
    (free,) = twin.drafts(1, lambda _: True, 0.0)
    wanted = free[-1].token
    (bound,) = twin.drafts(1, lambda token: token == wanted, 0.0)
    assert [guess.token for guess in bound] == [wanted]


def test_a_path_that_is_not_worth_a_step_is_not_followed(twin: ModelDrafter, target: LanguageModel) -> None:
    twin.begin(PROMPT, KVCache(target.cache_shape))
    (draft,) = twin.drafts(8, lambda _: True, 1.0)
    assert all(guess.parent == -1 for guess in draft)


def test_text_that_goes_another_way_is_followed(twin: ModelDrafter, target: LanguageModel) -> None:
    twin.begin(PROMPT, KVCache(target.cache_shape))
    twin.drafts(4, lambda _: True, 0.0)
    twin.begin((*PROMPT[:30], 7, 8, 9), KVCache(target.cache_shape))
    (after,) = twin.drafts(4, lambda _: True, 0.0)
    fresh = ModelDrafter(target, 1000)
    fresh.begin((*PROMPT[:30], 7, 8, 9), KVCache(target.cache_shape))
    assert fresh.drafts(4, lambda _: True, 0.0) == [after]


def test_an_engine_drafts_with_the_model_it_is_given(
    tiny_model_dir: Path, write_tiny: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_tiny(tmp_path / "small", seed=5, num_layers=1)
    config = EngineConfig(str(tiny_model_dir), ("neural",), str(folder), prefix_chars=400, suffix_chars=200)
    engine = load_engine(config)
    plain = CompletionEngine(EngineConfig(str(tiny_model_dir), ()), engine.target, engine.tokenizer)
    assert engine.describe()["drafters"] == ["neural"]
    request = CompletionRequest("def area(width, height):\n    ", "\n", "python", "a.py", deadline_ms=0)
    assert engine.complete(request).text == plain.complete(request).text


def test_another_vocabulary_is_refused(tiny_model_dir: Path, tmp_path: Path, tokenizer: Tokenizer) -> None:
    told = json.loads((tiny_model_dir / "tokenizer.json").read_text(encoding="utf-8"))
    told["model"]["vocab"]["another word"] = len(told["model"]["vocab"])
    (tmp_path / "tokenizer.json").write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(UserError, match="another vocabulary"):
        check_same_vocabulary(tokenizer, load_tokenizer(tmp_path), "other")


def test_the_target_is_no_drafter_for_itself() -> None:
    with pytest.raises(UserError, match="is the target itself"):
        EngineConfig("some-model", draft_model="some-model")
