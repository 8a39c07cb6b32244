"""Drafts change the speed, never the text: bit for bit, whatever is drafted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.decoding import Decoding, Finish
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.kv_cache import KVCache
from completion_engine.slots import Slot
from completion_engine.language_model import LanguageModel, load_language_model
from completion_engine.module_decoder import ModuleDecoder
from completion_engine.sampling import Sampler
from completion_engine.tokenizer import Tokenizer
from ngram_cache import NgramIndex

Write = Callable[..., tuple[Decoding, Finish]]
Script = Callable[[list[int]], Sequence[int]]
RELAXED = settings(max_examples=30, deadline=None)
NUM_TOKENS = 24
prompts = st.lists(st.integers(9, 900), min_size=1, max_size=120)
healings = st.sampled_from([b"", b"re", b"    ", b"\xc3"])
temperatures = st.sampled_from([0.0, 0.8])

# Drafters by temper: what they propose, given what is left of the true answer.
TEMPERS: dict[str, Callable[[Sequence[int]], Sequence[int]]] = {
    "wrong": lambda rest: [(token + 1) % 900 for token in rest],
    "right": lambda rest: rest,
    "right at first": lambda rest: [*rest[:3], 17, 18],
    "endless": lambda rest: [*rest, *range(9, 900)] * 3,
    "beyond the vocabulary": lambda rest: [*rest[:2], 10**6, -1],
    "silent": lambda rest: [],
}


def script_of(temper: str, answer: Sequence[int], num_prompt: int) -> Script:
    return lambda path: TEMPERS[temper](answer[len(path) - num_prompt :])


def agree(left: Sequence[int], right: Sequence[int]) -> bool:
    """Equal up to where the shorter one's last pass happened to end."""
    shared = min(len(left), len(right))
    return shared > 0 and list(left[:shared]) == list(right[:shared])


@RELAXED
@given(prompt=prompts, temper=st.sampled_from(sorted(TEMPERS)), healed=healings, temperature=temperatures)
def test_no_drafter_changes_the_tokens(
    write: Write,
    scripted: Callable[[Script], object],
    tokenizer: Tokenizer,
    prompt: list[int],
    temper: str,
    healed: bytes,
    temperature: float,
) -> None:
    sampler = Sampler(tokenizer.num_tokens, temperature, seed=3)
    plain, _ = write(prompt, healed=healed, sampler=sampler, num_tokens=NUM_TOKENS)
    drafter = scripted(script_of(temper, plain.tokens, len(prompt)))
    drafted, _ = write(prompt, [drafter], healed=healed, sampler=sampler, num_tokens=NUM_TOKENS)
    assert agree(drafted.tokens, plain.tokens)


@RELAXED
@given(prompt=prompts, documents=st.lists(prompts, max_size=3))
def test_the_ngram_drafter_changes_no_token(
    write: Write, prompt: list[int], documents: list[list[int]]
) -> None:
    plain, _ = write(prompt, num_tokens=NUM_TOKENS)
    drafter = NgramDrafter()
    drafter.index = NgramIndex([(str(at), tokens) for at, tokens in enumerate([*documents, plain.tokens])])
    drafted, _ = write(prompt, [drafter], num_tokens=NUM_TOKENS)
    assert agree(drafted.tokens, plain.tokens)


def test_a_right_draft_saves_passes(write: Write, scripted: Callable[[Script], object]) -> None:
    prompt = list(range(20, 60))
    plain, _ = write(prompt, num_tokens=NUM_TOKENS)
    drafted, _ = write(prompt, [scripted(script_of("right", plain.tokens, 40))], num_tokens=NUM_TOKENS)
    assert plain.stats.num_forwards >= NUM_TOKENS
    assert drafted.stats.num_forwards <= NUM_TOKENS // 4
    assert drafted.stats.num_accepted >= NUM_TOKENS - drafted.stats.num_forwards


