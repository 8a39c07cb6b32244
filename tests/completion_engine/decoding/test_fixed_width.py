"""Where bits depend on the rows of a pass, drafts change none of them: not in a text, not in the next one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Cancellation, Completion, CompletionRequest
from completion_engine.target_model.decoder import Layout
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.passes import ChunkRule
from tests.completion_engine.decoding.plain import complete_checked

CODE = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n        re"
SUFFIX = "\n\ndef main():\n    pass\n"
WEIGHTS = {
    "type along": 6, "type": 4, "delete": 3, "jump": 1, "switch": 2, "candidates": 2, "idle": 2,
    "prefetch": 1, "prepare": 1, "cancel": 1,
}  # fmt: skip
NUM_STEPS = 40


class RowVariant:
    """A decoder whose keys, values, hidden states and logits depend on the number of rows beside each row.

    In passes that are not of the fixed width they depend on the tokens there too; logits also on how many
    are asked for. Once it is watched it remembers the bits of each row of a fixed-width pass by the tokens up
    to it and by how many of them came from whole chunks, and refuses others.
    """

    def __init__(self, decoder: Any) -> None:
        self.decoder = decoder
        self.is_watched = False
        self.seen: dict[tuple[Any, ...], Tensor] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.decoder, name)

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        cache, num_rows = caches[0], len(rows)
        shift = 0.01 * num_rows + (0.0 if num_rows == 8 else 0.001 * float(rows.sum() % 97))
        read = self.decoder._embedding
        self.decoder._embedding = read + (shift * (torch.arange(read.shape[1]) % 5 - 2)).to(read)
        try:
            logits = self.decoder.forward(rows, layout, caches, num_logits)
        finally:
            self.decoder._embedding = read
        logits = logits + (0.01 * num_logits * (torch.arange(logits.shape[1]) % 7)).to(logits)
        if self.is_watched and num_rows == 8:
            self._remember(rows.tolist(), cache, logits)
        return logits

    def _remember(self, rows: Sequence[int], cache: KVCache, logits: Tensor) -> None:
        for row in range(len(rows)):
            at, asked = cache.num_cached + row, row - (len(rows) - len(logits))
            known = (cache.num_from_chunks, *cache.tokens, *rows[: row + 1])
            bits = {"keys": cache.keys[:, :, at], "values": cache.values[:, :, at]}
            bits |= {"logits": logits[asked]} if asked >= 0 else {}
            for name, found in bits.items():
                same = torch.equal(self.seen.setdefault((name, *known), found.clone()), found)
                assert same, f"other {name} behind the same {len(known) - 1} tokens"


@pytest.fixture(scope="module")
def row_variant(target: LanguageModel) -> LanguageModel:
    decoder = RowVariant(target.decoder)
    made = LanguageModel(decoder, target.device, target.precision, 512)  # type: ignore[arg-type]
    decoder.is_watched = True
    assert not made.is_row_invariant
    assert made.verifies_drafts
    assert made.exactness == "fixed width"
    return made


@dataclass
class Typist:
    """Two engines on one target, with drafters and without, before the same person."""

    engines: list[CompletionEngine]
    texts: dict[str, str] = field(default_factory=lambda: {name: f"# {name}\n" + CODE * 3 for name in "abc"})
    document: str = "a"
    shown: str = ""
    complete: Callable[[CompletionEngine, CompletionRequest], Completion] = CompletionEngine.complete

    def do(self, step: str, number: int) -> None:
        text = self.texts[self.document]
        if step == "type along":
            self.texts[self.document] += self.shown[: 1 + number]
        elif step == "type":
            self.texts[self.document] += ("x = ", "\n    ", "call(bar, baz) + " * 5, "r", ")")[number % 5]
        elif step == "delete":
            self.texts[self.document] = text[: max(0, len(text) - 2 * number)]
        elif step == "jump":
            self.texts[self.document] = text[number:] if number % 2 else text + CODE[:number]
        elif step == "switch":
            self.document = "abc"[number % 3]
        elif step == "idle":
            for engine in self.engines:
                for _ in range(number):
                    engine.idle(Cancellation())
            return
        elif step in {"prefetch", "prepare"}:
            for engine in self.engines:
                getattr(engine, step)(self.request(1))
                engine.idle(Cancellation())
            return
        elif step == "cancel":
            for engine in self.engines:
                engine.prefetch(self.request(1))  # given up before it is whole
            return
        self.ask(3 if step == "candidates" else 1)

    def ask(self, num_candidates: int) -> None:
        asked = self.request(num_candidates)
        drafted, plain = (self.complete(engine, asked) for engine in self.engines)
        assert drafted.text == plain.text
        assert [other.text for other in drafted.alternatives] == [other.text for other in plain.alternatives]
        assert (drafted.rule, drafted.stats.finish_reason) == (plain.rule, plain.stats.finish_reason)
        self.shown = plain.text

    def request(self, num_candidates: int) -> CompletionRequest:
        return CompletionRequest(
            self.texts[self.document], SUFFIX, "python", self.document, max_tokens=20, deadline_ms=0.0,
            patience_ms=1e6, num_candidates=num_candidates,
        )  # fmt: skip


@pytest.fixture(scope="module")
def typist(row_variant: LanguageModel, tokenizer: Tokenizer) -> Callable[[], Typist]:
    def make() -> Typist:
        kinds = ("ngram",), ()
        options = {"target": "tiny", "prefix_chars": 900, "suffix_chars": 100, "num_slots": 2}
        configs = (EngineConfig(drafters=drafters, **options) for drafters in kinds)  # type: ignore[arg-type]
        return Typist([CompletionEngine(config, row_variant, tokenizer) for config in configs])

    return make


@pytest.mark.parametrize("seed", range(4))
def test_whatever_was_asked_before_drafts_change_no_bit(typist: Callable[[], Typist], seed: int) -> None:
    """Forty steps of a user who types, deletes, jumps, chooses and pauses in three documents."""
    person, rng = typist(), random.Random(seed)  # noqa: S311 - reproducible draws, no secrets
    person.ask(1)
    for step in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=NUM_STEPS):
        person.do(step, rng.randrange(60))
    person.ask(2)


@pytest.mark.parametrize("seed", range(2))
def test_what_was_asked_before_changes_nothing(typist: Callable[[], Typist], seed: int) -> None:
    """Plain decoding from an empty cache writes the same: bits follow from the text and its chunks alone."""
    person, rng = typist(), random.Random(seed)  # noqa: S311 - reproducible draws, no secrets
    checked: list[int] = []
    person.complete = partial(complete_checked, checked=checked)
    for step in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=NUM_STEPS // 2):
        person.do(step, rng.randrange(60))
        person.do("idle", 60)
    assert len(checked) > 2 * 10, "by both engines"


def test_drafts_bring_more_than_counts_and_it_is_kept(typist: Callable[[], Typist]) -> None:
    """The subject of the machine above does occur: drafted passes leave tokens after a stop."""
    person = typist()
    num_more = 0
    for _ in range(12):
        person.do("type along", 3)
        person.do("type", 0)
        drafted, plain = (engine.preparation._slots._slots[0].cache.num_cached for engine in person.engines)
        num_more += drafted > plain
    assert num_more


def test_a_prompt_that_grew_by_a_chunk_is_computed_in_chunks(row_variant: LanguageModel) -> None:
    rule = row_variant.chunks
    assert rule == ChunkRule(64, 8)
    assert [rule.num_chunked(num_prompt) for num_prompt in (1, 64, 65, 128, 129)] == [0, 0, 64, 64, 128]


@given(
    st.integers(0, 300),
    st.integers(0, 300),
    st.integers(1, 300),
    st.sampled_from([ChunkRule(64, 8), ChunkRule(64)]),
)
def test_what_is_reused_was_computed_as_the_prompt_has_to_be(
    num_shared: int, num_from_chunks: int, num_prompt: int, rule: ChunkRule
) -> None:
    num_from_chunks = num_from_chunks // 64 * 64 if rule.fixed_width else 0
    num_chunked = rule.num_chunked(num_prompt)
    kept = rule.num_reusable(num_shared, num_from_chunks, num_chunked)
    assert 0 <= kept <= num_shared
    by_chunks = min(kept, num_from_chunks)
    assert by_chunks == min(kept, num_chunked)
    assert kept >= num_chunked or kept % 64 == 0
    if not rule.fixed_width:
        assert kept == num_shared


class Neighbourly(RowVariant):
    """Bits that depend on where in its pass a row stands: no width helps."""

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        logits: Tensor = self.decoder.forward(rows, layout, caches, num_logits)
        return logits + torch.linspace(0, 1, len(logits))[:, None].to(logits) if num_logits else logits


def test_where_no_width_makes_drafts_harmless_there_are_none(
    target: LanguageModel, tokenizer: Tokenizer
) -> None:
    made = LanguageModel(Neighbourly(target.decoder), target.device, target.precision, 512)  # type: ignore[arg-type]
    assert made.exactness == "no drafts"
    person = Typist([
        CompletionEngine(EngineConfig(target="tiny", prefix_chars=400, drafters=names), made, tokenizer)
        for names in (("ngram",), ())
    ])  # fmt: skip
    for step in ("candidates", "type along", "type", "type along", "candidates"):
        person.do(step, 5)
    assert person.engines[0].complete(person.request(1)).stats.num_drafted == 0


def test_candidates_are_ranked_behind_what_was_known_without_a_pass(typist: Callable[[], Typist]) -> None:
    """Choosing among several rewinds the cache; a user who types a prefix and asks again is answered."""
    person = typist()
    person.ask(3)
    for _ in range(3):
        person.texts["a"] += person.shown[:4]
        person.ask(3)
