"""Drafts change the speed, never the text: bit for bit, whatever is drafted."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from completion_engine.cpu.linear import can_quantise
from completion_engine.decoding.ending import Finish
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.reuse import Slot
from completion_engine.drafting.drafts import DraftScope
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.gpu.reference import reference_logits
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.decoder import Layout
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import FamilyModel, read_family_config
from completion_engine.target_model.model_files import open_weights
from completion_engine.transformers_decoder import TransformersDecoder
from ngram_cache import NgramIndex

Write = Callable[..., tuple[Decoding, Finish]]
Tree = list[tuple[int, int]]  # tokens with the places of their parents
Script = Callable[[list[int]], Tree]
RELAXED = settings(max_examples=30, deadline=None)
NUM_TOKENS = 24
DECODERS = [
    pytest.param(
        "int8", marks=pytest.mark.skipif(not can_quantise(torch.device("cpu")), reason="no such machine")
    ),
    "modules",
]
prompts = st.lists(st.integers(9, 900), min_size=1, max_size=120)
healings = st.sampled_from([b"", b"re", b"    ", b"\xc3"])

# Drafters by temper: Drafters by temper: their proposals, given the rest of the true answer.
TEMPERS: dict[str, Callable[[Sequence[int]], Sequence[int]]] = {
    "wrong": lambda rest: [(token + 1) % 900 for token in rest],
    "right": lambda rest: rest,
    "right at first": lambda rest: [*rest[:3], 17, 18],
    "endless": lambda rest: [*rest, *range(9, 900)] * 3,
    "beyond the vocabulary": lambda rest: [*rest[:2], 10**6, -1],
    "silent": lambda rest: [],
}


def chain(tokens: Sequence[int], parent: int = -1, first: int = 0) -> Tree:
    """A chain that hangs at `parent` and whose first token stands at place `first`."""
    return [(token, first + at - 1 if at else parent) for at, token in enumerate(tokens)]


def script_of(temper: str, answer: Sequence[int], num_prompt: int) -> Script:
    return lambda path: chain(TEMPERS[temper](answer[len(path) - num_prompt :]))


def around(answer: Sequence[int], num_prompt: int, seed: int) -> Script:
    """Random trees into which a part of the true answer is woven, in any branch."""

    def script(path: list[int]) -> Tree:
        rest = answer[len(path) - num_prompt :]
        rng = random.Random(seed + len(path))  # noqa: S311 - reproducible draws, no secrets
        tree: Tree = []
        depths: list[int] = []
        for at in range(rng.randrange(40)):
            parent = at - 1 if rng.random() < 0.6 else rng.randrange(-1, at) if at else -1
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
            is_true = rng.random() < 0.7 and depths[at] < len(rest)
            tree.append((rest[depths[at]] if is_true else rng.randrange(9, 900), parent))
        return tree

    return script


def agree(left: Sequence[int], right: Sequence[int]) -> bool:
    """Equal to the last token that was asked for, or to an end before it; the last pass may bring more."""
    return list(left[:NUM_TOKENS]) == list(right[:NUM_TOKENS])


@RELAXED
@given(prompt=prompts, temper=st.sampled_from(sorted(TEMPERS)), healed=healings)
def test_no_drafter_changes_the_tokens(
    write: Write,
    scripted: Callable[[Script], object],
    tokenizer: Tokenizer,
    prompt: list[int],
    temper: str,
    healed: bytes,
) -> None:
    plain, _ = write(prompt, healed=healed, num_tokens=NUM_TOKENS)
    drafter = scripted(script_of(temper, plain.tokens, len(prompt)))
    drafted, _ = write(prompt, [drafter], healed=healed, num_tokens=NUM_TOKENS)
    assert agree(drafted.tokens, plain.tokens)


@pytest.mark.parametrize("decoder", DECODERS)
@settings(max_examples=25, deadline=None)
@given(prompt=prompts, seed=st.integers(0, 2**32), healed=healings)
def test_no_tree_changes_the_tokens_or_the_cache(
    write: Write,
    scripted: Callable[[Script], object],
    free_targets: dict[str, LanguageModel],
    tokenizer: Tokenizer,
    decoder: str,
    prompt: list[int],
    seed: int,
    healed: bytes,
) -> None:
    target = free_targets[decoder]
    assert target.verifies_trees
    slots = [Slot(KVCache(target.cache_shape)) for _ in range(2)]
    options = {"healed": healed, "num_tokens": NUM_TOKENS, "by": target}
    plain, _ = write(prompt, slot=slots[0], **options)
    drafter = scripted(around(plain.tokens, len(prompt), seed))
    drafted, _ = write(prompt, [drafter], slot=slots[1], **options)
    assert agree(drafted.tokens, plain.tokens)
    assert same_bits(slots[0].cache, slots[1].cache) >= len(prompt)


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_true_branch_is_accepted_wherever_it_stands(
    write: Write,
    scripted: Callable[[Script], object],
    free_targets: dict[str, LanguageModel],
    tokenizer: Tokenizer,
    decoder: str,
) -> None:
    """Three branches that share a true beginning; the true one comes last."""
    prompt = list(range(30, 70))
    options = {"by": free_targets[decoder]}
    plain, _ = write(prompt, num_tokens=40, **options)

    def script(path: list[int]) -> Tree:
        rest = plain.tokens[len(path) - len(prompt) :][:6]
        wrong = [(token + 1) % 900 for token in rest[1:5]]
        return [*chain(rest[:1]), *chain(wrong, 0, 1), *chain(wrong[::-1], 0, 5), *chain(rest[1:], 0, 9)]

    drafted, _ = write(prompt, [scripted(script)], num_tokens=NUM_TOKENS, **options)
    assert agree(drafted.tokens, plain.tokens)
    assert drafted.stats.num_accepted >= 5 * (drafted.stats.num_forwards - 1)


def same_bits(left: KVCache, right: KVCache) -> int:
    """Positions that two caches share; asserts that they hold the same bits there."""
    shared = left.num_shared(right.tokens)
    for name in ("keys", "values"):
        assert torch.equal(getattr(left, name)[:, :, :shared], getattr(right, name)[:, :, :shared])
    assert torch.equal(left.hidden[:shared], right.hidden[:shared])
    return shared


@RELAXED
@given(prompt=prompts, documents=st.lists(prompts, max_size=3))
def test_the_ngram_drafter_changes_no_token(
    write: Write, prompt: list[int], documents: list[list[int]]
) -> None:
    plain, _ = write(prompt, num_tokens=NUM_TOKENS)
    drafter = NgramDrafter()
    index = NgramIndex([(str(at), tokens) for at, tokens in enumerate([*documents, plain.tokens])])
    drafter.enter(DraftScope("", "", index))
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
    assert same_bits(plain_slot.cache, drafted_slot.cache) > len(prompt) + 8


class Disturbed:
    """A decoder whose logits depend on what runs beside a row, in passes that `is_disturbed` picks."""

    def __init__(self, decoder: object, is_disturbed: Callable[[int, Layout, int], bool]) -> None:
        self.decoder = decoder
        self._is_disturbed = is_disturbed

    def __getattr__(self, name: str) -> object:
        return getattr(self.decoder, name)

    def forward(
        self, rows: torch.Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int
    ) -> torch.Tensor:
        logits = self.decoder.forward(rows, layout, caches, num_logits)  # type: ignore[attr-defined]
        is_disturbed = self._is_disturbed(len(rows), layout, caches[0].num_cached)
        return logits + 0.5 if is_disturbed else logits


@pytest.mark.parametrize("num_cached", [0, 200])
def test_a_backend_with_row_dependent_sums_is_given_one_fixed_width(
    target: LanguageModel, num_cached: int
) -> None:
    """The check at load must be able to fail: disturb the rows of a wide pass and it does, far in too."""
    wide = Disturbed(target.decoder, lambda num_rows, _, start: num_rows > 8 and start >= num_cached)
    disturbed = LanguageModel(wide, target.device, target.precision, 512)  # type: ignore[arg-type]
    assert not disturbed.is_row_invariant
    assert disturbed.widths == (8,)
    assert disturbed.costs_from(1).max_branches == 1


@pytest.mark.skipif(not can_quantise(torch.device("cpu")), reason="passes of eight rows at least here")
@pytest.mark.parametrize("num_disturbed", [1, 2, 3, 5, 9])
def test_a_backend_whose_narrow_passes_differ_is_given_one_fixed_width(
    target: LanguageModel, num_disturbed: int
) -> None:
    narrow = Disturbed(target.decoder, lambda num_rows, _, __: num_rows == num_disturbed)
    disturbed = LanguageModel(narrow, target.device, target.precision, 512)  # type: ignore[arg-type]
    assert not disturbed.is_row_invariant
    assert disturbed.widths == (8,)


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("num_pending", range(1, 70))
def test_every_width_to_choose_from_holds_the_known_rows(
    free_targets: dict[str, LanguageModel], kind: str, num_pending: int
) -> None:
    target = free_targets[kind]
    assert min(target.costs_from(num_pending).pass_ms) >= num_pending
    assert target.ms_of(num_pending) > 0


def test_passes_are_as_narrow_as_their_products_allow(free_targets: dict[str, LanguageModel]) -> None:
    for target in free_targets.values():
        assert min(target.costs_from(1).pass_ms) == target.decoder.row_step


def test_a_backend_whose_branches_differ_is_given_chains(target: LanguageModel) -> None:
    branched = Disturbed(target.decoder, lambda _, layout, __: len(layout.branches) > 1)
    disturbed = LanguageModel(branched, target.device, target.precision, 512)  # type: ignore[arg-type]
    assert disturbed.is_row_invariant
    assert not disturbed.verifies_trees
    assert disturbed.costs_from(1).max_branches == 1


@pytest.mark.parametrize("family", ["qwen2", "llama", "qwen3"])
def test_our_forward_agrees_with_transformers(tmp_path: Path, family: str) -> None:
    """Same weights, same tokens: both read a model folder alike."""
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
    ours = FamilyModel(read_family_config(tmp_path), open_weights(tmp_path, torch.float32))
    got = reference_logits(ours, tokens, torch.device("cpu"), 16, len(tokens))
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_other_architectures_run_through_their_own_modules(tmp_path: Path) -> None:
    """A model that is not of our family decodes over the same cache, with the same logits."""
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
    assert isinstance(model.decoder, TransformersDecoder)
    cache = KVCache(model.cache_shape)
    model.forward(tokens[:16], cache, 0)
    cache.keep(tokens[:16])
    got = model.forward(tokens[16:], cache, 24)
    torch.testing.assert_close(got, wanted[16:], rtol=1e-4, atol=1e-4)


def test_a_trained_drafter_finds_the_same_turns_behind_both_decoders(
    free_targets: dict[str, LanguageModel],
) -> None:
    found = [target.decoder.rotary for target in free_targets.values()]
    assert None not in found
    assert all(torch.equal(one.to(other), other) for one, other in zip(*found, strict=True))