@RELAXED
@given(prompt=prompts, cuts=st.lists(st.integers(0, 120), max_size=4))
def test_a_reused_cache_changes_no_token(
    write: Write, target: LanguageModel, prompt: list[int], cuts: list[int]
) -> None:
    """Whatever was cached before, and however it was cut, a prompt is answered as on a fresh cache."""
    fresh, _ = write(prompt, num_tokens=NUM_TOKENS)
    slot = Slot(KVCache(target.cache_shape))
    for cut in cuts:
        write([*prompt[:cut], 11, 12, 13], slot=slot, num_tokens=3)
    again, _ = write(prompt, slot=slot, num_tokens=NUM_TOKENS)
    assert agree(again.tokens, fresh.tokens)
    slot.cache.check_integrity()


def test_the_cache_holds_the_same_bits_however_it_was_filled(
    write: Write, target: LanguageModel, scripted: Callable[[Script], object]
) -> None:
    assert target.is_row_invariant
    prompt = list(range(20, 80))
    plain_slot, drafted_slot = Slot(KVCache(target.cache_shape)), Slot(KVCache(target.cache_shape))
    plain, _ = write(prompt, slot=plain_slot, num_tokens=NUM_TOKENS)
    drafter = scripted(script_of("right at first", plain.tokens, len(prompt)))
    write(prompt, [drafter], slot=drafted_slot, num_tokens=NUM_TOKENS)
    shared = plain_slot.cache.num_shared(drafted_slot.cache.tokens)
    assert shared > len(prompt) + 8
    for name in ("keys", "values"):
        left, right = (getattr(slot.cache, name)[:, :, :shared] for slot in (plain_slot, drafted_slot))
        assert torch.equal(left, right)


def test_a_backend_with_row_dependent_sums_is_given_one_fixed_width(target: LanguageModel) -> None:
    """The check at load must be able to fail: disturb the rows of a wide pass and it does."""

    class Disturbed:
        def __init__(self, decoder: object) -> None:
            self._decoder = decoder

        def __getattr__(self, name: str) -> object:
            return getattr(self._decoder, name)

        def forward(self, rows: torch.Tensor, cache: KVCache, num_logits: int) -> torch.Tensor | None:
            logits = self._decoder.forward(rows, cache, num_logits)  # type: ignore[attr-defined]
            return logits + 0.5 if logits is not None and len(rows) > 8 else logits

    disturbed = LanguageModel(Disturbed(target._decoder), target.device, target.dtype, 512)  # type: ignore[arg-type]
    assert not disturbed.is_row_invariant
    assert disturbed.widths == (8,)


@pytest.mark.parametrize("family", ["qwen2", "llama", "qwen3"])
def test_the_fused_forward_agrees_with_transformers(tmp_path: Path, family: str) -> None:
    """Same weights, same tokens: logits as close as two orders of the same bf16 sums can be."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(1)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = AutoConfig.for_model(
        family, vocab_size=300, num_key_value_heads=2, head_dim=16, max_position_embeddings=512,
        initializer_range=0.1, **sizes,
    )  # fmt: skip
    reference = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    reference.save_pretrained(tmp_path)
    tokens = torch.randint(0, 300, (30,)).tolist()
    with torch.inference_mode():
        wanted = reference(torch.tensor([tokens])).logits[0]
    fused = load_language_model(tmp_path, "cpu", "float32", 512)
    cache = KVCache(fused.cache_shape)
    got = fused.forward(tokens, cache, len(tokens))
    assert got is not None
    assert not isinstance(fused._decoder, ModuleDecoder)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_other_architectures_run_through_their_own_modules(tmp_path: Path) -> None:
    """A model that is not of the fused family decodes over the same cache, with the same logits."""
    from transformers import AutoModelForCausalLM, Starcoder2Config

    torch.manual_seed(1)
    config = Starcoder2Config(
        vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, sliding_window=None, initializer_range=0.1,
    )  # fmt: skip
    reference = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    reference.save_pretrained(tmp_path)
    tokens = torch.randint(0, 300, (40,)).tolist()
    with torch.inference_mode():
        wanted = reference(torch.tensor([tokens])).logits[0]
    model = load_language_model(tmp_path, "cpu", "float32", 512)
    assert isinstance(model._decoder, ModuleDecoder)
    cache = KVCache(model.cache_shape)
    model.forward(tokens[:16], cache, 0)
    cache.keep(tokens[:16])
    got = model.forward(tokens[16:], cache, 24)
    assert got is not None
    torch.testing.assert_close(got, wanted[16:], rtol=1e-4, atol=1e-4)
